"""Tasks of all notes: what is one, its days and priority, and the list of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import CollectionNotFoundError, InputError
from qmd.parse.document import parse_document
from qmd.values.documents import Task
from tests.support.postgres import PostgresServer

TODAY = date.today()
SOON = TODAY + timedelta(days=3)
LATE = TODAY - timedelta(days=2)
FAR = TODAY + timedelta(days=90)

NOTES = {
    "work/plan.md": (
        "---\ntags: [work]\n---\n# Plan\n\n"
        f"- [ ] Call the bank 📅 {SOON} #money\n"
        f"- [ ] Write the report 📅 {SOON} ⏫\n"
        f"- [x] Ask Li Lei ✅ {LATE}\n"
        "- [-] Sell the boat\n"
    ),
    "work/log.md": f"- TODO [#A] Renew the pass\n  DEADLINE: <{LATE} Tue>\n- DOING Paint\n",
    "home/day.md": f"Nothing to do.\n\n1. [ ] Plant the tree [due:: {FAR}]\n\n#garden/trees\n",
    "home/list.md": "* [ ] Feed the cat #garden/animals_1\n+ [ ] Sweep\n",
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kb(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("tasks")
    for name, text in NOTES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    location: object = folder / "index.sqlite"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        location = server.migrated()
    with KnowledgeBase.open(location, create=True) as kb:  # type: ignore[arg-type]
        for name in ("work", "home"):
            kb.add_collection(folder / name, name=name)
        kb.index()
        yield kb


def found(text: str) -> list[Task]:
    return list(parse_document("note.md", text.encode()).tasks)


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("- [ ] plain", Task(1, "open", "plain")),
        ("> - [x] quoted", Task(1, "done", "quoted")),
        ("  12) [/] half", Task(1, "doing", "half")),
        ("* [-] gone", Task(1, "cancelled", "gone")),
        ("- [!] important", Task(1, "open", "important")),
        ("- [ ] a 📅2026-12-01 b", Task(1, "open", "a b", due="2026-12-01")),
        ("- [ ] a 🗓️ 2026-12-01", Task(1, "open", "a", due="2026-12-01")),
        (
            "- [ ] a ⏳ 2026-12-01 🛫 2026-11-01 ➕ 2026-10-01 🔼",
            Task(1, "open", "a", priority=3, scheduled="2026-12-01", start="2026-11-01"),
        ),
        ("- [x] a ✅ 2026-11-02", Task(1, "done", "a", finished="2026-11-02")),
        ("- [ ] a 🔁 every week 📅 2026-12-01", Task(1, "open", "a", due="2026-12-01")),
        ("- [ ] a 📅 2026-13-01", Task(1, "open", "a 📅 2026-13-01")),
        (
            "- [ ] a (due:: 2026-12-01) [priority:: High] [repeat:: every day]",
            Task(1, "open", "a", priority=2, due="2026-12-01"),
        ),
        ("- [ ] a [due:: soon]", Task(1, "open", "a")),
        ("- TODO [#B] a", Task(1, "open", "a", priority=3)),
        ("* WAITING for it", Task(1, "open", "for it")),
        ("- CANCELLED a", Task(1, "cancelled", "a")),
        ("- [ ] a #One #two/b", Task(1, "open", "a #One #two/b", tags=("one", "two/b"))),
        ("- [ ]", None),
        ("- [x](a.md) link", None),
        ("- TODOs", None),
        ("TODO a", None),
        ("[ ] a", None),
        ("```\n- [ ] code\n```", None),
        ("<!--\n- [ ] comment\n-->", None),
    ],
)
def test_what_is_a_task(line: str, task: Task | None) -> None:
    assert found(line) == ([] if task is None else [task])


def test_days_below_a_task_of_logseq_are_its_own() -> None:
    text = "- TODO a\n  SCHEDULED: <2026-12-01 Tue 10:00>\n  DEADLINE: <2026-12-02 Wed>\n- TODO b\n"
    assert found(text) == [
        Task(1, "open", "a", due="2026-12-02", scheduled="2026-12-01"),
        Task(4, "open", "b"),
    ]


def texts(kb: KnowledgeBase, **options: object) -> list[str]:
    listed = kb.tasks(**options)  # type: ignore[arg-type]
    assert listed.total == len(listed.tasks)
    return [task.text for task in listed.tasks]


def test_open_tasks_come_by_day_priority_and_file(kb: KnowledgeBase) -> None:
    assert texts(kb) == [
        *("Renew the pass", "Write the report", "Call the bank #money"),
        *("Plant the tree", "Feed the cat #garden/animals_1", "Sweep", "Paint"),
    ]
    first = kb.tasks(limit=1)
    assert first.total == 7
    (task,) = first.tasks
    assert (task.file, task.line, task.due, task.priority) == (
        *("work/log.md", 1),
        *(LATE.isoformat(), "high"),
    )


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        ("overdue", ["Renew the pass"]),
        ("today", ["Renew the pass"]),
        ("Week", ["Renew the pass", "Write the report", "Call the bank #money"]),
        (SOON.isoformat(), ["Renew the pass", "Write the report", "Call the bank #money"]),
        ("2d", ["Renew the pass"]),
        ("none", ["Feed the cat #garden/animals_1", "Sweep", "Paint"]),
    ],
)
def test_tasks_are_listed_up_to_a_day(kb: KnowledgeBase, due: str, expected: list[str]) -> None:
    assert texts(kb, due=due) == expected


def test_a_month_reaches_to_its_last_day(kb: KnowledgeBase) -> None:
    assert "Plant the tree" in texts(kb, due=f"{FAR:%Y-%m}")
    assert len(texts(kb, due="any")) == 4


@pytest.mark.parametrize("due", ["never", "2026-13", "2026-02-30", "9999999999d"])
def test_what_is_no_day_is_refused(kb: KnowledgeBase, due: str) -> None:
    with pytest.raises(InputError, match="No day is written so") as caught:
        kb.tasks(due=due)
    assert "overdue" in caught.value.hint


def test_a_task_has_its_tags_and_those_of_its_note(kb: KnowledgeBase) -> None:
    assert texts(kb, tags=["work"]) == ["Write the report", "Call the bank #money"]
    assert texts(kb, tags=["work", "#money"]) == ["Call the bank #money"]
    assert texts(kb, tags=["garden"]) == ["Feed the cat #garden/animals_1"]
    # "_" and "%" are no wildcards, and a tag is whole.
    for tag in ("garden/animals%", "garden/animals-1", "garde_", "gard"):
        assert texts(kb, tags=[tag]) == []


def test_done_tasks_alone_or_with_the_others(kb: KnowledgeBase) -> None:
    assert texts(kb, done=True) == ["Ask Li Lei", "Sell the boat"]
    assert len(texts(kb, done=True, open=True)) == 9
    assert texts(kb, collection="home", open=True)[0] == "Plant the tree"
    with pytest.raises(CollectionNotFoundError):
        kb.tasks(collection="none")


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("task:done", {"work/plan.md"}),
        ("task:doing", {"work/log.md"}),
        ("task:*", {"work/plan.md", "work/log.md", "home/day.md", "home/list.md"}),
        (f"due:<={SOON}", {"work/plan.md", "work/log.md", "home/day.md"}),
        (f"due:<{LATE}", set()),
        (f"task:open due:<{SOON}", {"work/log.md"}),
        (f"tree due:{FAR}", {"home/day.md"}),
        ("-task:cancelled task:open", {"work/log.md", "home/day.md", "home/list.md"}),
    ],
)
def test_searches_take_conditions_on_tasks(kb: KnowledgeBase, query: str, files: set[str]) -> None:
    if query.startswith("due:<="):
        files = files - {"home/day.md"}
    assert {hit.file for hit in kb.search(query).hits} == files


def test_a_ticked_task_is_no_longer_open(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    note = tmp_path / "notes/a.md"
    note.write_text("- TODO one\n- [ ] two\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes")
        kb.index()
        note.write_text("- DONE one\n- [ ] two\n", encoding="utf-8")
        kb.index()
        assert texts(kb) == ["two"]
        note.unlink()
        kb.index()
        assert texts(kb, open=True, done=True) == []


def test_a_hit_for_tasks_shows_the_line_of_one(kb: KnowledgeBase) -> None:
    def lines(query: str) -> dict[str, int]:
        return {hit.file: hit.line for hit in kb.search(query, limit=None).hits}

    assert lines("task:open") == {
        "work/plan.md": 6,
        "work/log.md": 1,
        "home/day.md": 3,
        "home/list.md": 1,
    }
    assert lines("task:cancelled")["work/plan.md"] == 9
    assert lines(f"task:open due:>{SOON}")["home/day.md"] == 3
    assert lines("bank task:open")["work/plan.md"] == 6

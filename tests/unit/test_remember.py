"""Facts and relations of notes: what is one, remembering, recalling and forgetting them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import AmbiguousNameError, DocumentNotFoundError, EditError, InputError
from qmd.files.edits.operations import fact_line, with_fact, without_fact
from qmd.parse.document import parse_document
from qmd.values import SearchRequest
from qmd.values.documents import NewFact, Observation, RecalledFacts
from tests.support import growth
from tests.support.embedder import HashEmbedder
from tests.support.postgres import PostgresServer

TODAY = date.today().isoformat()
YESTERDAY = (date.today() - timedelta(days=1)).isoformat()
TOMORROW = (date.today() + timedelta(days=1)).isoformat()

NOTES = {
    "coffee.md": (
        "---\ntitle: Coffee Brewing\ntags: [coffee]\n---\n# Coffee Brewing\n\n## Observations\n"
        "- [method] Pour over is clearer than French press #brewing (2026-01-02; a barista)\n"
        "- [technique] Water at 96 degrees\n"
        f"- [offer] Half price until the end (2026-01-01; until {YESTERDAY})\n\n"
        '## Relations\n- requires [[Grinding]]\n- "contrasts with" [[Tea]] (taste)\n'
    ),
    "grinding.md": "# Grinding\n\nA burr grinder is even.\n\n- [price] 90 euros (2026-02-01)\n",
    "tea.md": "# Tea\n\n- [water] 80 degrees for green tea (2026-03-01)\n- see also [[Coffee]]\n",
    "部署.md": "# 部署\n\n- [决定] 数据库用 SQLite（2026-04-01；会议；至 2999-01-01）\n",
}


def opened(request: pytest.FixtureRequest, folder: Path) -> KnowledgeBase:
    notes = folder / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, encoding="utf-8")
    location: object = folder / "index.sqlite"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        location = server.migrated()
    kb = KnowledgeBase.open(location, create=True)  # type: ignore[arg-type]
    kb.add_collection(notes, name="notes")
    kb.index()
    return kb


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kb(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KnowledgeBase]:
    """Only read."""
    with opened(request, tmp_path_factory.mktemp("memory")) as kb:
        yield kb


@pytest.fixture(params=["sqlite"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    with opened(request, tmp_path) as kb:
        yield kb


def texts(recalled: RecalledFacts) -> list[str]:
    return [each.text for each in recalled.facts]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("- [decision] We use SQLite", Observation(1, "decision", "We use SQLite")),
        ("* [Big Idea] a #x/y b", Observation(1, "big idea", "a #x/y b", ("x/y",))),
        ("  1. [tech] a (b) c", Observation(1, "tech", "a (b) c")),
        ("- [tech] a (see (b))", Observation(1, "tech", "a", context="see (b)")),
        ("- [tech] file(s)", Observation(1, "tech", "file(s)")),
        (
            "- [fact] a (2026-11-20; Li; until 2027-01-01)",
            Observation(1, "fact", "a", (), "Li", "2026-11-20", "2027-01-01"),
        ),
        ("- [fact] a (until May)", Observation(1, "fact", "a", context="until May")),
        (
            "- [事实] 甲（2026-11-20；至 2027-01-01）",
            Observation(1, "事实", "甲", (), "", "2026-11-20", "2027-01-01"),
        ),
    ],
)
def test_a_list_item_with_a_category_is_a_fact(line: str, fact: Observation) -> None:
    assert parse_document("note.md", line.encode()).observations == (fact,)


@pytest.mark.parametrize(
    "line",
    [
        *("- [ ] task", "- [x] task", "- [1] reference", "- [00:11] said", "- [^1] footnote"),
        *("- [text](http://a)", "- [[Note]] x", "> - [info] quoted", "[a b] no item"),
        *("- [category]no blank", "```\n- [code] a\n```", "- [a(b)] c", "- [!info] callout"),
    ],
)
def test_other_items_are_no_facts(line: str) -> None:
    assert parse_document("note.md", line.encode()).observations == ()


@pytest.mark.parametrize(
    ("line", "relation"),
    [
        ("- part_of [[Plan]]", "part_of"),
        ('- "works on" [[Plan|the plan]] (2026)', "works on"),
        ("- up:: [[Plan]]", "up"),
        ("- 属于 [[Plan]]", "属于"),
        ("- [[Plan]]", None),
        ("- see the [[Plan]]", None),
        ("- uses [[Plan]] and more", None),
        ("part_of [[Plan]]", None),
    ],
)
def test_a_list_item_with_one_link_relates_the_notes(line: str, relation: str | None) -> None:
    [link] = parse_document("note.md", line.encode()).links
    assert link.relation == relation


def test_code_of_an_item_in_an_item_states_no_fact() -> None:
    text = "- - ```\n    - [home] Lives in Rome\n    ```\n- 1. ~~~\n     - [home] Rome\n"
    assert parse_document("note.md", text.encode()).observations == ()


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "unit", ["[", "- ", "- [ab] (", "- a [[x]] ", '- "a', "- a [[x]]\n", "- [a b\n"]
)
def test_the_time_for_facts_and_relations_grows_with_the_text(unit: str) -> None:
    size = 20_000 // len(unit)

    def parse(text: str) -> None:
        parse_document("note.md", text.encode())

    assert growth.problem(parse, lambda count: unit * count, size, most_per_kb=0.02) is None


def test_links_say_the_relation_in_both_directions(kb: KnowledgeBase) -> None:
    assert [each.relation for each in kb.links("coffee").links] == ["requires", "contrasts with"]
    [back] = kb.backlinks("grinding").links
    assert (back.file, back.relation) == ("notes/coffee.md", "requires")


def test_the_newest_facts_are_recalled_without_those_that_hold_no_more(kb: KnowledgeBase) -> None:
    everything = kb.recall()
    assert everything.total == 5
    assert {TODAY} == {each.day for each in everything.facts if each.category == "technique"}
    assert not any(each.expired for each in everything.facts)
    [offer] = kb.recall(category="[Offer]", expired=True).facts
    assert (offer.until, offer.expired) == (YESTERDAY, True)
    assert kb.recall(category="offer").facts == ()


def test_facts_are_recalled_by_subject_words_tag_and_time(kb: KnowledgeBase) -> None:
    assert texts(kb.recall(about="Coffee Brewing")) == texts(kb.recall(about="coffee"))
    assert kb.recall(about="notes/tea.md").facts[0].subject == "Tea"
    assert "Water at 96 degrees" in texts(kb.recall("temperature of the water"))[:2]
    assert texts(kb.recall("数据库")) == ["数据库用 SQLite"]
    assert texts(kb.recall("water", about="tea")) == ["80 degrees for green tea"]
    assert texts(kb.recall(tags=["brewing"])) == ["Pour over is clearer than French press #brewing"]
    assert {each.category for each in kb.recall(tags=["coffee"]).facts} == {"method", "technique"}
    assert set(texts(kb.recall(since="2026-03-01", category="water"))) == {
        "80 degrees for green tea"
    }
    with pytest.raises(DocumentNotFoundError):
        kb.recall(about="nobody at all")
    with pytest.raises(InputError):
        kb.recall(since="whenever")


def test_a_search_finds_notes_by_their_facts(kb: KnowledgeBase) -> None:
    assert [hit.file for hit in kb.search("fact:price").hits] == ["notes/grinding.md"]
    found = kb.search("water fact:technique").hits
    assert [hit.file for hit in found] == ["notes/coffee.md"]


def test_context_is_a_note_with_the_notes_around_it(kb: KnowledgeBase) -> None:
    context = kb.build_context("coffee")
    assert context.text.startswith("# Coffee Brewing")
    assert "Half price" not in context.text
    related = {each.file: (each.relations, each.steps) for each in context.notes}
    assert related == {
        "notes/grinding.md": (("requires →",), 1),
        "notes/tea.md": (("contrasts with →", "←"), 1),
    }
    assert "burr grinder" in context.notes[1].text
    far = kb.build_context("grinding", steps=2)
    assert [(each.file, each.steps) for each in far.notes] == [
        ("notes/coffee.md", 1),
        ("notes/tea.md", 2),
    ]
    with pytest.raises(InputError):
        kb.build_context("coffee", steps=9)


def test_two_clients_remember_and_contradict_each_other(written: KnowledgeBase) -> None:
    first = written.remember(NewFact("Lives in Paris", "Alice", "home", source="Bob"))
    assert (first.file, first.written, first.others) == ("notes/memory/Alice.md", True, ())
    assert first.fact == f"- [home] Lives in Paris ({TODAY}; Bob)"
    second = written.remember(NewFact("Lives in Rome", "alice", "home", tags=("moved",)))
    assert [each.text for each in second.others] == ["Lives in Paris"]
    newest, older = written.recall("where does Alice live").facts[:2]
    assert (newest.text, newest.newer) == ("Lives in Rome #moved", None)
    assert (older.text, older.newer) == ("Lives in Paris", f"{newest.file}:{newest.line}")

    written.forget("Alice", "Paris")
    assert texts(written.recall(about="Alice")) == ["Lives in Rome #moved"]
    written.undo.undo_last()
    assert len(written.recall(about="Alice").facts) == 2
    assert [change.tool for change in written.undo.changes()][:3] == ["undo", "forget", "remember"]


def test_clients_that_begin_a_subject_at_once_lose_no_fact(written: KnowledgeBase) -> None:
    facts = [NewFact(f"Step {number}", "Plan B", "step") for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        remembered = list(threads.map(written.remember, facts))
    assert {each.file for each in remembered} == {"notes/memory/Plan B.md"}
    assert sorted(texts(written.recall(about="Plan B"))) == [fact.text for fact in facts]


def test_facts_of_the_subject_that_is_asked_for_come_first(written: KnowledgeBase) -> None:
    for number in range(12):
        written.remember(NewFact("Use water", f"Cleaning {number}", "decision"))
    written.remember(NewFact("Everything is kept in SQLite", "Project Z", "decision"))
    assert texts(written.recall("which database does Project Z use"))[0].endswith("in SQLite")


def test_facts_that_have_nothing_to_do_with_a_query_are_not_recalled(tmp_path: Path) -> None:
    with KnowledgeBase.open(
        tmp_path / "index.sqlite", Settings(embedder=HashEmbedder()), create=True
    ) as kb:
        (tmp_path / "notes").mkdir()
        kb.add_collection(tmp_path / "notes")
        for number in range(5):
            kb.remember(NewFact(f"Item {number} is kept in the shed", f"Thing {number}", "place"))
        kb.embed()
        assert kb.run_search("vsearch", SearchRequest("quarterly budget")).hits
        assert not kb.recall("quarterly budget").facts


def test_nothing_but_the_line_of_a_fact_is_forgotten(
    written: KnowledgeBase, tmp_path: Path
) -> None:
    note = tmp_path / "notes/lists.md"
    note.write_bytes(b"# Lists\r\n- [big] one\r\n- [bit] one\r\n- [big] last")
    written.index()
    with pytest.raises(EditError, match="2 facts have this text, at lines 2 and 3"):
        written.forget("lists", "one")
    written.forget("lists", "[bit] one")
    assert note.read_bytes() == b"# Lists\r\n- [big] one\r\n- [big] last"
    written.forget("lists", "last")
    assert note.read_bytes() == b"# Lists\r\n- [big] one\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "# A\n",
        "# A\r\n\r\nText",
        "---\ntags: [a]\n---\n",
        "",
        "# A\n\n## Observations\n- [note] kept (x)\n",
    ],
)
def test_the_last_fact_goes_with_the_heading_that_was_written_for_it(text: str) -> None:
    line = fact_line(NewFact("Drinks tea", "A"), "2026-11-30")
    stated = with_fact(text, line)
    assert line in stated
    assert without_fact(stated, "Drinks tea") == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("# A\n\n## Observations\n\n- [fact] x\n\n## B\ntext\n", "# A\n\n## B\ntext\n"),
        ("## Observations\n- [fact] x\n# B\n", "# B\n"),
        ("# A\n\n## Observations ##\n- [fact] x\n", "# A\n"),
        ("# A\n\n## Observations\n- [fact] x\n\n### B\n", "# A\n\n## Observations\n\n### B\n"),
        ("# A\n\n## Observations\n- [fact] x\n\nText\n", "# A\n\n## Observations\n\nText\n"),
        ("# A\n\n## Facts\n- [fact] x\n", "# A\n\n## Facts\n"),
        ("# Observations\n- [fact] x\n", "# Observations\n"),
    ],
)
def test_a_heading_stays_if_more_is_below_it_or_another_hand_wrote_it(text: str, left: str) -> None:
    assert without_fact(text, "x") == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("- [fact] x\n  - why\n\n    more\n- [fact] y\n", "- [fact] y\n"),
        ("- [fact] x\n  - why\n\nText\n", "\nText\n"),
        ("- a\n  - [fact] x\n\tsaid so\n  - b\n", "- a\n  - b\n"),
        ("1. [fact] x\r\n   because\r\n2. y\r\n", "2. y\r\n"),
        ("## Observations\n- [fact] x\n  - why\n## B\n", "## B\n"),
        ("- [fact] x\ntext\n", "text\n"),
    ],
)
def test_what_is_inside_a_fact_goes_with_it(text: str, left: str) -> None:
    assert without_fact(text, "x") == left


def test_a_fact_with_others_inside_stays_until_these_are_forgotten() -> None:
    text = "- [fact] x\n  - [fact] y\n- [fact] z\n"
    with pytest.raises(EditError, match=r"Other facts are inside this one, at line 2\."):
        without_fact(text, "x")
    assert without_fact(without_fact(text, "y"), "x") == "- [fact] z\n"


def test_undo_brings_a_fact_back_with_its_heading(written: KnowledgeBase, tmp_path: Path) -> None:
    written.remember(NewFact("Drinks tea", "Bob"))
    note = tmp_path / "notes/memory/Bob.md"
    before = note.read_bytes()
    written.forget("Bob", "tea")
    assert note.read_text().endswith("\n# Bob\n")
    written.undo.undo_last()
    assert note.read_bytes() == before


def test_the_same_fact_again_is_updated(written: KnowledgeBase, tmp_path: Path) -> None:
    fact = NewFact("Closed on Mondays", "Museum", "hours", until=TOMORROW)
    assert written.remember(fact).written
    assert not written.remember(fact).written
    later = written.remember(
        NewFact("Closed on  Mondays", "Museum", "hours", source="its site (x)")
    )
    assert later.written
    text = (tmp_path / "notes/memory/Museum.md").read_text()
    assert text.count("Closed on Mondays") == 1
    assert text.endswith(f"## Observations\n- [hours] Closed on Mondays ({TODAY}; its site [x])\n")


def test_a_subject_whose_name_would_steer_programs_is_one_note(
    written: KnowledgeBase,
) -> None:
    for text in ("It is a cat", "It sleeps"):
        assert written.remember(NewFact(text, "Claude")).file == "notes/memory/Claude-1.md"
    assert sorted(texts(written.recall(about="Claude"))) == ["It is a cat", "It sleeps"]


def test_a_fact_whose_last_day_has_passed_says_so(written: KnowledgeBase) -> None:
    past = written.remember(NewFact("Half price", "Museum", "offer", until=YESTERDAY))
    assert (past.written, past.expired) == (True, True)
    assert not written.remember(NewFact("Half price", "Museum", "offer", until=TODAY)).expired


def test_a_fact_is_added_to_a_note_that_exists(written: KnowledgeBase, tmp_path: Path) -> None:
    written.remember(NewFact("Black tea needs 95 degrees", "Tea", "water"))
    text = (tmp_path / "notes/tea.md").read_text()
    assert text.endswith(f"\n## Observations\n- [water] Black tea needs 95 degrees ({TODAY})\n")
    written.remember(NewFact("A good one", "coffee"))
    text = (tmp_path / "notes/coffee.md").read_text()
    assert f"- [fact] A good one ({TODAY})\n\n## Relations" in text


def test_what_no_note_can_state_is_refused(written: KnowledgeBase, tmp_path: Path) -> None:
    for fact in (
        NewFact(" ", "A"),
        NewFact("x" * 3000, "A"),
        NewFact("x", " "),
        NewFact("x", "A", category="[1]"),
        NewFact("x", "A", tags=("a b",)),
        NewFact("x", "A", until="soon"),
        NewFact("x", "///"),
    ):
        with pytest.raises(InputError):
            written.remember(fact)
    with pytest.raises(EditError, match="states no such fact"):
        written.forget("tea", "nothing of the kind")
    (tmp_path / "notes/two").mkdir()
    (tmp_path / "notes/two/tea.md").write_text("# Tea\n")
    written.index()
    with pytest.raises(AmbiguousNameError):
        written.remember(NewFact("x", "Tea"))

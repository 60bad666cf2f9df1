"""The calendar and the tasks of the page, over HTTP."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import httpx
import pytest
from support.site import Served, http_client, serve

TODAY = date.today()
LATE, SOON = TODAY - timedelta(days=3), TODAY + timedelta(days=3)
NOTES = {
    ".obsidian/daily-notes.json": '{"folder": "Day", "template": "Day/_template"}',
    "Day/_template.md": "# {{title}}\n",
    "Day/2026-11-20.md": "A walk.\n",
    "2026-W47.md": "A week.\n",
    "plan.md": f"# Plan\n\n- [ ] Paint [[boat]] 📅 {LATE} #work\n- [ ] Sail 📅 {SOON}\n"
    "- [ ] <b>x</b>\n- [ ] Launch 📅 2026-11-20\n",
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, NOTES, embed=False) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        yield client


def post(client: httpx.Client, address: str, **data: str) -> httpx.Response:
    match = re.search(r'name="csrf" content="([^"]+)"', client.get("/days").text)
    assert match is not None
    return client.post(address, data={"csrf": match[1], **data})


def test_a_month_shows_its_notes_and_what_is_due(client: httpx.Client) -> None:
    text = client.get("/days?month=2026-11").text
    assert "November 2026" in text and text.count("<tr>") == 6
    assert re.search(r'href="/days/2026-11-20" class="day has-note"', text)
    assert re.search(r'href="/days/2026-11-21" class="day"', text)
    assert re.search(r'href="/days/2026-W47" class="has-note"', text)
    assert "1 due" in text
    assert "?month=2026-10" in text and "?month=2026-12" in text
    assert "No day, week or month" in client.get("/days?month=nowhere").text
    assert "2026年11月" in client.get("/days?month=2026-11&lang=zh").text


def test_a_day_leads_to_its_note_or_offers_to_create_it(
    served: Served, client: httpx.Client
) -> None:
    there = client.get("/days/2026-11-20")
    assert (there.status_code, there.headers["location"]) == (303, "/note/notes/Day/2026-11-20.md")
    text = client.get("/days/2026-11-21").text
    assert "It would be notes/Day/2026-11-21.md." in text
    assert not (served.folder / "Day/2026-11-21.md").exists()
    assert "Another folder" not in text
    (served.folder / "journal").mkdir()
    (served.folder / "journal/2026-11-19.md").write_text("Elsewhere.\n")
    served.kb.index()
    text = client.get("/days/2026-11-19").text
    assert 'href="/note/notes/journal/2026-11-19.md"' in text
    answer = post(client, "/days/2026-11-21")
    assert answer.headers["location"] == "/note/notes/Day/2026-11-21.md"
    assert (served.folder / "Day/2026-11-21.md").read_text() == "# 2026-11-21\n"
    assert client.get("/days/nowhere").status_code == 400


def test_tasks_are_listed_by_the_day_when_they_are_due_and_ticked(
    served: Served, client: httpx.Client
) -> None:
    text = client.get("/days").text
    overdue, soon, undated = (
        text.index(each) for each in ("Overdue", "In the next seven days", "Without a date")
    )
    assert overdue < text.index("Paint boat") < soon < text.index(">Sail</a>") < undated
    assert "<b>x</b>" not in text
    assert "Sail" not in client.get("/days?tag=work").text
    fields = dict(re.findall(r'name="(docid|query)" value="([^"]*)"', text))
    answer = post(client, "/tick/notes/plan.md", line="3", done="1", back="days", **fields)
    assert answer.headers["location"] == "/days"
    assert "- [x] Paint" in (served.folder / "plan.md").read_text(encoding="utf-8")
    assert "Paint boat" not in client.get("/days").text


def test_of_several_collections_one_is_chosen(served: Served, client: httpx.Client) -> None:
    other = served.folder.parent / "other"
    (other / ".obsidian").mkdir(parents=True)
    (other / ".obsidian/daily-notes.json").write_text('{"folder": "D"}')
    served.kb.add_collection(other, name="other")
    text = client.get("/days").text
    assert 'href="?collection=other"' in text and "Open tasks" in text
    assert 'class="calendar"' in client.get("/days?collection=other").text


def test_a_view_says_that_it_is_empty_or_cut_off_or_wrong(
    served: Served, client: httpx.Client
) -> None:
    blocks = ("where: rating > 100", "where: foo((")
    views = "\n\n".join(f"```qmd\n{block}\n```" for block in blocks)
    (served.folder / "views.md").write_text(f"{views}\n\n```qmd\nfrom: many\n```\n")
    (served.folder / "many").mkdir()
    for number in range(102):
        (served.folder / f"many/{number}.md").write_text("A note.\n")
    served.kb.index()
    text = client.get("/note/notes/views.md").text
    assert "<p>No note is in this view.</p>" in text
    assert "The view ends too early." in text
    assert "… 2 more notes" in text
    text = client.get("/note/notes/views.md?lang=zh").text
    assert "没有符合这个视图的笔记。" in text
    assert "视图可以写什么，见 docs/zh/views.md。" in text
    assert "… 还有 2 篇笔记" in text
    typed = {"text": "```qmd\nwhere: foo((\n```", "file": "notes/views.md"}
    assert "视图不完整。" in post(client, "/part/preview", **typed).text


def test_what_a_link_or_another_app_fills_in_acts_no_more(client: httpx.Client) -> None:
    shared = {"title": "<% tp %> #t", "text": "- [ ] not mine\n```dataviewjs\nx\n```\n![[plan]]"}
    form = client.get("/add", params=shared).text
    match = re.search(r'<textarea[^>]*name="text"[^>]*>(.*?)</textarea>', form, re.DOTALL)
    assert match is not None
    assert html.unescape(match[1]).lstrip("\n") == (
        "< % tp %> \\#t\n- \\[ ] not mine\n```text\nx\n```\n\\!\\[[plan]]"
    )


def test_what_is_quoted_from_a_page_is_no_task(served: Served, client: httpx.Client) -> None:
    before = {each.text for each in served.kb.tasks().tasks}
    chosen = "- [ ] not mine #tag\n- [fact] y\n- TODO z\n[[plan]] k:: v <% tp %>"
    shared = {"url": "https://example.org/x", "title": "<% tp %> `= x` #t", "text": chosen}
    form = client.get("/add", params=shared).text
    match = re.search(r'<textarea[^>]*name="text"[^>]*>(.*?)</textarea>', form, re.DOTALL)
    assert match is not None
    quoted = html.unescape(match[1]).lstrip("\n")
    assert quoted == (
        "[< % tp %> \\`= x\\` \\#t](https://example.org/x)\n"
        "> - \\[ ] not mine \\#tag\n> - \\[fact] y\n> - TODO\xa0z\n> \\[[plan]] k:\\: v < % tp %>"
    )
    post(client, "/add", text=f"{quoted}\n- [ ] my own")
    assert {each.text for each in served.kb.tasks().tasks} == {*before, "my own"}
    assert not served.kb.recall().facts and not {each.name for each in served.kb.tags().tags} & {
        "tag",
        "t",
    }

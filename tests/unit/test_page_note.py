"""The view of a note and its history, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.site import Served, http_client, serve

from qmd.render import NoLinks, render_note
from qmd.server.page.note import lines_of
from qmd.server.page.note_text import PART, part_with_line, parts_of, shown_markdown, shown_plain
from qmd.system import clock
from qmd.values.writing import NoteEdit

NOTES = {
    "plan.md": (
        "---\ntags: [work]\nstatus: in progress\nsee: '[[Harbour]]'\nsite: https://example.com/\n"
        "aliases: [The plan]\n---\n# Plan\n\nBuy a boat, see [[Harbour]].\n\n## Where\n\n"
        "![[Harbour#Depth]]\n\n[[Gone]] and [[Harbour#None]]\n"
    ),
    "Harbour.md": "# Harbour\n\nThe boat lies here.\n\n## Depth\n\nFive metres.\n",
    "2025/diary.md": "# Diary\n\nI wrote the [[plan]].\n\nThe [[plan]] again.\n",
    "a/same.md": "# A\n",
    "b/same.md": "# B\n",
    "long.md": "# Long\n\n" + "".join(f"## Part {n}\n\n{'word ' * 200}\n\n" for n in range(400)),
    "empty.md": "",
    "unclosed.md": "---\ntitle: Boat\n\nShe leaks: badly <b>\n\nPump her.\n\n---\n\nMore.\n",
    "numbers.md": (
        "---\nver: 1.10\nprices: [2.50, 3, 0.5]\nsteps:\n- 4.200\nlarge: 1e3\nwhole: 4.\n---\n"
        "Weighs.\n\nload:: 7.70\n"
    ),
    "endless.md": "---\ntitle: Boat\n\nShe sails.\n",
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, NOTES, embed=False, editor="vscode") as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        yield client


def token(client: httpx.Client) -> str:
    page = client.get("/").text
    match = re.search(r'name="csrf" content="([^"]+)"', page)
    assert match
    return match[1]


def test_a_note_with_all_that_is_beside_it(client: httpx.Client) -> None:
    response = client.get("/note/notes/plan.md")
    assert response.status_code == 200
    page = response.text
    assert '<a class="to-note" href="/note/notes/Harbour.md"' in page
    assert "Five metres." in page  # embedded
    assert 'href="/new?name=Gone&amp;from=notes/plan.md"' in page
    assert 'href="/?q=tag%3Awork"' in page
    assert 'href="/?q=status%3A%22in%20progress%22"' in page
    assert '<a href="/note/notes/Harbour.md">Harbour</a>' in page  # a property
    assert '<a class="to-web" href="https://example.com/"' in page
    assert "The plan" in page
    assert 'href="/note/notes/2025/diary.md?line=3"' in page and "line 5" in page
    assert "no such heading" in page
    assert '<svg class="graph"' in page and 'aria-label="diary, links here"' in page
    assert page.count("<h1") == 1
    assert "vscode://file" in page and "obsidian://" not in page


def test_damaged_frontmatter_is_shown_as_written_below_its_warning(client: httpx.Client) -> None:
    page = client.get("/note/notes/unclosed.md?line=6").text
    assert page.index("The frontmatter is not valid YAML") < page.index("title: Boat")
    assert '<pre data-line="1" id="at"' in page
    assert "She leaks: badly &lt;b&gt;\n\nPump her.\n" in page
    assert '<p data-line="10">More.</p>' in page
    endless = client.get("/note/notes/endless.md").text
    assert "The frontmatter never ends" in endless
    assert "She sails." in endless
    assert "notice warn" not in client.get("/note/notes/plan.md").text


def test_a_number_is_shown_with_the_digits_that_are_written(client: httpx.Client) -> None:
    page = client.get("/note/notes/numbers.md").text
    shown = re.findall(
        r'<a href="/\?q=(?:ver|prices|steps|large|whole|load)%3A[\de.]+">([^<]+)</a>', page
    )
    assert shown == ["1.10", "2.50", "3", "0.5", "4.200", "1e3", "4.", "7.70"]
    assert 'href="/?q=ver%3A1.10"' in page


def test_a_name_leads_to_the_address_of_its_note(client: httpx.Client) -> None:
    for name, address in {
        "harbour": "/note/notes/Harbour.md",
        "The%20plan": "/note/notes/plan.md",
        "notes/plan": "/note/notes/plan.md",
        "plan%23Where": "/note/notes/plan.md?line=12",
        "plan.md:3": "/note/notes/plan.md?line=3",
    }.items():
        response = client.get(f"/note/{name}")
        assert (response.status_code, response.headers["location"]) == (302, address)
    kept = client.get("/note/harbour?line=3")
    assert kept.headers["location"] == "/note/notes/Harbour.md?line=3"


def test_a_miss_says_what_may_be_meant(client: httpx.Client) -> None:
    response = client.get("/note/notes/harbor.md")
    assert response.status_code == 404
    assert 'href="/note/notes/Harbour.md"' in response.text
    assert 'href="/new?name=notes/harbor.md"' in response.text
    assert "/new?" not in client.get("/note/notes/gone.png").text  # which is no note
    several = client.get("/note/same")
    assert several.status_code == 300
    assert 'href="/note/notes/a/same.md"' in several.text
    assert 'href="/note/notes/b/same.md"' in several.text


@pytest.mark.parametrize(
    ("text", "lines"),
    [("12", (12, 12)), ("12-20", (12, 20)), ("20-12", (20, 20)), ("0", None), ("x", None)],
)
def test_the_lines_of_an_address(text: str, lines: tuple[int, int] | None) -> None:
    assert lines_of(text) == lines


def test_the_line_asked_for_is_marked_and_takes_the_focus(client: httpx.Client) -> None:
    page = client.get("/note/notes/plan.md?line=10").text
    assert re.search(r'<p [^>]*id="at"[^>]* tabindex="-1" autofocus[^>]*>Buy a boat', page)
    heading = client.get("/note/notes/plan.md?line=12").text
    assert re.search(r'<h2 [^>]*class="at" tabindex="-1" autofocus', heading)
    assert "autofocus" not in client.get("/note/notes/plan.md").text


def test_no_text_of_a_note_takes_the_focus() -> None:
    text = 'x <p class="at" id="at">y</p> `<p id="at">` <a title=\'<b id="at">\'>z</a>\n\nmarked\n'
    html = shown_markdown(text, NoLinks(), lines=(3, 3), number=1).html
    assert html.count("autofocus") == 1
    assert re.search(r"<p [^>]*autofocus[^>]*>marked", html)


def test_a_long_note_comes_in_parts_that_hold_all_of_it(client: httpx.Client) -> None:
    text = NOTES["long.md"]
    parts = parts_of(text)
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(part.end - part.start <= PART for part in parts)
    for part in parts:
        assert part.first_line == text.count("\n", 0, part.start) + 1
    page = client.get("/note/notes/long.md?line=1203").text
    number = part_with_line(parts, 1203)
    assert number > 1 and f"Part {number} of {len(parts)}" in page
    assert re.search(r'id="h-part-300"[^>]*class="at"', page)
    assert client.get("/note/notes/long.md?part=99").text.count('rel="next"') == 0


def test_a_block_of_code_is_not_cut() -> None:
    before, code = "a line of text that goes\n\n" * 4_500, "# comment\n\n" * 4_000
    after = "a text\n\n" * 4_500
    text = f"{before}```sh\n{code}```\n{after}"
    parts = parts_of(text)
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert [text[part.start : part.end].count("```") for part in parts] == [0, 2, 0]
    assert not any(part.fence for part in parts)


def test_a_block_of_code_longer_than_a_part_goes_on_in_the_next() -> None:
    text = "~~~py\n" + "a = '# no heading'\n" * (PART // 9) + "~~~\n\n# Heading\n"
    assert [part.fence for part in parts_of(text)] == ["", "~~~py", "~~~py"][: len(parts_of(text))]
    shown = shown_markdown(text, NoLinks(), lines=None, number=len(parts_of(text)))
    assert [heading.text for heading in shown.headings] == ["Heading"]
    assert "no heading" in shown.html and "~~~" not in shown.html


def test_a_line_longer_than_a_part_is_cut() -> None:
    text = "x" * (2 * PART + 5)
    assert [part.end - part.start for part in parts_of(text)] == [PART, PART, 5]


def test_a_part_has_fewer_characters_of_a_text_of_short_lines() -> None:
    for end in ("\n", "\r\n", "\r"):
        text = f"- a{end}" * 45_000
        parts = parts_of(text)
        assert "".join(text[part.start : part.end] for part in parts) == text
        assert [part.first_line for part in parts] == [1, 10_001, 20_001, 30_001, 40_001]
    assert len(parts_of("some words\n" * 9_999)) == 1


def test_a_text_of_short_lines_is_previewed_and_embedded_within_the_same_limits() -> None:
    assert render_note("- a\n" * 30_000, NoLinks()).left_out == 4 * 10_000
    assert not render_note("words that fill a line\n" * 13_000, NoLinks()).left_out


def test_a_part_that_begins_like_frontmatter_is_shown_whole() -> None:
    text = "aaaa bbbb cccc dddd\n" * (PART // 20 - 1) + "\n---\nkey: value\n---\n" + "b\n" * 50
    shown = shown_markdown(text, NoLinks(), lines=None, number=2)
    assert "key: value" in shown.html


def test_text_that_is_not_markdown_is_shown_as_it_is() -> None:
    html = shown_plain("a <b>\n[[c]]\n", lines=(2, 2), number=1).html
    assert "a &lt;b&gt;" in html and "[[c]]" in html
    assert '<span data-line="2" class="at" id="at" tabindex="-1" autofocus>' in html


def test_similar_notes_without_vectors_say_why(served: Served, client: httpx.Client) -> None:
    assert "has no vectors yet" in client.get("/part/similar/notes/plan.md").text
    served.kb.embed()
    assert 'href="/note/notes/' in client.get("/part/similar/notes/plan.md").text
    assert 'href="/note/notes/' in client.get("/note/notes/plan.md?similar=1").text


def test_the_graph_has_a_page_with_a_list(client: httpx.Client) -> None:
    page = client.get("/graph/notes/plan.md").text
    assert page.count('href="/note/notes/2025/diary.md"') == 2
    assert '{"address": "/note/notes/Harbour.md", "file": "notes/Harbour.md"' in page
    harbour = client.get("/graph/notes/Harbour.md").text
    assert "Two links away" in harbour and 'href="/note/notes/2025/diary.md">diary' in harbour
    tagged = client.get("/graph/notes/Harbour.md?tag=work").text
    assert "2025/diary.md" not in tagged and "selected>#work" in tagged
    assert "linked from here" in page
    assert "No note is linked with it" in client.get("/graph/notes/empty.md").text


def test_the_history_is_shown_compared_and_restored(served: Served, client: httpx.Client) -> None:
    served.kb.replace_note("notes/Harbour.md", "# Harbour\n\nThe ship lies here.\n")
    served.kb.replace_note("notes/Harbour.md", "# Harbour\n\nNothing lies here.\n")
    page = client.get("/history/notes/Harbour.md").text
    assert "<b>The ship</b>" in page and "<b>Nothing</b>" in page
    first = served.kb.revisions.history("notes/Harbour.md")[-1].number
    assert "<b>boat</b>" in client.get(f"/history/notes/Harbour.md?revision={first}").text
    now = client.get(f"/history/notes/Harbour.md?revision={first}&with=now").text
    assert "Nothing" in now
    day = clock.local(served.kb.revisions.history("notes/Harbour.md")[0].created).date()
    assert f'<a href="?day={day}">' in page and "2 changes" in page
    of_day = client.get(f"/history/notes/Harbour.md?day={day}").text
    assert "<b>The boat</b>" in of_day and "<b>Nothing</b>" in of_day and "The ship" not in of_day
    assert client.get("/history/notes/Harbour.md?day=2020-01-01").status_code == 404
    form = {"revision": str(first), "csrf": "wrong"}
    assert client.post("/history/notes/Harbour.md", data=form).status_code == 403
    form["csrf"] = token(client)
    response = client.post("/history/notes/Harbour.md", data=form)
    assert (response.status_code, response.headers["location"]) == (303, "/note/notes/Harbour.md")
    assert (served.folder / "Harbour.md").read_text() == NOTES["Harbour.md"]


def test_what_another_program_changed_is_not_credited_to_a_change(
    served: Served, client: httpx.Client
) -> None:
    file, kb = served.folder / "Harbour.md", served.kb
    address = "/history/notes/Harbour.md"

    def by_hand(line: str) -> None:
        file.write_text(f"{file.read_text()}{line}\n")
        kb.index()

    kb.edit_note("notes/Harbour.md", NoteEdit("append", text="One by qmd."))
    assert "Another program" not in client.get(address).text
    by_hand("One by hand.")
    page = client.get(address).text
    assert "Another program changed the file after this change" in page and "One by hand." in page
    assert "Another program" not in client.get(f"{address}?with=now").text
    kb.edit_note("notes/Harbour.md", NoteEdit("append", text="Two by qmd."))
    kb.delete_note("notes/Harbour.md")
    file.write_text("# Written anew\n")
    kb.index()
    deleted, second, first = (each.number for each in kb.revisions.history("notes/Harbour.md"))
    page = client.get(f"{address}?revision={deleted}").text
    assert "Another program" not in page and "Written anew" not in page
    page = client.get(f"{address}?revision={second}").text
    assert "Another program" not in page and "2 added, 0 removed" in page  # one is blank
    assert "Another program" in client.get(f"{address}?revision={first}").text


def test_a_file_that_is_not_utf8_has_a_history(served: Served, client: httpx.Client) -> None:
    file = served.folder / "Harbour.md"
    file.write_bytes("# Harbour\n\nDas Boot für alle Tage.\n".encode("utf-16"))
    served.kb.index()
    served.kb.edit_note("notes/Harbour.md", NoteEdit("append", text="Mehr."))
    page = client.get("/history/notes/Harbour.md").text
    assert "Mehr." in page and "Another program" not in page


def test_a_deleted_note_is_restored_from_its_history(served: Served, client: httpx.Client) -> None:
    served.kb.delete_note("notes/Harbour.md")
    missing = client.get("/note/notes/Harbour.md")
    assert missing.status_code == 404 and 'href="/history/notes/Harbour.md"' in missing.text
    page = client.get("/history/notes/Harbour.md").text
    assert "This file was deleted" in page
    number = served.kb.revisions.history("notes/Harbour.md")[0].number
    form = {"revision": str(number), "csrf": token(client)}
    assert client.post("/history/notes/Harbour.md", data=form).status_code == 303
    assert client.get("/note/notes/Harbour.md").status_code == 200


def test_a_file_without_history_says_what_is_kept(client: httpx.Client) -> None:
    assert "No earlier text of this file is kept" in client.get("/history/notes/plan.md").text
    assert client.get("/history/notes/plan.md?revision=5").status_code == 404


def test_a_server_that_only_reads_shows_and_restores_nothing(tmp_path: Path) -> None:
    with serve(tmp_path, NOTES, embed=False, read_only=True) as server:
        server.kb.replace_note("notes/Harbour.md", "# Other\n")
        with http_client(server.url) as client:
            page = client.get("/history/notes/Harbour.md").text
            assert "nothing can be restored" in page and 'method="post"' not in page
            form = {"revision": "1", "csrf": token(client)}
            assert client.post("/history/notes/Harbour.md", data=form).status_code == 403
            note = client.get("/note/notes/plan.md").text
            assert "/new?" not in note and "/edit/" not in note


def test_the_list_of_tasks_is_offered_where_there_are_some(tmp_path: Path) -> None:
    notes = {"tasks.md": "- [ ] paint\n", "around.md": "![[tasks]]\n"}
    with serve(tmp_path, notes, embed=False) as server, http_client(server.url) as client:
        assert 'href="/tick/notes/tasks.md"' in client.get("/note/notes/tasks.md").text
        around = client.get("/note/notes/around.md").text
        assert 'role="checkbox"' in around and "/tick/" not in around

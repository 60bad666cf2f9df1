"""Citations in an answer as links, and marks where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from markupsafe import Markup

from qmd.render import NoLinks, render_note
from qmd.server.page.ask import TurnView, answer_html, sources_of
from qmd.server.page.templating import Texts, engine_texts

TEXTS = Texts()


def citation(answer: str, written: str, file: str, first: int, last: int, **fields: Any) -> Any:
    """A citation of an answer, as its event holds it."""
    start = answer.index(written, fields.pop("after", 0))
    return {
        "file": file,
        "from_line": first,
        "to_line": last,
        "status": "ok",
        "quote": "",
        "reason": "",
        "start": start,
        "end": start + len(written),
        **fields,
    }


def html_of(answer: str, *citations: dict[str, Any], unsupported: tuple[str, ...] = ()) -> str:
    turn = TurnView("1", 1, "?", answer=answer, unsupported=unsupported)
    turn.citations, turn.sources = citations, sources_of(citations)
    return answer_html(turn, lambda text: Markup(render_note(text, NoLinks()).html), words)


def words(name: str, **values: object) -> str:
    return TEXTS.text("en", name, **values)


def test_a_citation_is_a_link_to_the_lines() -> None:
    answer = "It lies there [notes/a b.md:3-5]."
    html = html_of(answer, citation(answer, "[notes/a b.md:3-5]", "notes/a b.md", 3, 5))
    assert 'href="/note/notes/a%20b.md?line=3-5"' in html
    assert 'data-source="turn-1-source-1"' in html
    assert "[notes" not in html


def test_a_citation_of_a_pdf_leads_to_its_page() -> None:
    answer = "It lies there [notes/a.pdf:3]."
    html = html_of(
        answer, citation(answer, "[notes/a.pdf:3]", "notes/a.pdf", 3, 3, anchor="page=2")
    )
    assert 'href="/note/notes/a.pdf?line=3#page=2"' in html


def test_the_same_lines_have_the_same_number() -> None:
    answer = "[notes/a.md:1] [notes/b.md:2] [notes/a.md:1]"
    first = citation(answer, "[notes/a.md:1]", "notes/a.md", 1, 1)
    second = citation(answer, "[notes/b.md:2]", "notes/b.md", 2, 2)
    third = citation(answer, "[notes/a.md:1]", "notes/a.md", 1, 1, after=20)
    html = html_of(answer, first, second, third)
    assert [part[0] for part in html.split('aria-label="Source ')[1:]] == ["1", "2", "1"]


def test_several_citations_in_one_bracket_are_several_links() -> None:
    answer = "It is so [notes/a.md:1; notes/b.md:2]."
    where = "[notes/a.md:1; notes/b.md:2]"
    html = html_of(
        answer,
        citation(answer, where, "notes/a.md", 1, 1),
        citation(answer, where, "notes/b.md", 2, 2),
    )
    assert html.count('class="cite"') == 2


def test_a_false_citation_says_so_in_the_text() -> None:
    answer = "It is red [notes/a.md:9]."
    false = citation(answer, "[notes/a.md:9]", "notes/a.md", 9, 9, status="not_found")
    html = html_of(answer, false)
    assert "cite missing" in html
    assert "1 · not found in the source" in html


def test_lines_that_support_one_sentence_and_not_another_are_two_sources() -> None:
    answer = "It is blue [notes/a.md:9]. It is red [notes/a.md:9]."
    good = citation(answer, "[notes/a.md:9]", "notes/a.md", 9, 9)
    bad = citation(answer, "[notes/a.md:9]", "notes/a.md", 9, 9, after=20, status="not_found")
    html = html_of(answer, good, bad)
    assert html.count('class="cite"') == 1
    assert html.count('class="cite missing"') == 1


def test_what_is_no_citation_of_the_answer_stays_text() -> None:
    html = html_of("See [notes/a.md:1] and [x](javascript:alert(1)).")
    assert "cite" not in html
    assert "[notes/a.md:1]" in html
    assert 'href="javascript' not in html


def test_html_of_the_model_cannot_look_like_a_checked_citation() -> None:
    html = html_of('<a class="cite" data-source="turn-1-source-1" href="/x">1</a>')
    assert 'class="cite"' not in html
    assert "data-source" not in html


def test_a_sentence_without_a_source_is_marked_at_its_end() -> None:
    html = html_of("It is *red*. It is old.", unsupported=("It is *red*. ", "It is old."))
    assert html.count('class="unsupported"') == 2
    assert "red</em>.<span" in html


def test_a_mark_in_a_table_stays_in_its_cell() -> None:
    table = "| Colour | Age |\n|---|---|\n| It is red | It is old |\n"
    html = html_of(table, unsupported=("| Colour | Age |\n", "| It is red | It is old |\n"))
    assert "<table" in html
    assert "It is old<span" in html


@pytest.mark.parametrize(
    "file", ['notes/"><img src=x>.md', "notes/a?b#c.md", "notes/\ud800.md", "notes/年度.md"]
)
def test_no_name_of_a_file_leaves_its_attribute(file: str) -> None:
    answer = f"[{file}:1]"
    html = html_of(answer, citation(answer, answer, file, 1, 1))
    address = html.partition('href="')[2].partition('"')[0]
    assert address.startswith("/note/notes/")
    assert address.endswith(".md?line=1")
    assert "<img" not in html


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("there is no such document", "没有这个文档"),
        ("the document has 12 lines", "该文档只有 12 行"),
        ("the lines do not say 9,000, 7", "这几行里没有 9,000, 7"),
        ("a reason of later", "a reason of later"),
    ],
)
def test_the_reason_of_a_failure_is_in_the_language_of_the_person(reason: str, shown: str) -> None:
    assert engine_texts().translated(reason, "zh") == shown

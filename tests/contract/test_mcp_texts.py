"""The texts of the interface's specification, to the letter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.errors import (
    CollectionNotFoundError,
    DocumentNotFoundError,
    InputError,
    NoMatchError,
    VectorIndexMissingError,
)
from qmd.operations import texts
from qmd.values import Collection, DocumentInfo, DocumentSlice, Freshness, Hit, Status
from qmd.values.search import rounded, shown_relevance

HIT = Hit("#abc123", "path/to/file.md", "Title", 0.85, None, "1: x", 1, 0.5, "exact")


def test_the_summary_is_a_header_a_blank_line_and_a_line_for_each_hit() -> None:
    other = replace(HIT, docid="#def456", file="another/path.md", relevance=0.002)
    assert texts.search_summary([HIT, replace(other, title="Another Title")], "query") == (
        'Found 2 results for "query":\n\n'
        "#abc123 50% path/to/file.md - Title\n"
        "#def456 <1% another/path.md - Another Title"
    )


def test_one_result_is_singular_and_none_has_its_own_sentence() -> None:
    assert texts.search_summary([HIT], "q").startswith('Found 1 result for "q":\n\n#')
    assert texts.search_summary([], "q") == 'No results found for "q"'


@pytest.mark.parametrize(
    ("score", "shown", "percentage"),
    [(0, 0.0, 0), (0.125, 0.13, 13), (0.845, 0.85, 85), (0.005, 0.01, 1), (0.999, 1.0, 100)],
)
def test_halves_are_rounded_up_as_javascript_does(
    score: float, shown: float, percentage: int
) -> None:
    assert rounded(score) == shown
    assert shown_relevance(score) == (f"{percentage}%" if percentage else "<1%")


@given(st.floats(0, 1))
def test_score_and_percentage_say_the_same(score: float) -> None:
    assert shown_relevance(score).strip("<%") == str(round(rounded(score) * 100) or 1)


def test_line_numbers_start_where_told() -> None:
    assert texts.line_numbers("a\nb", 9) == "9: a\n10: b"


def test_a_final_newline_gets_no_number() -> None:
    assert texts.line_numbers("a\n\nb\n") == "1: a\n2: \n3: b\n"
    assert texts.line_numbers("") == ""


def test_a_blank_last_line_of_an_excerpt_gets_its_number() -> None:
    assert texts.line_numbers("a\n", 1, lines=2) == "1: a\n2: "
    assert texts.line_numbers("", 7, lines=1) == "7: "
    assert texts.line_numbers("a\n\n", 1, lines=2) == "1: a\n2: \n"


def test_line_separators_of_unicode_end_no_line() -> None:
    assert texts.line_numbers("a\u2028b\x0cc\r\nd\re") == "1: a\u2028b\x0cc\r\n2: d\r3: e"


@settings(deadline=None)
@given(st.text(alphabet="ab\r\n\u2028 "), st.integers(1, 50))
def test_numbering_only_adds_numbers(text: str, first: int) -> None:
    numbered = texts.line_numbers(text, first)
    lines = numbered.splitlines(keepends=True) if "\u2028" not in text else None
    if lines is not None:
        for number, line in enumerate(lines, first):
            assert line.startswith(f"{number}: ")
        assert "".join(line.split(": ", 1)[1] for line in lines) == text


def test_the_truncation_notice_is_mcps() -> None:
    assert texts.with_notice("a\nb", 7, texts.MCP) == "a\nb\n\n[... truncated 7 more lines]"
    assert texts.with_notice("a\nb\n", 0, texts.MCP) == "a\nb\n"


def test_the_skip_notice_names_the_size_in_kilobytes_and_the_tool() -> None:
    assert texts.skip_notice("file2.md", 15 * 1024, texts.MCP) == (
        "[SKIPPED: file2.md - File too large (15KB). "
        "Use 'qmd_get' with file=\"file2.md\" to retrieve.]"
    )
    assert "(11KB)" in texts.skip_notice("f", 10 * 1024 + 512, texts.MCP)


def test_comments_above_a_document_name_its_file_and_context() -> None:
    document = DocumentSlice(
        DocumentInfo(1, "notes", "a.md", "A", "#123456", 1, ""), "meeting notes", 1, 0, "x", 1
    )
    file, context = (
        "<!-- File: notes/a.md, docid #123456 -->\n",
        "<!-- Context: meeting notes -->\n",
    )
    assert texts.document_heading(document, texts.MCP) == file + context + "\n"
    alone = replace(document, context=None)
    assert texts.document_heading(alone, texts.MCP) == file + "\n"
    empty = replace(alone, text="", lines=0)
    assert texts.document_heading(empty, texts.MCP) == file + "\n"
    assert texts.document_heading(document, texts.REST) == ""


def status(**changes: object) -> Status:
    plain = Status("db", 1, 0, 0, 0, 0, 0, True, None, None, 0, None, None, (), (), {})
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_the_status_text_is_the_sources() -> None:
    collections = (
        Collection(1, "a", "/path/to/docs", "**/*.md", (), 1000, None, None),
        Collection(2, "b", "/another/path", "**/*.md", (), 234, None, None),
    )
    full = status(total_documents=1234, needs_embedding=56, collections=collections)
    assert texts.status_text(full) == (
        "QMD Index Status:\n"
        "  Total documents: 1234\n"
        "  Needs embedding: 56\n"
        "  Vector index: yes\n"
        "  Collections: 2\n"
        "    - /path/to/docs (1000 docs)\n"
        "    - /another/path (234 docs)"
    )
    assert "  Vector index: no\n" in texts.status_text(replace(full, has_vector_index=False))


def test_status_tells_to_run_nothing_that_a_process_does_by_itself() -> None:
    one = (Collection(1, "a", "/a", "**/*.md", (), 1, None, None),)
    kept = Freshness(None, 0, 0, indexing=False, leader=False, watch="native", embedding=True)
    filled = status(collections=one, total_documents=1, needs_embedding=1)
    assert "qmd why FILE" in str(texts.status_advice(status(collections=one), kept))
    assert "in the background" in str(texts.status_advice(filled, kept))
    assert "qmd embed" not in str(texts.status_advice(filled, kept))
    indexing = replace(kept, indexing=True, files_pending=1328)
    assert texts.status_advice(status(collections=one), indexing) == (
        "Files are being indexed: 1,328 files left."
        " Searches answer from the documents that are in already."
    )


def test_status_advises_what_to_do_next_and_is_silent_when_all_is_done() -> None:
    one = (Collection(1, "a", "/a", "**/*.md", (), 1, None, None),)
    idle = Freshness(None, 0, 0, indexing=False, leader=False)
    assert "qmd collection add" in str(texts.status_advice(status(), idle))
    assert "qmd index" in str(texts.status_advice(status(collections=one), idle))
    filled = status(collections=one, total_documents=1)
    assert "qmd embed" in str(texts.status_advice(replace(filled, needs_embedding=1), idle))
    assert texts.status_advice(filled, idle) is None
    assert texts.status_excluded(filled) is None
    excluded = replace(filled, collections=(replace(filled.collections[0], included=False),))
    assert filled.collections[0].name in str(texts.status_excluded(excluded))
    assert texts.status_missing(filled) is None
    gone = replace(filled, collections=(replace(filled.collections[0], missing=True),))
    assert str(texts.status_missing(gone)).endswith("last indexed: a (/a).")


def test_a_missing_document_lists_its_suggestions() -> None:
    error = DocumentNotFoundError("unknown.md", ["known/similar.md", "another/path.md"])
    assert texts.error_text(error) == (
        "Document not found: unknown.md\n\n"
        "Did you mean one of these?\n"
        "  - known/similar.md\n"
        "  - another/path.md"
    )
    assert texts.error_text(DocumentNotFoundError("x")) == "Document not found: x"


def test_an_error_brings_its_hint_unless_the_message_already_says_it() -> None:
    assert texts.error_text(VectorIndexMissingError()) == (
        "Vector index not found. Run 'qmd embed' first to create embeddings."
    )
    assert texts.error_text(CollectionNotFoundError("nots", ["notes"])) == (
        "Collection not found: nots\n\nDid you mean: notes"
    )
    assert texts.error_text(InputError("No.")) == "No."


def test_no_match_is_said_without_a_hint() -> None:
    error = NoMatchError("No files matched pattern: *.txt", hint="Run 'qmd ls'.")
    assert texts.error_text(error) == "No files matched pattern: *.txt"

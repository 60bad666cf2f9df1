"""What holds for every format of files."""

from __future__ import annotations

from typing import Any

import pytest

from qmd.errors import MissingExtraError
from qmd.files.moved_links import REWRITERS
from qmd.ingest.file_job import version_of
from qmd.parse import document as by_format
from qmd.parse import formats
from qmd.parse.convert.source_code import LANGUAGES
from qmd.parse.converted import Anchor, Converted
from qmd.parse.decode import decode
from qmd.parse.document import MAX_LABEL, parse_document, parse_markdown
from qmd.parse.formats import (
    CODE,
    EPUB,
    FORMATS,
    MARKDOWN,
    FileFormat,
    format_of,
    is_shown_as_markdown,
)
from qmd.values import DocumentAnchor, ParsedDocument
from tests.support.archives import archive, epub


@pytest.mark.parametrize("file_format", [MARKDOWN, *FORMATS], ids=lambda each: each.name)
def test_every_format_has_a_parser(file_format: FileFormat) -> None:
    assert callable(by_format.parser_of(file_format))


def test_no_two_formats_claim_a_suffix() -> None:
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(suffixes) == len(set(suffixes))
    for file_format in FORMATS:
        for suffix in file_format.suffixes:
            assert format_of(f"folder/NAME{suffix.upper()}") is file_format


def test_only_formats_with_links_have_a_rewriter() -> None:
    assert all(each.has_links for each in REWRITERS)


def test_what_is_converted_is_shown_as_markdown() -> None:
    shown = ["a.md", "a.MARKDOWN", "a.canvas", "a.jpg", "a.txt", "a"]
    assert list(map(is_shown_as_markdown, shown)) == [True, True, True, True, False, False]


@pytest.mark.parametrize("data", [b"# One\n", "# Zwölf #tag\n".encode("latin-1"), b"a\xff\n" * 9])
def test_a_decoded_text_is_the_same_document_as_its_file(data: bytes) -> None:
    document = parse_document("a.md", data)
    assert parse_markdown("a.md", decode(data)) == document
    assert document.encoding == decode(data).encoding


LISTING = FileFormat("listing", (".listing",), parser="none:convert", version=3)


def document_of(markdown: str, **fields: Any) -> ParsedDocument:
    return by_format.converted_document(LISTING, "src/a.listing", Converted(markdown, **fields))


def test_what_looks_like_a_mark_of_a_note_is_text_in_a_converted_file() -> None:
    text = "---\ntags: no\n---\n\n#include #todo\n\n[[page]] ![[embed]] key:: value [a](b.md)\n"
    document = document_of(text)
    assert document.text == text
    assert (document.tags, document.links, dict(document.properties)) == ((), (), {})
    assert (document.title, document.body_start, document.date) == ("a", 0, None)
    assert [chunk.start_char for chunk in document.chunks] == [0]


def test_a_converter_names_title_date_tags_and_other_properties() -> None:
    given = {"tags": ["one"], "author": "Ada"}
    document = document_of("text\n", title=" A\n b ", date="2024-05-01", properties=given)
    assert (document.title, document.date, document.tags) == ("A b", "2024-05-01", ("one",))
    assert document.properties == given


def test_no_chunk_crosses_a_page_and_headings_stay_above_the_next_pages() -> None:
    pages = ["# One\n\nfirst\n\n", "second\n\n", "## Two\n\nthird\n\n", "# Three\n\nfourth\n"]
    starts = [sum(map(len, pages[:number])) for number in range(len(pages))]
    anchors = [Anchor("page", str(number), start) for number, start in enumerate(starts, start=1)]
    document = document_of("".join(pages), anchors=tuple(anchors))
    assert document.anchors == tuple(
        DocumentAnchor("page", str(number), None, line)
        for number, line in ((1, 1), (2, 5), (3, 7), (4, 11))
    )
    found = [(document.text[c.start_char : c.end_char], c.heading_path) for c in document.chunks]
    assert found == [
        ("# One\n\nfirst", ("One",)),
        ("second", ("One",)),
        ("## Two\n\nthird", ("One", "Two")),
        ("# Three\n\nfourth", ("Three",)),
    ]


def test_a_block_that_goes_on_over_a_page_is_cut_there() -> None:
    text = "```\none\ntwo\n```\n"
    document = document_of(text, anchors=(Anchor("page", "1", 0), Anchor("page", "2", 8)))
    assert [text[c.start_char : c.end_char] for c in document.chunks] == ["```\none", "two\n```"]


def test_what_no_database_stores_is_replaced_and_what_is_too_long_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert document_of("a\0b\ud800\n").text == "a\ufffdb\ufffd\n"
    monkeypatch.setattr("qmd.parse.document.MAX_ANCHORS", 1)
    anchors = tuple(Anchor("line", str(number), number * 5) for number in range(3))
    converted = Converted("1234\n6789\nabcd\n", anchors=anchors)
    document = by_format.converted_document(LISTING, "src/a.listing", converted, most=10)
    assert document.text == "1234\n6789\n"
    assert document.anchors == (DocumentAnchor("line", "0", None, 1),)
    assert document.warnings == (
        "The text is too long: only the first 10 characters were read.",
        "Only the first 1 of its 2 places are known.",
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"anchors": (Anchor("page", "1", -1),)},
        {"anchors": (Anchor("page", "2", 5), Anchor("page", "1", 0))},
        {"anchors": (Anchor("a\nb", "1", 0),)},
        {"properties": {"a": float("nan")}},
    ],
)
def test_what_a_converter_must_not_give_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"anchor|JSON"):
        document_of("one\ntwo\n", **fields)


def test_names_of_places_and_warnings_have_one_short_line() -> None:
    anchors = (Anchor("page", "1\n" + "9" * 1000, 0, "x\ny"),)
    document = document_of("one\n", anchors=anchors, warnings=("w" * 1000,))
    [anchor] = document.anchors
    assert (len(anchor.label), anchor.label[:3], anchor.shown) == (MAX_LABEL, "1 9", "x y")
    assert len(document.warnings[0]) == 500


def test_a_small_file_becomes_no_large_text() -> None:
    parts = epub({"a.xhtml": "<p>" + "word " * 20_000 + "</p>"})
    book = str(parts["OEBPS/book.opf"])
    bomb = archive(
        {
            **parts,
            "OEBPS/book.opf": book.replace('<itemref idref="d0"/>', '<itemref idref="d0"/>' * 50),
        }
    )
    document = by_format.parse(EPUB, "a.epub", bomb)
    most = max(by_format.LEAST_TEXT, by_format.MOST_UNPACKED * len(bomb))
    assert 0 < len(document.text) <= most < 50 * 100_000
    assert "too long" in document.warnings[0]


def test_a_missing_package_is_told_with_its_command_and_another_error_is_raised() -> None:
    needing = FileFormat(
        "X", (".x",), parser="no_such_package:convert", needs=("no_such_package", "x")
    )
    with pytest.raises(MissingExtraError, match=r"install .*'qmd-python\[x\]'"):
        by_format.parse(needing, "a.x", b"")
    with pytest.raises(ModuleNotFoundError):
        by_format.parse(LISTING, "a.listing", b"")


def test_code_is_plain_text_without_the_package_that_finds_its_sections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert format_of("a.PY") is CODE
    formats._by_suffix.cache_clear()
    monkeypatch.setattr("qmd.parse.formats.find_spec", lambda name: None)
    try:
        assert format_of("a.py") is MARKDOWN
        assert format_of("a.pdf") is not MARKDOWN
    finally:
        formats._by_suffix.cache_clear()
    assert {f".{suffix}" for suffix in LANGUAGES} == set(CODE.suffixes)


def test_a_format_has_a_version_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = version_of("a.md")
    monkeypatch.setattr("qmd.ingest.file_job.format_of", lambda path: LISTING)
    assert version_of("a.listing") == before + (3 - MARKDOWN.version) * 1_000_000

"""What holds for every format of files."""

from __future__ import annotations

import pytest

from qmd.files.moves.rewrite import REWRITERS
from qmd.ingest.parse_file import PARSERS
from qmd.parse.decode import decode
from qmd.parse.document import parse_document, parse_markdown
from qmd.parse.formats import FORMATS, MARKDOWN, format_of, is_shown_as_markdown


def test_every_format_has_a_parser() -> None:
    assert set(PARSERS) == {MARKDOWN, *(each for each in FORMATS if each.is_read)}


def test_no_two_formats_claim_a_suffix() -> None:
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(suffixes) == len(set(suffixes))
    for file_format in FORMATS:
        for suffix in file_format.suffixes:
            assert format_of(f"folder/NAME{suffix.upper()}") is file_format


def test_only_formats_with_links_have_a_rewriter() -> None:
    assert all(each.is_read and each.has_links for each in REWRITERS)


def test_what_is_converted_is_shown_as_markdown() -> None:
    shown = ["a.md", "a.MARKDOWN", "a.canvas", "a.jpg", "a.txt", "a"]
    assert list(map(is_shown_as_markdown, shown)) == [True, True, True, True, False, False]


@pytest.mark.parametrize("data", [b"# One\n", "# Zwölf #tag\n".encode("latin-1"), b"a\xff\n" * 9])
def test_a_decoded_text_is_the_same_document_as_its_file(data: bytes) -> None:
    document = parse_document("a.md", data)
    assert parse_markdown("a.md", decode(data)) == document
    assert document.encoding == decode(data).encoding

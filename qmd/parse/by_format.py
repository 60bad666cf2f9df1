"""
Parses a file by its format: finds the parser, and makes a document of what a converter gives.

The parser of a format is imported for its first file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from qmd import system
from qmd.engine_text import engine_text
from qmd.errors import MissingExtraError
from qmd.parse.converted import Converted
from qmd.parse.decode import Decoded
from qmd.parse.document import MAX_CONVERTED, parse_literal, parse_markdown, with_lines
from qmd.parse.formats import FileFormat
from qmd.parse.lines import line_starts
from qmd.parse.title import MAX_TITLE, title_of_file
from qmd.parse.warnings import limit_warnings
from qmd.values import ParsedDocument
from qmd.values.pictures import PictureText

#: Characters of text that any file may become, and those for each of its bytes.
LEAST_TEXT = 100_000
MOST_UNPACKED = 100

#: Takes the path and the bytes of the whole file; if its format reads parts, a `PhotoSource`
#: instead; and if its pages may be pictures, what was read from them. It raises an `IngestError`
#: for a file that is no document.
Parser = Callable[..., ParsedDocument | Converted]


def parse(
    file_format: FileFormat,
    path: str,
    source: Any,
    texts: Mapping[int, PictureText] | None = None,
) -> ParsedDocument:
    """
    The document that a file of this format is.

    Args:
        path: The file's path with ``/``; only its name counts.
        source: As a `Parser` takes it.
        texts: What was read from its pictures, by page.

    Raises:
        IngestError: It is no document, or this installation cannot read the format.
    """
    parser = parser_of(file_format)
    result = parser(path, source, texts or {}) if file_format.picture else parser(path, source)
    if isinstance(result, ParsedDocument):
        return result
    most = MAX_CONVERTED
    if isinstance(source, bytes):
        # Archives and PDFs unpack to any size, and the list of a book's chapters may name the same
        # one many times. Texts that people write are packed to a twentieth at most.
        most = min(most, max(LEAST_TEXT, MOST_UNPACKED * len(source)))
    return converted_document(file_format, path, Converted(*result), most=most)


@cache
def parser_of(file_format: FileFormat) -> Parser:
    """
    Import the parser of a format whose files become documents.

    Raises:
        MissingExtraError: It needs a package that is not installed.
    """
    module, _, function = file_format.parser.partition(":")
    try:
        parser: Parser = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if file_format.needs is None or error.name != file_format.needs[0]:
            raise
        extra = f"{system.installation.DISTRIBUTION}[{file_format.needs[1]}]"
        raise MissingExtraError(
            engine_text(
                "{kind} files need the package {package}: {command}",
                kind=file_format.name,
                package=error.name,
                command=system.installation.current().install(extra),
            )
        ) from error
    return parser


def converted_document(
    file_format: FileFormat, path: str, converted: Converted, *, most: int = MAX_CONVERTED
) -> ParsedDocument:
    """
    The document of a converted file, also if its parts come from the database.

    Args:
        most: Characters of its text that are read.
    """
    if file_format.is_note:
        decoded = Decoded(converted.markdown, converted.encoding, ())
        anchors = with_lines(converted.anchors, line_starts(converted.markdown))
        document = replace(parse_markdown(path, decoded), anchors=anchors)
    else:
        document = parse_literal(path, converted, has_links=file_format.has_links, most=most)
    title = " ".join((converted.title or "").split())[:MAX_TITLE].rstrip()
    return replace(
        document,
        title=title or title_of_file(path),
        title_source="frontmatter" if title else "filename",
        date=converted.date or document.date,
        warnings=limit_warnings((*document.warnings, *converted.warnings)),
    )

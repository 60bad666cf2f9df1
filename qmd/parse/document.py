"""
Parses the bytes of one file into the document that the index stores.

The parser of its format is imported for the first file of the format. What a converter returns
becomes a document here: its title is what its properties, its headings or its file's name say, its
description what its frontmatter says that it is about.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from qmd import lazy, system
from qmd.engine_text import engine_text
from qmd.errors import MissingExtraError
from qmd.parse import frontmatter, notation
from qmd.parse.chunk import chunk
from qmd.parse.converted import Anchor, Converted, limit_warnings
from qmd.parse.dates import find_date
from qmd.parse.decode import Decoded, decode
from qmd.parse.formats import FileFormat
from qmd.parse.frontmatter import (
    InlineFields,
    find_fields,
    is_placeholder,
    may_have_fields,
    merged_properties,
    page_properties,
    written_numbers,
)
from qmd.parse.lines import line_starts
from qmd.parse.links import DocumentLinks, find_links, mask_code, mask_comments, may_have_links
from qmd.parse.markdown import outline
from qmd.values import DocumentAnchor, Heading, ParsedDocument
from qmd.values.pictures import PictureText
from qmd.values.text import file_stem, journal_day, page_of_file, post_name

#: Characters of the text of a converted file; the rest is left out.
MAX_CONVERTED = 20_000_000
#: The most places of one file that are kept.
MAX_ANCHORS = 100_000
#: Characters of the name of a place.
MAX_LABEL = 500
#: What no database stores.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
#: The kinds of anchors that no chunk crosses. The others may be a line long.
_APART = frozenset(("page", "slide", "sheet", "chapter", "message"))


def parse_document(path: str, data: bytes) -> ParsedDocument:
    """
    Read one Markdown file.

    Args:
        path: The file's path with ``/``; only its name is used, as the last resort for a title.
        data: The whole file.

    Raises:
        DecodeError: The bytes are not text.
    """
    return parse_markdown(path, decode(data))


def parse_markdown(path: str, decoded: Decoded) -> ParsedDocument:
    """Like `parse_document`, for text that is decoded or comes from a file of another format."""
    text = decoded.text
    front = frontmatter.split(text)
    structure = outline(text, front.body_start)
    with_links = may_have_links(text, structure)
    with_tags = notation.may_have_tags(text)
    with_fields = may_have_fields(text)
    without_code = masked = ""
    if with_links or with_tags or with_fields:
        without_code = mask_code(text, front.body_start, structure)
        masked = mask_comments(without_code)
    links = DocumentLinks()
    if with_links:
        links = find_links(text, masked, structure, front.body_start)
    fields = InlineFields()
    page = properties = front.properties
    if with_fields:
        fields = find_fields(text, without_code, structure)
        page = page_properties(fields.page, properties)
        properties = merged_properties(properties, (*fields.page, *fields.others))
    title, title_source = find_title(path, page, structure.headings)
    date, date_warnings = find_date(front.properties)
    page_tags = list(notation.frontmatter_tags(page))
    observations = (
        notation.find_observations(structure, page_tags)
        if notation.may_have_observations(text)
        else ()
    )
    return ParsedDocument(
        text=text,
        encoding=decoded.encoding,
        title=title,
        title_source=title_source,
        description=find_description(page),
        body_start=front.body_start,
        headings=structure.headings,
        tags=notation.find_tags(masked if with_tags else "", links.written, page),
        aliases=notation.find_aliases(page),
        date=date or _inline_date(fields) or journal_day(path),
        properties=properties,
        numbers=written_numbers(properties, structure.lines),
        links=notation.with_relations(links.links, structure),
        chunks=chunk(text, structure),
        warnings=limit_warnings(
            (*decoded.warnings, *front.warnings, *date_warnings, *links.warnings, *fields.warnings)
        ),
        tasks=notation.find_tasks(text, structure, page_tags),
        observations=observations,
    )


def parse_literal(
    path: str, converted: Converted, *, has_links: bool, most: int = MAX_CONVERTED
) -> ParsedDocument:
    """
    A document of a converted file in which only the marks of blocks count.

    What looks like a tag, a wikilink, an inline field or frontmatter is text.

    Args:
        has_links: Links in the form of Markdown count, too.
        most: Characters that are read.
    """
    # What plugins give may be any.
    properties = json.loads(json.dumps(dict(converted.properties), allow_nan=False))
    _require_places(converted.anchors)
    text = _UNSTORABLE.sub("\ufffd", converted.markdown)
    warnings = []
    if len(text) > most:
        end = text.rfind("\n", 0, most) + 1
        text = text[: end or most]
        warnings.append(f"The text is too long: only the first {len(text):,} characters were read.")
    anchors = [each for each in converted.anchors if each.start_char < len(text)]
    if len(anchors) > MAX_ANCHORS:
        warnings.append(f"Only the first {MAX_ANCHORS:,} of its {len(anchors):,} places are known.")
        del anchors[MAX_ANCHORS:]
    structure = outline(text)
    links = DocumentLinks()
    if has_links and may_have_links(text, structure):
        masked = mask_comments(mask_code(text, 0, structure))
        links = find_links(text, masked, structure, 0)
    return ParsedDocument(
        text=text,
        encoding=converted.encoding,
        title=title_of_file(path),
        title_source="filename",
        description=find_description(properties),
        body_start=0,
        headings=structure.headings,
        tags=notation.find_tags("", (), properties),
        aliases=notation.find_aliases(properties),
        date=journal_day(path),
        properties=properties,
        links=tuple(link for link in links.links if link.kind in ("link", "image")),
        chunks=chunk(text, structure, [each.start_char for each in anchors if each.kind in _APART]),
        warnings=(*warnings, *links.warnings),
        anchors=with_lines(anchors, structure.starts),
        pictures=tuple(converted.pictures),
    )


def _require_places(anchors: Sequence[Anchor]) -> None:
    """Raises ValueError: they are no places of a text, in their order."""
    before = 0
    for each in anchors:
        if each.start_char < before or not each.kind.isidentifier():
            raise ValueError(f"{each!r:.200} is no anchor, or stands behind those that follow it.")
        before = each.start_char


def _one_line(text: str) -> str:
    return " ".join(text[:MAX_LABEL].split())


def with_lines(anchors: Iterable[Anchor], line_starts: Sequence[int]) -> tuple[DocumentAnchor, ...]:
    """Anchors as a document has them, by the lines of its text."""
    return tuple(
        DocumentAnchor(
            each.kind,
            _one_line(each.label),
            None if each.shown is None else _one_line(each.shown),
            bisect_right(line_starts, each.start_char),
        )
        for each in anchors
    )


def _inline_date(fields: InlineFields) -> str | None:
    """The date in the inline fields; the first field of a name counts."""
    values = {key.casefold(): value for key, value in (*fields.others[::-1], *fields.page[::-1])}
    return find_date(values)[0]


#: Characters of a title; it goes to the embedding model with every chunk.
MAX_TITLE = 1000
#: The names under which sites and vaults keep a description; the first that has a text counts.
NAMES = ("description", "summary", "abstract", "excerpt", "desc")
#: Characters of a description. A longer one is no description, and its rest is found all the same,
#: because full text has the whole frontmatter.
MAX_DESCRIPTION = 4000


def find_title(
    path: str, properties: Mapping[str, object], headings: Sequence[Heading]
) -> tuple[str, Literal["frontmatter", "heading", "filename"]]:
    """
    The title and where it is from: the properties, the first heading of level 1, the file's name.

    Headings of other levels name parts of a document: dozens of notes may begin with the same one.
    """
    value = properties.get("title")
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        title = " ".join(str(value).split())[:MAX_TITLE].rstrip()
        if title and not is_placeholder(title):
            return title, "frontmatter"
    for heading in headings:
        if heading.level == 1 and heading.text and not is_placeholder(heading.text):
            return heading.text, "heading"
    return title_of_file(path), "filename"


def title_of_file(path: str) -> str:
    """
    A file's name without its suffix, in the form that Logseq shows.

    Logseq writes the page ``work/plan`` to ``work___plan.md`` (other signs as in a URL), and the
    journal "Mar 1st, 2025" to ``journals/2025_03_01.md``. The time stamp of a post's name is left
    out; a date alone stays, because it is what tells meetings and daily notes apart.
    """
    page = page_of_file(path)
    if page is not None and journal_day(path) is not None:
        return page
    title = file_stem(path)
    post = post_name(title)
    if post is not None and post.time is not None and post.title.strip():
        return post.title
    return page or title


def find_description(properties: Mapping[str, object]) -> str:
    """The description in the frontmatter, on one line; empty if there is none."""
    for name in NAMES:
        value = properties.get(name)
        if isinstance(value, str):
            description = " ".join(value.split())[:MAX_DESCRIPTION].rstrip()
            if description:
                return description
    return ""


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
    try:
        parser: Parser = lazy.imported(file_format.parser)
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

"""Parses the bytes of one Markdown file into the document that the index stores."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from qmd.parse import frontmatter
from qmd.parse.chunk import chunk
from qmd.parse.code_mask import mask_code, mask_comments
from qmd.parse.converted import Anchor, Converted
from qmd.parse.dates import find_date
from qmd.parse.decode import Decoded, decode
from qmd.parse.inline_fields import (
    InlineFields,
    find_fields,
    may_have_fields,
    merged,
    page_properties,
)
from qmd.parse.links import DocumentLinks, find_links, may_have_links
from qmd.parse.markdown import outline
from qmd.parse.observations import (
    find_observations,
    may_have_observations,
    with_relations,
)
from qmd.parse.tags import find_aliases, find_tags, frontmatter_tags, may_have_tags
from qmd.parse.tasks import find_tasks
from qmd.parse.title import find_description, find_title, title_of_file
from qmd.parse.warnings import limit_warnings
from qmd.values import DocumentAnchor, ParsedDocument
from qmd.values.names import journal_day

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
    with_tags = may_have_tags(text)
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
        properties = merged(properties, (*fields.page, *fields.others))
    title, title_source = find_title(path, page, structure.headings)
    date, date_warnings = find_date(front.properties)
    page_tags = list(frontmatter_tags(page))
    observations = find_observations(structure, page_tags) if may_have_observations(text) else ()
    return ParsedDocument(
        text=text,
        encoding=decoded.encoding,
        title=title,
        title_source=title_source,
        description=find_description(page),
        body_start=front.body_start,
        headings=structure.headings,
        tags=find_tags(masked if with_tags else "", links.written, page),
        aliases=find_aliases(page),
        date=date or _inline_date(fields) or journal_day(path),
        properties=properties,
        links=with_relations(links.links, structure),
        chunks=chunk(text, structure),
        warnings=limit_warnings(
            (*decoded.warnings, *front.warnings, *date_warnings, *links.warnings, *fields.warnings)
        ),
        tasks=find_tasks(text, structure, page_tags),
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
        tags=find_tags("", (), properties),
        aliases=find_aliases(properties),
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

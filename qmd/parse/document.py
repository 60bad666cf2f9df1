"""Parses the bytes of one Markdown file into the document that the index stores."""

from __future__ import annotations

import re
from typing import Any, Literal

from qmd.parse import frontmatter
from qmd.parse.chunk import chunk
from qmd.parse.code_mask import mask_code
from qmd.parse.dates import find_date
from qmd.parse.decode import Decoded, decode
from qmd.parse.description import find_description
from qmd.parse.links import DocumentLinks, find_links, may_have_links
from qmd.parse.markdown import outline
from qmd.parse.tags import find_aliases, find_tags, may_have_tags
from qmd.parse.warnings import limit_warnings
from qmd.values import Heading, ParsedDocument
from qmd.values.names import file_stem

# What a template has in place of a title: "{{title}}", "<% tp.file.title %>".
_PLACEHOLDERS = re.compile(r"(?:(?:\{\{[^{}]*\}\}|<%(?:[^%]|%(?!>))*%>)[\s_-]*)+")

#: Characters of a title; it goes to the embedding model with every chunk.
MAX_TITLE = 1000


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
    links = DocumentLinks()
    masked = ""
    if with_links or with_tags:
        masked = mask_code(text, front.body_start, structure)
        if with_links:
            links = find_links(text, masked, structure, front.body_start)
    title, title_source = _title(path, front.properties, structure.headings)
    date, date_warnings = find_date(front.properties)
    return ParsedDocument(
        text=text,
        encoding=decoded.encoding,
        title=title,
        title_source=title_source,
        description=find_description(front.properties),
        body_start=front.body_start,
        headings=structure.headings,
        tags=find_tags(masked if with_tags else "", links.written, front.properties),
        aliases=find_aliases(front.properties),
        date=date,
        properties=front.properties,
        links=links.links,
        chunks=chunk(text, structure),
        warnings=limit_warnings(
            (*decoded.warnings, *front.warnings, *date_warnings, *links.warnings)
        ),
    )


def _title(
    path: str, properties: dict[str, Any], headings: tuple[Heading, ...]
) -> tuple[str, Literal["frontmatter", "heading", "filename"]]:
    """
    The title and where it is from: the frontmatter, the first heading of level 1, the file's name.

    Headings of other levels name parts of a document: dozens of notes may begin with the same one.
    """
    value = properties.get("title")
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        title = " ".join(str(value).split())[:MAX_TITLE].rstrip()
        if title and not _PLACEHOLDERS.fullmatch(title):
            return title, "frontmatter"
    for heading in headings:
        if heading.level == 1 and heading.text and not _PLACEHOLDERS.fullmatch(heading.text):
            return heading.text, "heading"
    return file_stem(path), "filename"

"""
Turn a photo into a document: a text with its metadata, whose tags are its keywords and people.

Emoji label the lines, because the full-text index leaves them out: a search for the word "camera"
must not match every photo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from qmd.parse.chunk import chunk
from qmd.parse.convert.inert import inert_lines
from qmd.parse.markdown import outline
from qmd.parse.photo.metadata import read_metadata
from qmd.parse.photo.source import PhotoSource
from qmd.parse.title import MAX_TITLE, find_description
from qmd.values import ParsedDocument, PhotoMetadata
from qmd.values.pictures import PictureText

_MAX_DESCRIPTION = 100_000


def parse_photo(
    path: str, source: PhotoSource, texts: Mapping[int, PictureText] | None = None
) -> ParsedDocument:
    """
    Read one photo.

    Args:
        path: The file's path with ``/``; its suffix must be that of the format, and its name
            is the last resort for a title.
        texts: What was read from the photo, as page 1; it stands below the metadata, as a quote.

    Raises:
        NotAPhotoError: It is in another format, or in none that is known here.
    """
    photo = read_metadata(source, path)
    name = path.rpartition("/")[2]
    title = (
        _one_line(photo.title or "")[:MAX_TITLE].rstrip()
        or _one_line(name.rpartition(".")[0])
        or name
    )
    tags = _distinct(photo.tags)
    people = _distinct(photo.people)
    text = _text(title, photo, tags, people) + _quote((texts or {}).get(1))
    document = stored_photo(
        text,
        title=title,
        description=find_description({"description": photo.description}),
        tags=_distinct(tuple(each.lstrip("#") for each in (*tags, *people))),
        date=photo.date,
        properties=_properties(photo, tags, people),
        warnings=photo.warnings,
        title_source="frontmatter" if photo.title else "filename",
    )
    return replace(document, pictures=(1,))


def stored_photo(
    text: str,
    *,
    title: str,
    description: str,
    tags: Sequence[str],
    date: str | None,
    properties: Mapping[str, object],
    warnings: Sequence[str],
    title_source: Literal["frontmatter", "filename"] = "filename",
) -> ParsedDocument:
    """A photo as `parse_photo` has read it, of what the database holds, without the file."""
    structure = outline(text, 0)
    return ParsedDocument(
        text=text,
        encoding="utf-8",
        title=title,
        title_source=title_source,
        description=description,
        body_start=0,
        headings=structure.headings,
        tags=tuple(tags),
        aliases=(),
        date=date,
        properties=properties,
        links=(),
        chunks=chunk(text, structure),
        warnings=tuple(warnings),
    )


def _text(title: str, photo: PhotoMetadata, tags: tuple[str, ...], people: tuple[str, ...]) -> str:
    description = (photo.description or "").replace("\r\n", "\n").replace("\r", "\n").strip()
    place = _distinct((photo.location or "", *photo.place))
    lines = [
        ("🏷", ", ".join(tags)),
        ("👤", ", ".join(people)),
        ("📍", ", ".join(place)),
        ("📅", (photo.date or "").replace("T", " ")),
        ("📷", _one_line(photo.camera or "")),
    ]
    facts = "\n".join(f"- {sign} {value}" for sign, value in lines if value)
    paragraphs = [f"# {title}", description[:_MAX_DESCRIPTION], facts]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"


def _quote(read: PictureText | None) -> str:
    if read is None or not read.lines:
        return ""
    text = inert_lines("\n".join(_one_line(line.text) for line in read.lines))
    return "\n" + "".join(f"> {line}\n" for line in text.splitlines())


def _properties(
    photo: PhotoMetadata, tags: tuple[str, ...], people: tuple[str, ...]
) -> dict[str, Any]:
    properties = {
        "tags": list(tags),
        "people": list(people),
        "location": photo.location,
        "date": photo.date,
        "camera": photo.camera,
    }
    return {"kind": photo.kind, **{name: value for name, value in properties.items() if value}}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once (ignoring case) and on one line."""
    seen: dict[str, str] = {}
    for name in names:
        shown = _one_line(name)
        if shown:
            seen.setdefault(shown.casefold(), shown)
    return tuple(seen.values())

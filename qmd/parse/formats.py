"""
Lists the formats of files that become documents, and finds the format of a file by its suffix.

A new format is a row in `FORMATS`, a parser in a module beside this one, and a line for it in
`qmd.ingest.parse_file.PARSERS`; `qmd.files.moves.rewrite.REWRITERS` may have one, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from qmd.values.names import NOTE_SUFFIXES


@dataclass(frozen=True, slots=True)
class FileFormat:
    """
    A file format, as far as it matters before a file is opened.

    Args:
        suffixes: In lower case, with the dot; letter case of a file's name does not matter.
        reads_parts: Its parser takes a `PhotoSource` and reads a few places of the file, so a
            file may be of any size. Otherwise it takes all bytes, and the size has a limit.
        is_read: Whether files of this format become documents. Others are skipped: as text, their
            markup would be searched.
        is_edited: Whether the text of its documents is that of its files, so that it can be edited.
        has_links: Whether its documents may have links, which a move of a note has to mind.
        remedy: What to do with a file that holds something else; a sentence begins with it.
    """

    name: str
    suffixes: tuple[str, ...]
    reads_parts: bool = False
    remedy: str = "Save it as UTF-8 text if it is meant to be read"
    is_read: bool = True
    is_edited: bool = False
    has_links: bool = True


#: Any file without a suffix of another format; the mask of a collection selects its documents.
MARKDOWN = FileFormat("Markdown", (), is_edited=True)
PHOTO = FileFormat(
    "photo",
    (".jpg", ".jpeg", ".png", ".heic"),
    reads_parts=True,
    has_links=False,
    remedy="Give it the suffix of the format it is in",
)
#: In an Obsidian vault, canvases are documents wherever notes are.
CANVAS = FileFormat("canvas", (".canvas",), remedy="Open it in Obsidian and save it again")
HTML = FileFormat(
    "HTML",
    (".html", ".htm", ".xhtml", ".shtml", ".mhtml", ".mht"),
    remedy="Save the page as Markdown",
    is_read=False,
)
FORMATS = (PHOTO, CANVAS, HTML)
#: Characters of a suffix, with the dot, that names a kind of files.
MAX_KIND = 8


def format_of(path: str) -> FileFormat:
    """The format as which a file of this name is read, whatever its content is."""
    name = path.lower()
    return next((format_ for format_ in FORMATS if name.endswith(format_.suffixes)), MARKDOWN)


def is_photo(path: str) -> bool:
    """Whether a file of this name is read as a photo."""
    return format_of(path) is PHOTO


def is_shown_as_markdown(path: str) -> bool:
    """Whether the document of such a file is Markdown; all formats but plain text give Markdown."""
    return format_of(path) is not MARKDOWN or path.lower().endswith(NOTE_SUFFIXES)


def kind_of(path: str) -> str:
    """What people call a file of this name: ``photo``, ``Markdown`` or its suffix, ``PDF``."""
    format_ = format_of(path)
    suffix = PurePosixPath(path).suffix
    if format_ is not MARKDOWN or suffix.lower() in NOTE_SUFFIXES:
        return format_.name
    return suffix[1:].upper() if 1 < len(suffix) <= MAX_KIND and suffix.isprintable() else "other"

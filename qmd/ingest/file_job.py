"""
What a worker process gets and returns: a file to read, and what became of it.

Both pass in their plain forms between a worker process and its parent. A run in which nothing has
changed loads no parser, only this.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, TypeAlias

from qmd.ingest.scan import ScannedFile
from qmd.parse import PARSER_VERSION
from qmd.parse.formats import format_of
from qmd.parse.segment import SEGMENTER_VERSION
from qmd.records import NamedTuple, of_tuples
from qmd.values import FileState, FullTextEntry, NewDocument, ParsedDocument
from qmd.values.documents import Chunk, DocumentAnchor, Link, Observation, Task
from qmd.values.pictures import Picture

#: The version of what all formats share: the parser of Markdown, and the segmenter.
_SHARED_VERSION = PARSER_VERSION * 1000 + SEGMENTER_VERSION


def version_of(path: str) -> int:
    """The version of what parses a file of this name; a document of another one is made again."""
    return format_of(path).version * 1_000_000 + _SHARED_VERSION


class SameText(NamedTuple):
    """The file was touched, and its text is the one that is stored."""

    state: FileState


class NoDocument(NamedTuple):
    """
    The file is skipped.

    ``state``: it need not be tried again while it has this; None: try each time. ``vanished``:
    it is not there any more, which is no reason to report it.
    """

    reason: str
    detail: str
    state: FileState | None
    vanished: bool = False


ParsedFile: TypeAlias = NewDocument | SameText | NoDocument


#: Of each page that was read: its number, who read it, and the stored form of its text.
PlainTexts = tuple[tuple[int, str, str], ...]


class FileJob(NamedTuple):
    """
    One file to read.

    Attributes:
        stored_hash: Of the text that is stored of this file, by this version of the parser.
        plugins: Those that are turned on; the formats of their files are found by them.
        source: The stored hash of the file's bytes, if it has pictures; else empty.
        texts: What was read from its pictures.
    """

    root: str
    file: ScannedFile
    max_bytes: int
    stored_hash: str | None
    plugins: tuple[str, ...] = ()
    source: bytes = b""
    texts: PlainTexts = ()


# --- plain forms ----------------------------------------------------------------------

#: The fields of a document that are lists of values, and how one is made of a tuple. What is stored
#: of its headings is in the full text.
_LISTS = {
    "links": of_tuples(Link),
    "chunks": of_tuples(Chunk),
    "anchors": of_tuples(DocumentAnchor),
    "tasks": of_tuples(Task),
    "observations": of_tuples(Observation),
}
_PLAIN = [name for name in ParsedDocument.__annotations__ if name not in {"headings", *_LISTS}]
_parsed = attrgetter(*_PLAIN)
_lists = attrgetter(*_LISTS)
_fulltext = attrgetter(*FullTextEntry.__annotations__)


def plain_job(job: FileJob) -> tuple[Any, ...]:
    root, file, *rest = job
    return (root, file.path, tuple(file.state), *rest)


def job_of(plain: Any) -> FileJob:
    """What `plain_job` made plain."""
    root, path, state, *rest = plain
    return FileJob(root, ScannedFile(path, FileState(*state)), *rest)


def plain_file(parsed_file: ParsedFile) -> tuple[Any, ...]:
    """The form that `parsed_file` takes."""
    if isinstance(parsed_file, NoDocument):
        reason, detail, state, vanished = parsed_file
        return "none", (reason, detail, None if state is None else tuple(state), vanished)
    if isinstance(parsed_file, SameText):
        return "same", tuple(parsed_file.state)
    parsed = parsed_file.parsed
    return (
        "new",
        tuple(parsed_file.state),
        parsed_file.hash,
        _parsed(parsed),
        [list(map(tuple, each)) for each in _lists(parsed)],
        _fulltext(parsed_file.fulltext),
        list(parsed_file.chunk_hashes),
        list(map(tuple, parsed_file.pictures)),
    )


def parsed_file(path: str, plain: tuple[Any, ...]) -> ParsedFile:
    """What `plain_file` made for the file at ``path``."""
    kind, state, *rest = plain
    if kind == "none":
        reason, detail, state, vanished = state
        return NoDocument(reason, detail, None if state is None else FileState(*state), vanished)
    if kind == "same":
        return SameText(FileState(*state))
    digest, parsed, lists, fulltext, chunk_hashes, pictures = rest
    fields = dict(zip(_PLAIN, parsed, strict=True))
    for (name, value_of), each in zip(_LISTS.items(), lists, strict=True):
        fields[name] = tuple(map(value_of, each))
    return NewDocument(
        path=path,
        state=FileState(*state),
        hash=digest,
        parser_version=version_of(path),
        parsed=ParsedDocument(headings=(), **fields),
        fulltext=FullTextEntry(*fulltext),
        chunk_hashes=chunk_hashes,
        pictures=tuple(map(of_tuples(Picture), pictures)),
    )

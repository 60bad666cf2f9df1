"""
The job and the result of parsing one file, and their plain forms.

Jobs and results pass in their plain forms between a worker process and its parent.
"""

from __future__ import annotations

from itertools import starmap
from operator import attrgetter
from typing import Any, NamedTuple

from qmd.ingest.new_document import VERSION
from qmd.ingest.scan import ScannedFile
from qmd.values import FileState, FullTextEntry, NewDocument, ParsedDocument
from qmd.values.documents import Chunk, Heading, Link


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


ParsedFile = NewDocument | SameText | NoDocument


class FileJob(NamedTuple):
    """``stored_hash``: of the text that is stored of this file, by this version of the parser."""

    root: str
    file: ScannedFile
    max_bytes: int
    stored_hash: str | None


# --- plain forms ----------------------------------------------------------------------

_found_file = attrgetter(*ScannedFile.__dataclass_fields__)
_PLAIN = [
    name
    for name in ParsedDocument.__dataclass_fields__
    if name not in {"headings", "links", "chunks"}
]
_parsed = attrgetter(*_PLAIN)
_heading = attrgetter(*Heading.__dataclass_fields__)
_link = attrgetter(*Link.__dataclass_fields__)
_chunk = attrgetter(*Chunk.__dataclass_fields__)
_fulltext = attrgetter(*FullTextEntry.__dataclass_fields__)


def plain_job(job: FileJob) -> tuple[Any, ...]:
    return (job.root, _found_file(job.file), job.max_bytes, job.stored_hash)


def job_of(plain: Any) -> FileJob:
    """What `plain_job` made plain."""
    root, file, max_bytes, stored_hash = plain
    return FileJob(root, ScannedFile(*file), max_bytes, stored_hash)


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
        list(map(_heading, parsed.headings)),
        list(map(_link, parsed.links)),
        list(map(_chunk, parsed.chunks)),
        _fulltext(parsed_file.fulltext),
        list(parsed_file.chunk_hashes),
    )


def parsed_file(path: str, plain: tuple[Any, ...]) -> ParsedFile:
    """What `plain_file` made for the file at ``path``."""
    kind, state, *rest = plain
    if kind == "none":
        reason, detail, state, vanished = state
        return NoDocument(reason, detail, None if state is None else FileState(*state), vanished)
    if kind == "same":
        return SameText(FileState(*state))
    digest, parsed, headings, links, chunks, fulltext, chunk_hashes = rest
    fields = dict(zip(_PLAIN, parsed, strict=True))
    fields["headings"] = tuple(starmap(Heading, headings))
    fields["links"] = tuple(starmap(Link, links))
    fields["chunks"] = tuple(starmap(Chunk, chunks))
    return NewDocument(
        path=path,
        state=FileState(*state),
        hash=digest,
        parser_version=VERSION,
        parsed=ParsedDocument(**fields),
        fulltext=FullTextEntry(*fulltext),
        chunk_hashes=chunk_hashes,
    )

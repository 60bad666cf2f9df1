"""
A parsed file in the form in which the store takes it, and what a worker process gets and returns.

Jobs and results pass in their plain forms between a worker process and its parent.
"""

from __future__ import annotations

import hashlib
import re
from operator import attrgetter
from typing import Any, NamedTuple

from qmd.ingest.scan import ScannedFile
from qmd.parse import PARSER_VERSION
from qmd.parse.chunk import embedded_text
from qmd.parse.formats import format_of
from qmd.parse.segment import SEGMENTER_VERSION, camel_parts, derivation, is_cjk, segment
from qmd.values import FileState, FullTextEntry, NewDocument, ParsedDocument
from qmd.values.documents import Chunk, DocumentAnchor, Heading, Link
from qmd.values.names import file_stem
from qmd.values.tasks import Task

#: The version of what all formats share: the parser of Markdown, and the segmenter.
_SHARED_VERSION = PARSER_VERSION * 1000 + SEGMENTER_VERSION

_TOKEN = re.compile(r"[^\W_]+")


def version_of(path: str) -> int:
    """The version of what parses a file of this name; a document of another one is made again."""
    return format_of(path).version * 1_000_000 + _SHARED_VERSION


def new_document(path: str, parsed: ParsedDocument, digest: str, state: FileState) -> NewDocument:
    """
    Make the stored form of a parsed file.

    Args:
        path: Relative to the collection's root, with ``/``.
        digest: SHA-256 of the text, in hex digits.
    """
    front, body = parsed.text[: parsed.body_start], parsed.text[parsed.body_start :]
    segmented_front, segmented_body = segment(front), segment(body)
    derived = None
    if segmented_front != front or segmented_body != body:
        derived = derivation([front, body], [segmented_front, segmented_body])
    return NewDocument(
        path=path,
        state=state,
        hash=digest,
        parser_version=version_of(path),
        parsed=parsed,
        fulltext=FullTextEntry(
            title=_segmented_names(path, parsed),
            headings=segment("\n".join(heading.text for heading in parsed.headings)),
            body=None if segmented_body == body else segmented_body,
            path=_segmented(path),
            front=None if segmented_front == front else segmented_front,
            words=" ".join(camel_parts(parsed.text)),
            description=_segmented(parsed.description),
            replacements=derived.replacements if derived else (),
            has_pairs=derived is not None and derived.has_pairs,
        ),
        chunk_hashes=[
            text_hash(
                embedded_text(
                    parsed.title,
                    " > ".join(chunk.heading_path),
                    parsed.text[chunk.start_char : chunk.end_char],
                )
            )
            for chunk in parsed.chunks
        ],
    )


def _segmented_names(path: str, parsed: ParsedDocument) -> str | None:
    """
    The title, the file's name and the aliases as full text stores them; None for the title itself.

    A name whose words stand in those before it is left out, so that no word counts twice.
    """
    others = [name for name in (file_stem(path), *parsed.aliases) if name != parsed.title]
    if not others:
        return _segmented(parsed.title)
    names = [parsed.title]
    words = _words(parsed.title)
    for name in others:
        of_name = _words(name)
        if not of_name <= words:
            names.append(name)
            words |= of_name
    segmented = segment("\n".join(names))
    return None if segmented == parsed.title else segmented


def _words(name: str) -> set[str]:
    """The tokens of a name in full text, without the last character of a run of Chinese."""
    tokens = _TOKEN.findall(segment(name).casefold())
    return {token for token in tokens if len(token) > 1 or not is_cjk(token)} or set(tokens)


def _segmented(text: str) -> str | None:
    """The text as full text stores it; None if that is the text itself."""
    segmented = segment(text)
    return None if segmented == text else segmented


def text_hash(text: str) -> bytes:
    """The key of a text in the embedding cache: 16 bytes of SHA-256."""
    return hashlib.sha256(text.encode()).digest()[:16]


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
    """
    One file to read.

    Attributes:
        stored_hash: Of the text that is stored of this file, by this version of the parser.
        plugins: Those that are turned on; the formats of their files are found by them.
    """

    root: str
    file: ScannedFile
    max_bytes: int
    stored_hash: str | None
    plugins: tuple[str, ...] = ()


# --- plain forms ----------------------------------------------------------------------

_PLAIN = [
    name
    for name in ParsedDocument.__dataclass_fields__
    if name not in {"headings", "links", "chunks", "anchors", "tasks"}
]
_parsed = attrgetter(*_PLAIN)
_fulltext = attrgetter(*FullTextEntry.__dataclass_fields__)


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
        list(map(tuple, parsed.headings)),
        list(map(tuple, parsed.links)),
        list(map(tuple, parsed.chunks)),
        list(map(tuple, parsed.anchors)),
        list(map(tuple, parsed.tasks)),
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
    digest, parsed, headings, links, chunks, anchors, tasks, fulltext, chunk_hashes = rest
    fields = dict(zip(_PLAIN, parsed, strict=True))
    fields["headings"] = tuple(map(Heading._make, headings))
    fields["links"] = tuple(map(Link._make, links))
    fields["chunks"] = tuple(map(Chunk._make, chunks))
    fields["anchors"] = tuple(map(DocumentAnchor._make, anchors))
    fields["tasks"] = tuple(map(Task._make, tasks))
    return NewDocument(
        path=path,
        state=FileState(*state),
        hash=digest,
        parser_version=version_of(path),
        parsed=ParsedDocument(**fields),
        fulltext=FullTextEntry(*fulltext),
        chunk_hashes=chunk_hashes,
    )

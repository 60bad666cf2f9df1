"""
Parse one file: the function that a worker process runs (see `qmd.ingest.parse_workers`).

`NewDocument` is a parsed file in the form in which the store takes it. This module imports only
what parsing needs, because the imports delay the first file.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from qmd import errors
from qmd import parse as parse_package
from qmd.ingest import file_job
from qmd.ingest.read_file import read_file, read_parts, settled, source_hash
from qmd.parse.chunk import embedded_text
from qmd.parse.document import parse, parser_of
from qmd.parse.formats import FileFormat, format_of, turned_on_plugins
from qmd.parse.photo.source import PhotoSource
from qmd.parse.segment import camel_parts, derivation, is_cjk, segment
from qmd.values import FileState, FullTextEntry, NewDocument, ParsedDocument
from qmd.values.pictures import Picture, PictureText
from qmd.values.text import file_stem

_TOKEN = re.compile(r"[^\W_]+")


def new_document(
    path: str,
    parsed: ParsedDocument,
    digest: str,
    state: FileState,
    pictures: Sequence[Picture] = (),
) -> NewDocument:
    """
    Make the stored form of a parsed file.

    Args:
        path: Relative to the collection's root, with ``/``.
        digest: SHA-256 of the text, in hex digits.
        pictures: As of `NewDocument`.
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
        parser_version=file_job.version_of(path),
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
        pictures=pictures,
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


def parse_plain(job: Any) -> tuple[Any, ...]:
    """`parse_file`, with a job and a result in their plain forms."""
    return file_job.plain_file(parse_file(file_job.job_of(job)))


def parse_file(job: file_job.FileJob) -> file_job.ParsedFile:
    """Read and parse one file; a file that is no document gives a `NoDocument`."""
    started = time.time_ns()
    if job.plugins != turned_on_plugins():
        parse_package.plugins.turn_on(job.plugins)
    try:
        (parsed, pictures), read_state = _parse(job)
    except errors.FileVanishedError as error:
        return file_job.NoDocument(error.reason, str(error), None, vanished=True)
    except errors.IngestError as error:
        # A new permission, or a new package, does not change the state of a file, so such a file is
        # tried each time.
        is_lasting = not isinstance(error, (errors.UnreadableFileError, errors.MissingExtraError))
        state = settled(job.file.state, started) if is_lasting else None
        return file_job.NoDocument(error.reason, str(error), state)
    except OSError as error:
        # The system's answer may differ the next time, so such a file is tried each time.
        unreadable = errors.UnreadableFileError(
            f"Cannot read {job.file.path}: {error.strerror or error}"
        )
        return file_job.NoDocument(unreadable.reason, str(unreadable), None)
    digest = hashlib.sha256(parsed.text.encode()).hexdigest()
    state = settled(read_state, started)
    if digest == job.stored_hash and all(each.source == job.source for each in pictures):
        return file_job.SameText(state)
    return new_document(job.file.path, parsed, digest, state, pictures)


def text_of(job: Any) -> str | None:
    """`qmd.ingest.parse_workers.document_text` in a worker; the job is plain."""
    path, data, plugins = job
    if plugins != turned_on_plugins():
        parse_package.plugins.turn_on(plugins)
    file_format = format_of(path)
    try:
        source = PhotoSource.of_bytes(data) if file_format.reads_parts else data
        return parse(file_format, path, source).text
    except errors.IngestError:
        return None


def _parse(job: file_job.FileJob) -> tuple[tuple[ParsedDocument, list[Picture]], FileState]:
    """The document with its pictures, and the state of the file."""
    root, path = job.root, job.file.path
    file_format = format_of(path)
    parser_of(file_format)  # before the file is read
    if file_format.reads_parts:
        return read_parts(root, path, partial(_with_pictures, file_format, job))
    data, state = read_file(root, path, max_bytes=job.max_bytes)
    return _with_pictures(file_format, job, data), state


def _with_pictures(
    file_format: FileFormat, job: file_job.FileJob, source: Any
) -> tuple[ParsedDocument, list[Picture]]:
    if file_format.picture is None:
        return parse(file_format, job.file.path, source), []
    digest = b""
    texts: dict[int, PictureText] = {}
    if job.texts:
        digest = source_hash(source)
        if digest == job.source:
            texts = {page: PictureText.load(text) for page, _, text in job.texts}
    parsed = parse(file_format, job.file.path, source, texts)
    if not parsed.pictures:
        return parsed, []
    digest = digest or source_hash(source)
    readers = {page: read_by for page, read_by, _ in job.texts if page in texts}
    return parsed, [Picture(page, digest, readers.get(page)) for page in parsed.pictures]

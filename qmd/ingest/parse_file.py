"""
Parse one file: the function that a worker process runs (see `qmd.ingest.parse_workers`).

Nothing is imported here that parsing does not need, because the first file waits for the imports.
"""

from __future__ import annotations

import hashlib
import time
from functools import partial
from pathlib import Path
from typing import Any

from qmd.errors import FileVanishedError, IngestError, UnreadableFileError
from qmd.ingest.file_state import file_state, settled
from qmd.ingest.new_document import new_document
from qmd.ingest.parse_messages import FileJob, NoDocument, ParsedFile, SameText, job_of, plain_file
from qmd.ingest.read_file import ReadFile, read_file, read_parts
from qmd.parse.document import parse_document
from qmd.parse.photo import is_photo
from qmd.parse.photo.document import parse_photo
from qmd.values import ParsedDocument


def parse_plain(job: Any) -> tuple[Any, ...]:
    """`parse_file`, with a job and a result in their plain forms."""
    return plain_file(parse_file(job_of(job)))


def parse_file(job: FileJob) -> ParsedFile:
    """Read and parse one file; whatever is wrong with it is a `NoDocument`."""
    started = time.time_ns()
    try:
        read, parsed = _parse(job)
    except FileVanishedError as error:
        return NoDocument(error.reason, str(error), None, vanished=True)
    except IngestError as error:
        # A permission that is given later leaves no trace in the state: try each time.
        lasting = not isinstance(error, UnreadableFileError)
        state = settled(file_state(job.file), started) if lasting else None
        return NoDocument(error.reason, str(error), state)
    digest = hashlib.sha256(parsed.text.encode()).hexdigest()
    state = settled(file_state(read), started)
    if digest == job.stored_hash:
        return SameText(state)
    return new_document(job.file.path, parsed, digest, state)


def _parse(job: FileJob) -> tuple[ReadFile, ParsedDocument]:
    root, file = Path(job.root), job.file
    if is_photo(file.path):
        return read_parts(root, file.path, partial(parse_photo, file.path))
    read = read_file(root, file.path, max_bytes=job.max_bytes)
    return read, parse_document(file.path, read.data)

"""Parse files in worker processes, each file within a budget of CPU time and memory."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator

from qmd.ingest.file_job import FileJob, NoDocument, ParsedFile, parsed_file, plain_job
from qmd.ingest.read_file import settled
from qmd.ingest.scan import ScannedFile
from qmd.parse.decode import text_if_any
from qmd.parse.formats import MARKDOWN, MB, format_of, turned_on_plugins
from qmd.system.worker.jobs import Job, JobBudget, JobFailure
from qmd.system.worker.pool import WorkerPool
from qmd.values import FileState

#: The pool of this process. It starts no worker process before there is a file to parse.
workers = WorkerPool("qmd.ingest.parse_file:parse_plain")

#: Those that parse what a tool is about to replace, move or delete.
text_workers = WorkerPool("qmd.ingest.parse_file:text_of")
#: The reason for skipping a file whose reading blocked.
NO_ANSWER = "no answer"
_REASONS = {
    "cpu": "over budget",
    "memory": "over budget",
    "error": "parser failed",
    "crash": "parser failed",
    "silence": NO_ANSWER,
}


def parse_files(
    jobs: Iterable[FileJob], waiting: Callable[[], None] = lambda: None
) -> Generator[ParsedFile, None, None]:
    """
    Parse files, and yield the results in the order of the jobs. Jobs are taken ahead of time.

    A file that makes its parser fail or exceed its budget gives a `NoDocument`.

    Args:
        waiting: Called again and again while there is no result; an exception ends the run.
    """
    sent: deque[tuple[FileJob, int]] = deque()

    def worker_jobs() -> Iterator[Job]:
        for job in jobs:
            sent.append((job, time.time_ns()))
            size = size_to_parse(job.file)
            yield Job(plain_job(job), size, budget_of(job.file.path, size))

    for result in workers.run(worker_jobs(), waiting):
        job, started = sent.popleft()
        if isinstance(result, JobFailure):
            yield _no_document(job, result, started)
        else:
            yield parsed_file(job.file.path, result.value)


def document_text(path: str, data: bytes) -> str | None:
    """
    The text of the document that a file with these bytes is, whose hash is its docid.

    Args:
        path: The file's path with ``/``; only its name counts.

    Returns:
        None if it is no document, or too much for its parser.
    """
    if format_of(path) is MARKDOWN:
        return text_if_any(data)  # its parser finds more, and takes longer
    size = 0 if format_of(path).reads_parts else len(data)
    job = Job((path, data, turned_on_plugins()), len(data), budget_of(path, size))
    [result] = text_workers.run([job])
    return None if isinstance(result, JobFailure) else result.value


def problem() -> str | None:
    """A sentence that says why files are parsed without a budget; None if they have one."""
    if workers.problem is None:
        return None
    return f"Files are parsed in this process, where nothing limits them. {workers.problem}"


def try_it() -> str | None:
    """Let a worker process try to read a file that does not exist; return the `problem`."""
    no_file = ScannedFile("", FileState(0, 0, 0, 0))
    for _ in parse_files([FileJob(os.path.abspath(os.sep), no_file, 0, None)]):  # noqa: PTH100
        pass
    return problem()


def size_to_parse(file: ScannedFile) -> int:
    """The bytes of a file to parse; 0 for a format of which only a few parts are read."""
    return 0 if format_of(file.path).reads_parts else file.state.bytes


def budget_of(path: str, size: int) -> JobBudget:
    """The limits for a file of this name with ``size`` bytes to parse."""
    # The steps are whole megabytes, so that most files have the same budget.
    steps = size // MB
    cpu_s, cpu_s_per_mb, memory, memory_per_mb = format_of(path).budget
    return JobBudget(cpu_s + steps * cpu_s_per_mb, memory + steps * memory_per_mb)


def _no_document(job: FileJob, failure: JobFailure, started: int) -> NoDocument:
    # If CPU time is limited, silence means that the disk blocks. A disk that works again does not
    # change the state of the file, so such a file is tried each time.
    is_lasting = failure.kind != "silence" or sys.platform == "win32"
    state = settled(job.file.state, started) if is_lasting else None
    return NoDocument(_REASONS[failure.kind], failure.detail, state)

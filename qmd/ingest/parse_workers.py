"""Parse files in worker processes, each file within a budget of CPU time and memory."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator

from qmd.ingest.file_state import file_state, settled
from qmd.ingest.parse_messages import FileJob, NoDocument, ParsedFile, parsed_file, plain_job
from qmd.ingest.scan import ScannedFile
from qmd.parse.formats import format_of
from qmd.system.worker.jobs import MB, Job, JobBudget, JobFailure
from qmd.system.worker.pool import WorkerPool

#: Shared by all that index in this process. Nothing is started before there is a file to parse.
workers = WorkerPool("qmd.ingest.parse_file:parse_plain")

#: Real texts take 0.1 to 0.2 s and some ten bytes of memory a byte, on a computer of 2023.
_CPU_S, _CPU_S_PER_MB = 5.0, 2.0
_MEMORY_BYTES, _MEMORY_PER_BYTE = 512 * MB, 50

#: The reason of a file whose reading blocked.
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
    Parse each file; results in the order of the jobs, which are taken some time ahead.

    A file that is too much for its parser, in whatever way, is a `NoDocument`.

    Args:
        waiting: Called again and again while nothing comes; what it raises ends the run.
    """
    sent: deque[tuple[FileJob, int]] = deque()

    def worker_jobs() -> Iterator[Job]:
        for job in jobs:
            sent.append((job, time.time_ns()))
            size = size_to_parse(job.file)
            yield Job(plain_job(job), size, budget_of(size))

    for result in workers.run(worker_jobs(), waiting):
        job, started = sent.popleft()
        if isinstance(result, JobFailure):
            yield _no_document(job, result, started)
        else:
            yield parsed_file(job.file.path, result.value)


def problem() -> str | None:
    """Why files are parsed without a budget, in a sentence; None while they are not."""
    if workers.problem is None:
        return None
    return f"Files are parsed in this process, where nothing limits them. {workers.problem}"


def try_it() -> str | None:
    """Have a process read a file that is none; returns the `problem`."""
    nothing = ScannedFile("", 0, 0, 0, 0)
    for _ in parse_files([FileJob(os.path.abspath(os.sep), nothing, 0, None)]):  # noqa: PTH100
        pass
    return problem()


def size_to_parse(file: ScannedFile) -> int:
    """In bytes; 0 for a format of which a few places are read, however large the file is."""
    return 0 if format_of(file.path).reads_parts else file.size


def budget_of(size: int) -> JobBudget:
    """What may be used for a text of ``size`` bytes."""
    # In steps of whole megabytes: most files have the same budget.
    steps = size // MB
    return JobBudget(_CPU_S + steps * _CPU_S_PER_MB, _MEMORY_BYTES + steps * MB * _MEMORY_PER_BYTE)


def _no_document(job: FileJob, failure: JobFailure, started: int) -> NoDocument:
    # Where CPU time is limited, silence is the disk's: what mends that leaves no trace in the
    # state of the file, so it is tried each time.
    lasting = failure.kind != "silence" or sys.platform == "win32"
    state = settled(file_state(job.file), started) if lasting else None
    return NoDocument(_REASONS[failure.kind], failure.detail, state)

"""Define the jobs that are sent to a worker process, and their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

from qmd.errors import QmdError

MB = 1_000_000


class JobBudget(NamedTuple):
    """
    The limits of one job.

    ``memory_bytes`` is in addition to the memory of the process when it is ready for work.
    """

    cpu_s: float
    memory_bytes: int


class Job(NamedTuple):
    """
    One call of the function.

    ``argument`` is a plain value: None, a number, text, bytes, or tuples, lists and dicts of
    these. ``size`` is the estimated size of the answer in bytes; it limits how many jobs are sent
    ahead.
    """

    argument: Any
    size: int
    budget: JobBudget


class JobAnswer(NamedTuple):
    """``value`` is what the function returned, a plain value."""

    value: Any


class JobFailure(NamedTuple):
    """
    The result of a job that has no answer.

    ``kind``: more "cpu" time or "memory" than the budget, an "error" that the function raised,
    the "crash" of the process, or "silence": no answer, and no use of CPU time where that is
    limited. ``detail`` is a sentence for people.
    """

    kind: Literal["cpu", "memory", "error", "crash", "silence"]
    detail: str


JobResult = JobAnswer | JobFailure


def described_with_place(error: BaseException) -> str:
    """Describe an exception, and where it was raised: ``KeyError: 'x' (parser.py, line 12)``."""
    if isinstance(error, QmdError):  # it is a sentence for people already
        return f"{error.message}"  # a plain text, which can be sent
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return described(error)
    name = Path(place.tb_frame.f_code.co_filename).name
    return described(error, f" ({name}, line {place.tb_lineno})")


def described(error: BaseException, place: str = "") -> str:
    """Describe an exception for people, on one line of at most 300 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    most = 300 - len(place)
    return (text if len(text) <= most else text[: most - 1] + "…") + place

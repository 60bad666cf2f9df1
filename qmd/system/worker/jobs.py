"""What a worker process is asked, and what comes of it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

MB = 1_000_000


class JobBudget(NamedTuple):
    """
    The most that one job may use.

    ``memory_bytes`` counts from what the process has when it is ready for work.
    """

    cpu_s: float
    memory_bytes: int


class Job(NamedTuple):
    """
    ``argument`` is a plain value: None, a number, text, bytes, or tuples, lists and dicts of
    these. ``size`` in bytes is about what the answer will be: so many are asked ahead.
    """

    argument: Any
    size: int
    budget: JobBudget


class JobAnswer(NamedTuple):
    """``value`` is what the function returned, a plain value."""

    value: Any


class JobFailure(NamedTuple):
    """
    A job without an answer.

    ``kind``: more "cpu" time or "memory" than the budget, an "error" that the function raised,
    the "crash" of the process, or "silence": it does not answer, and uses no CPU time where
    that is limited. ``detail`` is a sentence for people.
    """

    kind: Literal["cpu", "memory", "error", "crash", "silence"]
    detail: str


JobResult = JobAnswer | JobFailure


def described(error: BaseException) -> str:
    """An exception for people, on one line and not too long."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    return text if len(text) <= 300 else text[:299] + "…"

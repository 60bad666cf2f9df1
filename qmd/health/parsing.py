"""Checks whether a separate process can parse files, and reports its limits."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from qmd.ingest import parse_workers
from qmd.system.worker.jobs import MB
from qmd.values import Check


def examine() -> Iterator[Check]:
    """One check, for which a parser process is started."""
    problem = parse_workers.try_it()
    if problem is not None:
        yield Check(
            "parser",
            "warning",
            f"{problem} A file that is too much for its parser stops indexing, or the server.",
            "Let qmd start processes: look at 'ulimit -u', 'ulimit -v' and what confines it.",
        )
        return
    budget = parse_workers.budget_of(0)
    limits = f"{budget.cpu_s:g} s of CPU time and {budget.memory_bytes // MB} MB, more for large"
    message = f"A process of its own parses files; each may use {limits} texts"
    if sys.platform == "win32":
        message = "A process of its own parses files; one that gives no answer is ended"
    elif sys.platform != "linux":
        message += " (this system does not limit the memory)"
    yield Check("parser", "ok", message)

"""
Computes the figures of one answer of the agent, as pure functions.

Each share is 0 to 1, or None where it is not defined: there is nothing to count.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from agent_bench.fixture import Fact
from qmd.agent.citations import Citation

MAX_ANSWER_CHARS = 50_000
"""The characters of an answer that are compared with the facts."""


def citation_precision(citations: Sequence[Citation], files: Set[str]) -> float | None:
    """The share of the citations that pass the check and name a note that answers."""
    right = sum(citation.status == "ok" and citation.file in files for citation in citations)
    return right / len(citations) if citations else None


def citation_recall(citations: Sequence[Citation], files: Set[str]) -> float | None:
    """The share of the notes that answer which a citation names that passes the check."""
    cited = {citation.file for citation in citations if citation.status == "ok"}
    return len(cited & files) / len(files) if files else None


def present(answer: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts that the answer has."""
    text = answer[:MAX_ANSWER_CHARS]
    return tuple(fact for fact in facts if fact.pattern.search(text))


def share(part: int, total: int) -> float | None:
    """``part`` of ``total``."""
    return part / total if total else None


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are defined."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None

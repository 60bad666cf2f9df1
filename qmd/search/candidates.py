"""A candidate: a document that one of the three searches has scored, as calibration takes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from qmd.values import Match


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A scored document that is not read yet.

    Attributes:
        words: The words of the query that full text found in it, if any.
        nearness: See `qmd.search.meaning.nearness.relative_nearness`; None where it is not known.
        chunk: The id of its chunk nearest to the question.
        explanation: The parts of the score.
    """

    document: int
    score: float
    match: Match
    words: Collection[str] = ()
    nearness: float | None = None
    chunk: int | None = None
    explanation: Mapping[str, Any] | None = None

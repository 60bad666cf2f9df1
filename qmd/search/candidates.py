"""A candidate: a document with its blend, the input of calibration in all three searches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from qmd.values import Match


class Candidate(NamedTuple):
    """
    A scored document whose text was not read yet.

    Attributes:
        blend: 0..1; candidates are sorted by it, best first.
        words: The words of the query that full text matched in the document.
        nearness: `qmd.search.meaning.nearness.relative_nearness`; None if it is not known.
        chunk_id: The document's chunk nearest to the question; None if it is not known.
        explanation: The parts of the score, if the request asks for them.
    """

    document_id: int
    blend: float
    match: Match
    words: Collection[str] = ()
    nearness: float | None = None
    chunk_id: int | None = None
    explanation: Mapping[str, Any] | None = None

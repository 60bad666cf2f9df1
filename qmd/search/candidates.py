"""What a search fills in step by step: its candidates, and the runs that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from qmd.records import dataclass, field
from qmd.values import Match, Source

if TYPE_CHECKING:
    from qmd.search.judge import Grounds
    from qmd.store.sql.documents import FullDocument

#: In fusion the runs of the query itself count twice as much as those of its expansions.
ORIGINAL_WEIGHT, EXPANSION_WEIGHT = 2.0, 1.0


@dataclass(slots=True)
class Candidate:
    """
    A document on its way from a retriever into the reply. Each step fills in what it learns.

    Attributes:
        match: How it matches; "relaxed" too if only another wording of the query has brought it.
        bm25: Of full text, at least 0.
        words: Word of the query → the part of ``bm25`` that it adds. Empty if the query has
            phrases, fields or signs; then ``bm25`` is that of FTS5.
        chunk_id: The document's chunk nearest to the question; None if it is not known.
        cosine: The cosine of this chunk and the question, -1..1.
        nearness: The cosine without the direction that all texts share.
        relative_nearness: By which the judge goes: `nearness` on the scale of the model
            (`qmd.search.meaning.nearness.relative_nearness`); None if it is not known.
        blend: 0..1; candidates are sorted by it, best first.
        explanation: The parts of the blend, if the request asks for them.
        page: The document. Only candidates that are judged have it, and what follows.
        grounds: What relevance is estimated from.
        relevance: 0..1, rounded to four decimals: the estimated chance that it answers.
        score: The blend, scaled; 0..1, rounded to four decimals.
    """

    document_id: int
    match: Match = "relaxed"
    bm25: float = 0.0
    words: Mapping[str, float] = field(default_factory=dict)
    chunk_id: int | None = None
    cosine: float = 0.0
    nearness: float = 0.0
    relative_nearness: float | None = None
    blend: float = 0.0
    explanation: Mapping[str, Any] = field(default_factory=dict)
    page: FullDocument = field(init=False, repr=False, compare=False)
    grounds: Grounds = field(init=False, repr=False, compare=False)
    relevance: float = 0.0
    score: float = 0.0

    def take_chunk(self, other: Candidate) -> None:
        """Take over which chunk is nearest to the question, and how near it is."""
        self.chunk_id, self.cosine = other.chunk_id, other.cosine
        self.nearness = other.nearness


@dataclass(frozen=True)
class Run:
    """
    The documents that one retriever returned for one text.

    Attributes:
        source: "fts" for full text, "vec" for the vectors.
        text: What was searched for.
        scores: Document id → the retriever's score, best first.
        values: Document id → what evidence is measured by: bm25 or nearness; greater is better.
    """

    source: Source
    text: str
    type: Literal["original", "expansion"]
    scores: Mapping[int, float]
    values: Mapping[int, float] = field(default_factory=dict)

    @property
    def weight(self) -> float:
        """How much the run counts in fusion."""
        return ORIGINAL_WEIGHT if self.type == "original" else EXPANSION_WEIGHT

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """Document id → its rank, from 1."""
        return {document_id: rank for rank, document_id in enumerate(self.scores, 1)}

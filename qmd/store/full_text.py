"""Full-text search: match expressions in, document ids and bm25 out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qmd.store.match import Expression
from qmd.store.selection import Selection

#: The constant k1 in the bm25 of `FullText.search`.
BM25_K1 = 1.2


class FullText(Protocol):
    """Searches the words of documents."""

    @property
    def is_incomplete(self) -> bool:
        """Whether a search of this snapshot left out matches, because there were too many."""
        ...

    def document_count(self) -> int:
        """How many documents there are; it costs nothing."""
        ...

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        """
        Pairs of document id and bm25 (above 0), best first; ties by document id.

        ``limit``: return at most this many; None for all that match.
        """
        ...

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        """
        Document id → how often the document holds an expression, as bm25 counts it.

        A frequency is weighted by field and relative to the length of the document. A frequency f
        adds idf · (k1 + 1) · f / (f + 1) to bm25, where k1 is `BM25_K1`.

        Args:
            ids: Document ids; the result lacks documents that do not hold the expression.
            held: How many documents hold the expression.
            total: How many documents there are.
        """
        ...

    def count(self, match: Expression, most: int) -> int:
        """How many documents match; counting stops at ``most``."""
        ...

    def terms(self, beginning: str, most: int) -> dict[str, int]:
        """
        The tokens of the index that begin so → how many documents hold each; at most ``most``.

        Words are stems there, and Chinese is pairs of characters.
        """
        ...

    def matching_ids(self, match: Expression) -> list[int]:
        """The ids of all documents that match, ascending."""
        ...

"""Full-text search: match expressions in, document ids and bm25 out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qmd.store.match import Expression
from qmd.store.selection import Selection

#: The constant k1 of the stored index's bm25.
BM25_K1 = 1.2


class FullText(Protocol):
    """Searches the words of documents."""

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        """
        Document ids with their bm25 (> 0, larger is better), best first, ties by id.

        ``limit``: most documents, None for all that match.
        """
        ...

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        """
        How often some documents hold an expression, as bm25 counts it: weighed by field and
        relative to the length of the document. A frequency f adds idf · (k1 + 1) · f / (f + 1) to
        bm25, where k1 is `BM25_K1`.

        Args:
            ids: Of documents; those that do not hold it are not in the answer.
            held: How many documents hold the expression.
            total: How many documents there are.
        """
        ...

    def count(self, match: Expression, most: int) -> int:
        """How many documents match, counted up to ``most``."""
        ...

    def matching_ids(self, match: Expression) -> list[int]:
        """Ids of all documents that match, in order, unranked."""
        ...

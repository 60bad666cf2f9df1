"""
Evaluates a match expression by the table ``z_common_words``: numpy adds up the scores.

Scores and hits are those of FTS5's bm25 (https://sqlite.org/fts5.html#the_bm25_function). Only what
needs this module loads numpy, which takes as long as a search.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qmd.store.full_text import BM25_B, BM25_K1, Expression, Phrase, idf
from qmd.store.sqlite.fts5 import BM25, WEIGHT_SCALE, CommonWords, render, token_of, totals
from qmd.store.sqlite.library import ReadingConnection

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Matches(NamedTuple):
    """
    The documents that match an expression.

    Attributes:
        ids: int64[n], ascending.
        scores: float64[n], bm25; each above 0.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def among(self, document_ids: Sequence[int]) -> Matches:
        """Those of these documents."""
        inside = np.isin(self.ids, np.array(document_ids, np.int64))
        return Matches(self.ids[inside], self.scores[inside])

    def best(self, most: int) -> list[tuple[int, float]]:
        """Pairs of id and score of the best, the best first; ties by id."""
        ids, scores = self
        if most < len(ids):
            lowest = np.partition(scores, len(scores) - most)[len(scores) - most]
            ids, scores = ids[scores >= lowest], scores[scores >= lowest]
        order = np.lexsort((ids, -scores))[:most]
        return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))


class CommonWordScores:
    """Evaluates expressions with common words in one snapshot."""

    def __init__(self, words: CommonWords) -> None:
        self._words = words
        self._read: dict[str, tuple[NDArray[np.int64], NDArray[np.integer[Any]]]] = {}

    def evaluate(self, match: Expression) -> Matches:
        """All documents that match, with their scores."""
        if isinstance(match, Phrase):
            return self._leaf(match)
        parts = [self.evaluate(part) for part in match.parts]
        highest = max((int(part.ids[-1]) for part in parts if len(part.ids)), default=0)
        scores = np.zeros(highest + 1)
        if match.operator == "any":
            for part in parts:
                scores[part.ids] += part.scores
            ids = np.flatnonzero(scores)
        elif match.operator == "all":
            count = np.zeros(highest + 1, np.uint16)
            for part in parts:
                scores[part.ids] += part.scores
                count[part.ids] += 1
            ids = np.flatnonzero(count == len(parts))
        else:
            scores[parts[0].ids] = parts[0].scores
            for part in parts[1:]:
                scores[part.ids] = 0.0
            ids = np.flatnonzero(scores)
        return Matches(ids, scores[ids])

    def frequencies(
        self, phrase: Phrase, document_ids: Sequence[int], of_changed: dict[int, float]
    ) -> dict[int, float]:
        """
        As `FullText.frequencies`, for a common word.

        Args:
            of_changed: The frequencies of those among the documents that have changed.
        """
        ids, weighted = self._stored(phrase)
        chosen = np.array(sorted(set(document_ids)), np.int64)
        places = np.searchsorted(ids, chosen)
        held = places < len(ids)
        held[held] = ids[places[held]] == chosen[held]
        frequencies = self._relative(chosen[held], weighted[places[held]])
        result = dict(zip(chosen[held].tolist(), frequencies.tolist(), strict=True))
        return result | of_changed

    def _leaf(self, phrase: Phrase) -> Matches:
        if not self._words.documents(phrase):
            return _matches(self._scored(phrase))
        total = totals(self._words.connection).documents
        ids, weighted = self._stored(phrase)
        frequencies = self._relative(ids, weighted)
        changed_ids = self._words.changed_ids()
        fresh: list[int] = []
        if changed_ids:
            # Without the sign SQLite looks up each of the ids, which does not depend on the word.
            rows = self._words.connection.execute(
                "SELECT rowid FROM z_documents_fts WHERE z_documents_fts MATCH ?"
                " AND rowid IN (SELECT value FROM json_each(?))",
                [render(phrase), json.dumps(changed_ids)],
            )
            fresh = [document_id for (document_id,) in rows]
        weight = idf(len(ids) + len(fresh), total) * (BM25_K1 + 1)
        scores = weight * frequencies / (frequencies + 1)
        if not fresh:
            return Matches(ids, scores)
        ours = _matches(self._scored(phrase, fresh))
        ids = np.concatenate([ids, ours.ids])
        order = np.argsort(ids)
        return Matches(ids[order], np.concatenate([scores, ours.scores])[order])

    def _scored(self, phrase: Phrase, ids: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Pairs of id and bm25 by full text, ascending; of some documents or all."""
        condition = "" if ids is None else " AND +rowid IN (SELECT value FROM json_each(?))"
        return self._words.connection.execute(
            f"SELECT rowid, -{BM25} FROM z_documents_fts"
            f" WHERE z_documents_fts MATCH ?{condition} ORDER BY rowid",
            [render(phrase), *([] if ids is None else [json.dumps(ids)])],
        ).fetchall()

    def _stored(self, phrase: Phrase) -> tuple[NDArray[np.int64], NDArray[np.integer[Any]]]:
        """Ids of documents that have not changed, and how often they hold a word, weighted."""
        name = f"{token_of(phrase)} {bool(phrase.fields)}"
        if name in self._read:
            return self._read[name]
        row = self._words.row(phrase, token_of(phrase) or "", "documents, distances, frequencies")
        if row is None:
            raise ValueError("a common word is missing")
        count, distances, stored = row
        ids = np.cumsum(_numbers(distances, count), dtype=np.int64)
        weighted = _numbers(stored, count)
        changed = np.array(self._words.changed_ids(), np.int64)
        if len(changed):
            is_changed = np.zeros(int(ids[-1]) + 1, bool)
            is_changed[changed[changed < len(is_changed)]] = True
            kept = ~is_changed[ids]
            ids, weighted = ids[kept], weighted[kept]
        self._read[name] = ids, weighted
        return ids, weighted

    def _relative(
        self, ids: NDArray[np.int64], weighted: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """Frequencies as bm25 counts them: relative to the length of each document."""
        mean_tokens = totals(self._words.connection).mean_tokens
        norms = BM25_K1 * (1 - BM25_B + BM25_B * self._lengths()[ids] / mean_tokens)
        relative: NDArray[np.float64] = weighted / (WEIGHT_SCALE * norms)
        return relative

    def _lengths(self) -> NDArray[np.uint32]:
        """How many tokens each document has, by id; kept with the connection: 4 MB of a million."""
        connection = self._words.connection
        kept = connection.lengths if isinstance(connection, ReadingConnection) else None
        if kept is not None and kept[0] == self._words.build_id:
            return np.frombuffer(kept[1], np.uint32)
        (lengths,) = connection.execute(
            "SELECT lengths FROM z_common_word_builds WHERE id = ?", [self._words.build_id]
        ).fetchone()
        if isinstance(connection, ReadingConnection) and self._words.build_id is not None:
            connection.lengths = self._words.build_id, lengths
        return np.frombuffer(lengths, np.uint32)


def _matches(rows: list[tuple[int, float]]) -> Matches:
    return Matches(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.float64),
    )


def _numbers(data: bytes, count: int) -> NDArray[np.unsignedinteger]:
    """Raises ValueError: The row is damaged."""
    if count < 1 or len(data) % count:
        raise ValueError("a common word has numbers of impossible length")
    types = {1: np.uint8, 2: np.uint16, 4: np.uint32}
    return np.frombuffer(data, types[len(data) // count])

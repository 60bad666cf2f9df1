"""
Evaluates a match expression by the table ``z_common_words``, where full text would take too long.

FTS5 counts the documents that match in 30 ns each, but it scores them in a microsecond each, all of
them, to find the best ten. So a large database stores for its most common words which documents
hold them, and how often. An expression of several words is evaluated leaf by leaf: common words
from this table, all others by full text; numpy adds up the scores. Scores and hits are those of
FTS5's bm25 (https://sqlite.org/fts5.html#the_bm25_function).

The table is a snapshot. Documents that were changed since are looked up in full text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from qmd import libraries
from qmd.store.full_text import BM25_K1
from qmd.store.match import CONTENT_FIELDS, Expression, Phrase
from qmd.store.sql import Sql
from qmd.store.sqlite.library import Connection, ReadingConnection
from qmd.store.sqlite.match import render
from qmd.store.sqlite.tokenizer import tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The constant b in the bm25 of FTS5.
_B = 0.75
#: How much an occurrence counts in title, headings, body, path, extra, description. Headings stand
#: in the body as well, and descriptions in extra. Measured nearly flat: .556 to .569 mean MRR@10 of
#: five sets of questions, these best; docs/search.md has the figures for descriptions.
WEIGHTS = (3.0, 0.5, 1.0, 1.5, 0.5, 0.8)
#: ``z_common_words.frequencies`` are sums of weights times this number, so they are whole.
WEIGHT_SCALE = 10
#: What ends the name of the beginning of a word, which stands for all tokens that begin so.
BEGINS = "*"
#: What ends the name of a word that is looked for in all fields but the path, if that differs.
OUTSIDE_PATHS = "/"
#: The characters from here on are Chinese, Japanese or Korean ones, or signs.
FIRST_CJK = "\u2e80"


class Totals(NamedTuple):
    """How many documents the full-text index has, and the mean number of their tokens."""

    documents: int
    mean_tokens: float


class Matches(NamedTuple):
    """
    The documents that match an expression.

    Attributes:
        ids: int64[n], ascending.
        scores: float64[n], bm25; each above 0.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


def totals(connection: Connection, table: str = "z_documents_fts_data") -> Totals:
    """Read the record of averages of the full-text index; it costs nothing, however many."""
    row = connection.execute(f"SELECT block FROM {table} WHERE id = 1").fetchone()
    documents, *column_tokens = varints(row[0] if row else b"") or [0]
    return Totals(documents, sum(column_tokens) / documents if documents else 0.0)


def varints(data: bytes) -> list[int]:
    """The numbers of a record: seven bits in a byte, the last byte of a number below 128."""
    numbers, value, length = [], 0, 0
    for byte in data:
        length += 1
        if length == 9:  # the ninth byte has eight bits
            numbers.append(value << 8 | byte)
            value = length = 0
            continue
        value = value << 7 | byte & 127
        if byte < 128:
            numbers.append(value)
            value = length = 0
    return numbers


def idf(held: int, total: int) -> float:
    """FTS5's own weight of a phrase: 0.000001 for what more than half of all documents hold."""
    return max(log((total - held + 0.5) / (held + 0.5)), 1e-6) if held < total else 1e-6


def token_of(phrase: Phrase) -> str | None:
    """The token under which ``z_common_words`` has a phrase; None if it cannot have it."""
    if phrase.fields not in ((), CONTENT_FIELDS):
        return None
    stored = tokens(phrase.text)
    if len(stored) != 1 or (phrase.fields and stored[0] < FIRST_CJK):
        return None
    return stored[0] + BEGINS if phrase.prefix else stored[0]


class CommonWords:
    """The finished build of ``z_common_words`` in one snapshot; `build_id` is None without one."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection
        row = self._connection.execute(
            "SELECT max(id) FROM z_common_word_builds WHERE finished"
        ).fetchone()
        self.build_id: int | None = row[0]
        self._changed: list[int] | None = None
        self._read: dict[str, tuple[NDArray[np.int64], NDArray[np.integer[Any]]]] = {}

    def documents(self, phrase: Phrase) -> int:
        """How many documents hold a common word, nearly; 0 for other words and phrases."""
        token = None if self.build_id is None else token_of(phrase)
        if token is None:
            return 0
        row = self._row(phrase, token, "documents")
        return 0 if row is None else int(row[0])

    def _row(self, phrase: Phrase, token: str, columns: str) -> tuple[Any, ...] | None:
        """The row of a word; that of the word outside paths, if the phrase asks for it."""
        names = self._names(token) if phrase.prefix else [token]
        if phrase.fields:
            names = [each for name in names for each in (name + OUTSIDE_PATHS, name)]
        for name in names:
            row: tuple[Any, ...] | None = self._connection.execute(
                f"SELECT {columns} FROM z_common_words WHERE build_id = ? AND token = ?",
                [self.build_id, name],
            ).fetchone()
            if row is not None:
                return row
        return None

    def _names(self, beginning: str) -> list[str]:
        """
        The names that a beginning may have in the table.

        All terms that begin with ``gree`` may begin with ``green``. Then only that is there, as
        the first of those that begin so.
        """
        begins = beginning.removesuffix(BEGINS)
        row = self._connection.execute(
            "SELECT token FROM z_common_words WHERE build_id = ? AND token >= ?"
            " ORDER BY token LIMIT 1",
            [self.build_id, begins],
        ).fetchone()
        if row is None or not row[0].startswith(begins):
            return []
        word = row[0].rstrip(BEGINS + OUTSIDE_PATHS)
        return [word + BEGINS, word]

    def cost(self, match: Expression) -> int:
        """How many documents with common words FTS5 would have to score, at most."""
        if self.build_id is None:
            return 0
        if isinstance(match, Phrase):
            return self.documents(match)
        if match.operator == "but not":
            return self.cost(match.parts[0])
        costs = [self.cost(part) for part in match.parts]
        return sum(costs) if match.operator == "any" else min(costs)

    def evaluate(self, match: Expression) -> Matches:
        """All documents that match, with their scores."""
        if isinstance(match, Phrase):
            return self._leaf(match)
        parts = [self.evaluate(part) for part in match.parts]
        highest = max((int(part.ids[-1]) for part in parts if len(part.ids)), default=0)
        scores = libraries.np.zeros(highest + 1)
        if match.operator == "any":
            for part in parts:
                scores[part.ids] += part.scores
            ids = libraries.np.flatnonzero(scores)
        elif match.operator == "all":
            count = libraries.np.zeros(highest + 1, libraries.np.uint16)
            for part in parts:
                scores[part.ids] += part.scores
                count[part.ids] += 1
            ids = libraries.np.flatnonzero(count == len(parts))
        else:
            scores[parts[0].ids] = parts[0].scores
            for part in parts[1:]:
                scores[part.ids] = 0.0
            ids = libraries.np.flatnonzero(scores)
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
        chosen = libraries.np.array(sorted(set(document_ids)), libraries.np.int64)
        places = libraries.np.searchsorted(ids, chosen)
        held = places < len(ids)
        held[held] = ids[places[held]] == chosen[held]
        frequencies = self._relative(chosen[held], weighted[places[held]])
        result = dict(zip(chosen[held].tolist(), frequencies.tolist(), strict=True))
        return result | of_changed

    def changed_ids(self) -> list[int]:
        """The documents of which only full text knows."""
        if self._changed is None:
            rows = self._connection.execute(
                "SELECT document_id FROM z_changed_documents WHERE build_id >= ?", [self.build_id]
            )
            self._changed = [document_id for (document_id,) in rows]
        return self._changed

    def _leaf(self, phrase: Phrase) -> Matches:
        if not self.documents(phrase):
            return _matches(self._scored(phrase))
        total = totals(self._connection).documents
        ids, weighted = self._stored(phrase)
        frequencies = self._relative(ids, weighted)
        changed_ids = self.changed_ids()
        fresh: list[int] = []
        if changed_ids:
            # Without the sign SQLite looks up each of the ids, which does not depend on the word.
            rows = self._connection.execute(
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
        ids = libraries.np.concatenate([ids, ours.ids])
        order = libraries.np.argsort(ids)
        return Matches(ids[order], libraries.np.concatenate([scores, ours.scores])[order])

    def _scored(self, phrase: Phrase, ids: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Pairs of id and bm25 by full text, ascending; of some documents or all."""
        weights = ", ".join(map(str, WEIGHTS))
        condition = "" if ids is None else " AND +rowid IN (SELECT value FROM json_each(?))"
        return self._connection.execute(
            f"SELECT rowid, -bm25(z_documents_fts, {weights}) FROM z_documents_fts"
            f" WHERE z_documents_fts MATCH ?{condition} ORDER BY rowid",
            [render(phrase), *([] if ids is None else [json.dumps(ids)])],
        ).fetchall()

    def _stored(self, phrase: Phrase) -> tuple[NDArray[np.int64], NDArray[np.integer[Any]]]:
        """Ids of documents that have not changed, and how often they hold a word, weighted."""
        name = f"{token_of(phrase)} {bool(phrase.fields)}"
        if name in self._read:
            return self._read[name]
        row = self._row(phrase, token_of(phrase) or "", "documents, distances, frequencies")
        if row is None:
            raise ValueError("a common word is missing")
        count, distances, stored = row
        ids = libraries.np.cumsum(_numbers(distances, count), dtype=libraries.np.int64)
        weighted = _numbers(stored, count)
        changed = libraries.np.array(self.changed_ids(), libraries.np.int64)
        if len(changed):
            is_changed = libraries.np.zeros(int(ids[-1]) + 1, bool)
            is_changed[changed[changed < len(is_changed)]] = True
            kept = ~is_changed[ids]
            ids, weighted = ids[kept], weighted[kept]
        self._read[name] = ids, weighted
        return ids, weighted

    def _relative(
        self, ids: NDArray[np.int64], weighted: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """Frequencies as bm25 counts them: relative to the length of each document."""
        mean_tokens = totals(self._connection).mean_tokens
        norms = BM25_K1 * (1 - _B + _B * self._lengths()[ids] / mean_tokens)
        relative: NDArray[np.float64] = weighted / (WEIGHT_SCALE * norms)
        return relative

    def _lengths(self) -> NDArray[np.uint32]:
        """How many tokens each document has, by id; kept with the connection: 4 MB of a million."""
        connection = self._connection
        kept = connection.lengths if isinstance(connection, ReadingConnection) else None
        if kept is not None and kept[0] == self.build_id:
            return libraries.np.frombuffer(kept[1], libraries.np.uint32)
        (lengths,) = connection.execute(
            "SELECT lengths FROM z_common_word_builds WHERE id = ?", [self.build_id]
        ).fetchone()
        if isinstance(connection, ReadingConnection) and self.build_id is not None:
            connection.lengths = self.build_id, lengths
        return libraries.np.frombuffer(lengths, libraries.np.uint32)


def _matches(rows: list[tuple[int, float]]) -> Matches:
    return Matches(
        libraries.np.array([row[0] for row in rows], libraries.np.int64),
        libraries.np.array([row[1] for row in rows], libraries.np.float64),
    )


def _numbers(data: bytes, count: int) -> NDArray[np.unsignedinteger]:
    """Raises ValueError: The row is damaged."""
    if count < 1 or len(data) % count:
        raise ValueError("a common word has numbers of impossible length")
    types = {1: libraries.np.uint8, 2: libraries.np.uint16, 4: libraries.np.uint32}
    return libraries.np.frombuffer(data, types[len(data) // count])

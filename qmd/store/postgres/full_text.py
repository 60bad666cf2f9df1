"""Searches full text: a match expression goes in, document ids with bm25 come out."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.full_text import BM25_K1
from qmd.store.match import Expression, Phrase
from qmd.store.postgres.filters import require_sql
from qmd.store.postgres.library import Connection
from qmd.store.postgres.match import MatchQuery, leaf, translate
from qmd.store.postgres.rows import one
from qmd.store.selection import Selection
from qmd.store.sqlite.common_words import idf

#: The constant b in the bm25 of FTS5, which both engines share.
_B = 0.75
#: The share of the most that an expression can add to bm25 never reaches 1; rounding may.
_MOST_SHARE = 0.999


class PostgresFullText:
    """`qmd.store.full_text.FullText` in PostgreSQL."""

    is_incomplete = False

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def document_count(self) -> int:
        return int(one(self._connection, "SELECT documents FROM full_text_totals")[0])

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        where = require_sql(selection)
        condition = "" if where.is_all else (
            f" WHERE m.document_id IN (SELECT d.id FROM documents d WHERE {where.sql})"
        )  # fmt: skip
        query = translate(match)
        scored, values = self._scored(query, condition, where.values)
        rows = self._connection.execute(
            f"{query.with_clause} {scored} ORDER BY score DESC, document_id LIMIT %s",
            [*query.values, *values, limit],
        )
        return [(document_id, score) for document_id, score in rows]

    def _scored(
        self, query: MatchQuery, condition: str, values: Sequence[object]
    ) -> tuple[str, list[object]]:
        """
        A query of ``document_id`` and bm25 as ``score``, over the leaves; and its values.

        It is FTS5's: https://sqlite.org/fts5.html#the_bm25_function
        """
        documents, mean_length = self._totals()
        norm = f"{BM25_K1 * (1 - _B)}::float8 + {BM25_K1 * _B}::float8 * t.length / %s"
        terms, joins = [], []
        for number in query.scored:
            held = f"(SELECT count(*) FROM l{number})"
            weight = f"greatest(ln((%s - {held} + 0.5) / ({held} + 0.5::float8)), 0.000001)"
            terms.append(
                f"coalesce({weight} * l{number}.weight * {BM25_K1 + 1}::float8"
                f" / (l{number}.weight + {norm}), 0)"
            )
            joins.append(f" LEFT JOIN l{number} USING (document_id)")
        numbers: list[object] = [float(documents), mean_length] * len(terms)
        sql = (
            f"SELECT document_id, {' + '.join(terms)} AS score FROM ({query.documents}) m"
            f" JOIN document_tokens t USING (document_id){''.join(joins)}{condition}"
        )
        return sql, [*numbers, *values]

    def _totals(self) -> tuple[int, float]:
        """How many documents there are, and the mean number of their tokens."""
        documents, length = one(self._connection, "SELECT documents, length FROM full_text_totals")
        return int(documents), float(length) / max(documents, 1) or 1.0

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        if isinstance(match, Phrase):
            _, mean_length = self._totals()
            sql, values = leaf(match)
            rows = self._connection.execute(
                f"SELECT l.document_id, l.weight, t.length FROM ({sql}) l"
                " JOIN document_tokens t USING (document_id) WHERE l.document_id = ANY(%s)",
                [*values, list(ids)],
            )
            return {
                document_id: weight / (BM25_K1 * (1 - _B + _B * length / mean_length))
                for document_id, weight, length in rows
            }
        query = translate(match)
        scored, numbers = self._scored(query, " WHERE m.document_id = ANY(%s)", [list(ids)])
        scores = self._connection.execute(
            f"{query.with_clause} {scored}", [*query.values, *numbers]
        ).fetchall()
        most = idf(held, total) * (BM25_K1 + 1)
        shares = {document_id: min(score / most, _MOST_SHARE) for document_id, score in scores}
        return {document_id: share / (1 - share) for document_id, share in shares.items()}

    def count(self, match: Expression, most: int) -> int:
        query = translate(match)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM ({query.documents}) m LIMIT %s) c"
        return int(one(self._connection, f"{query.with_clause} {sql}", [*query.values, most])[0])

    def matching_ids(self, match: Expression) -> list[int]:
        query = translate(match)
        rows = self._connection.execute(
            f"{query.with_clause} SELECT document_id FROM ({query.documents}) m"
            " ORDER BY document_id",
            query.values,
        )
        return [document_id for (document_id,) in rows]

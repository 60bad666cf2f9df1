"""Searches full text: a match expression goes in, document ids with bm25 come out."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.full_text import BM25_K1
from qmd.store.match import Expression, Phrase
from qmd.store.postgres.library import Connection
from qmd.store.postgres.match import MatchQuery, leaf, translate
from qmd.store.postgres.rows import one, require_sql
from qmd.store.selection import Selection
from qmd.store.sql import Sql
from qmd.store.sqlite.common_words import idf

#: The constant b in the bm25 of FTS5, which both engines share.
_B = 0.75
#: The share of the most that an expression can add to bm25 never reaches 1; rounding may.
_MOST_SHARE = 0.999


class PostgresFullText:
    """`qmd.store.full_text.FullText` in PostgreSQL."""

    is_incomplete = False

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def document_count(self) -> int:
        return int(one(self._connection, "SELECT documents FROM z_full_text_totals")[0])

    def terms(self, beginning: str, most: int) -> dict[str, int]:
        rows = self._connection.execute(
            "SELECT token, count(*) FROM z_postings WHERE token >= %s AND token < %s"
            " GROUP BY token ORDER BY token LIMIT %s",
            [beginning, f"{beginning}\U0010ffff", most],
        )
        return dict(rows.fetchall())

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        where = require_sql(selection)
        condition = "" if where.is_all else (
            f" WHERE document_id IN (SELECT d.id FROM documents d WHERE {where.sql})"
        )  # fmt: skip
        query = translate(match)
        scored, values = self._scored(query, condition, where.values)
        leaves = query.with_clause(are_kept=True)
        rows = self._connection.execute(
            f"{leaves} {scored} ORDER BY score DESC, document_id LIMIT %s",
            [*query.values, *values, limit],
        )
        return [(document_id, score) for document_id, score in rows]

    def _scored(
        self, query: MatchQuery, condition: str, values: Sequence[object]
    ) -> tuple[str, list[object]]:
        """
        A query of ``document_id`` and bm25 as ``score``, over the leaves; and its values.

        It is FTS5's: https://sqlite.org/fts5.html#the_bm25_function

        Args:
            condition: " WHERE " and what a ``document_id`` must fulfil, or nothing; and its values.
        """
        documents, mean_length = self._totals()
        terms = [
            f"(SELECT greatest(ln((%s - count(*) + 0.5) / (count(*) + 0.5::float8)), 0.000001)"
            f" FROM l{n}) * l{n}.weight * {BM25_K1 + 1}::float8 / (l{n}.weight"
            f" + {BM25_K1 * (1 - _B)}::float8 + {BM25_K1 * _B}::float8 * l{n}.length / %s)"
            for n in query.scored
        ]
        numbers: list[object] = [float(documents), mean_length] * len(terms)
        if len(terms) == 1 and len(query.leaves) == 1:
            sql = f"SELECT document_id, {terms[0]} AS score FROM l0{condition}"
            return sql, [*numbers, *values]
        # One sum of the rows of all leaves. A join would depend on how many rows the server
        # expects: where it expects one and there are thousands, it compares each with each.
        rows = " UNION ALL ".join(
            f"SELECT document_id, {term} AS term FROM l{n}"
            for n, term in zip(query.scored, terms, strict=True)
        )
        if not query.is_any:
            # The server cannot turn this form into a join, either.
            matching = (
                "EXISTS (SELECT 1 FROM m) AND (document_id IN (SELECT document_id FROM m)) IS TRUE"
            )
            condition = f"{condition} AND {matching}" if condition else f" WHERE {matching}"
        sql = f"SELECT document_id, sum(term) AS score FROM ({rows}) t{condition} GROUP BY 1"
        return sql, [*numbers, *values]

    def _totals(self) -> tuple[int, float]:
        """How many documents there are, and the mean number of their tokens."""
        documents, length = one(
            self._connection, "SELECT documents, length FROM z_full_text_totals"
        )
        return int(documents), float(length) / max(documents, 1) or 1.0

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        if isinstance(match, Phrase):
            _, mean_length = self._totals()
            sql, values = leaf(match)
            rows = self._connection.execute(
                f"SELECT document_id, weight, length FROM ({sql}) l WHERE document_id = ANY(%s)",
                [*values, list(ids)],
            )
            return {
                document_id: weight / (BM25_K1 * (1 - _B + _B * length / mean_length))
                for document_id, weight, length in rows
            }
        query = translate(match)
        scored, numbers = self._scored(query, " WHERE document_id = ANY(%s)", [list(ids)])
        scores = self._connection.execute(
            f"{query.with_clause(are_kept=True)} {scored}", [*query.values, *numbers]
        ).fetchall()
        most = idf(held, total) * (BM25_K1 + 1)
        shares = {document_id: min(score / most, _MOST_SHARE) for document_id, score in scores}
        return {document_id: share / (1 - share) for document_id, share in shares.items()}

    def count(self, match: Expression, most: int) -> int:
        query = translate(match)
        sql = "SELECT count(*) FROM (SELECT 1 FROM m LIMIT %s) c"
        leaves = query.with_clause(are_kept=False)
        return int(one(self._connection, f"{leaves} {sql}", [*query.values, most])[0])

    def matching_ids(self, match: Expression) -> list[int]:
        query = translate(match)
        rows = self._connection.execute(
            f"{query.with_clause(are_kept=False)} SELECT document_id FROM m ORDER BY document_id",
            query.values,
        )
        return [document_id for (document_id,) in rows]

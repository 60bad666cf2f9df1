"""Searches full text: a match expression goes in, document ids with bm25 come out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from qmd.store.full_text import BM25_B, BM25_K1, FullText, frequencies_of
from qmd.store.match import Expression, Phrase
from qmd.store.postgres.match import MatchQuery, leaf, translate
from qmd.store.sql import Sql
from qmd.store.sql.filters import Selection


def full_text(sql: Sql) -> FullText:
    """What searches the snapshot of a connection."""
    return PostgresFullText(sql)


class PostgresFullText(FullText):
    """`FullText` in PostgreSQL."""

    def document_count(self) -> int:
        return self._sql.number("SELECT documents FROM z_full_text_totals")

    def terms(self, beginning: str, most: int) -> dict[str, int]:
        rows = self._sql.run(
            "SELECT token, count(*) FROM z_postings WHERE token >= ? AND token < ?"
            " GROUP BY token ORDER BY token LIMIT ?",
            [beginning, f"{beginning}\U0010ffff", most],
        )
        return dict(rows.fetchall())

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        condition = "" if selection.is_all else (
            f" WHERE document_id IN (SELECT d.id FROM documents d WHERE {selection.sql})"
        )  # fmt: skip
        query = translate(match)
        scored, values = self._scored(query, condition, selection.values)
        leaves = query.with_clause(are_kept=True)
        rows = self._sql.run(
            f"{leaves} {scored} ORDER BY score DESC, document_id LIMIT ?",
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
        documents, mean_length = self._totals
        terms = [
            f"(SELECT greatest(ln((? - count(*) + 0.5) / (count(*) + 0.5::float8)), 0.000001)"
            f" FROM l{n}) * l{n}.weight * {BM25_K1 + 1}::float8 / (l{n}.weight"
            f" + {BM25_K1 * (1 - BM25_B)}::float8 + {BM25_K1 * BM25_B}::float8 * l{n}.length / ?)"
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

    @cached_property
    def _totals(self) -> tuple[int, float]:
        """
        How many documents there are, and the mean number of their tokens.

        In a scope the server counts them.
        """
        documents, length = self._sql.first("SELECT documents, length FROM z_full_text_totals")
        return int(documents), float(length) / max(documents, 1) or 1.0

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        if isinstance(match, Phrase):
            _, mean_length = self._totals
            sql, values = leaf(match)
            rows = self._sql.run(
                f"SELECT document_id, weight, length FROM ({sql}) l WHERE document_id = ANY(?)",
                [*values, list(ids)],
            )
            return {
                document_id: weight / (BM25_K1 * (1 - BM25_B + BM25_B * length / mean_length))
                for document_id, weight, length in rows
            }
        query = translate(match)
        scored, numbers = self._scored(query, " WHERE document_id = ANY(?)", [list(ids)])
        scores = self._sql.run(
            f"{query.with_clause(are_kept=True)} {scored}", [*query.values, *numbers]
        ).fetchall()
        return frequencies_of(scores, held, total)

    def count(self, match: Expression, most: int) -> int:
        query = translate(match)
        sql = "SELECT count(*) FROM (SELECT 1 FROM m LIMIT ?) c"
        leaves = query.with_clause(are_kept=False)
        return self._sql.number(f"{leaves} {sql}", [*query.values, most])

    def matching_ids(self, match: Expression) -> list[int]:
        query = translate(match)
        rows = self._sql.run(
            f"{query.with_clause(are_kept=False)} SELECT document_id FROM m ORDER BY document_id",
            query.values,
        )
        return [document_id for (document_id,) in rows]

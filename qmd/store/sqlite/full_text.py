"""Searches full text: an FTS5 expression goes in, document ids with bm25 come out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log

from qmd.store.full_text import BM25_K1
from qmd.store.match import Expression
from qmd.store.selection import Selection
from qmd.store.sqlite.filters import require_sql
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.match import render

#: How much an occurrence counts in title, headings, body, path, extra, description. Headings stand
#: in the body as well, and descriptions in extra. Measured nearly flat: .556 to .569 mean MRR@10 of
#: five sets of questions, these best; docs/search.md has the figures for descriptions.
WEIGHTS = (3.0, 0.5, 1.0, 1.5, 0.5, 0.8)

#: The share of the most that an expression can add to bm25 never reaches 1; rounding may.
MOST_SHARE = 0.999


class SqliteFullText:
    """`qmd.store.full_text.FullText` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        where = require_sql(selection)
        # ORDER BY bm25() LIMIT keeps a heap of the best; ORDER BY rank sorts everything.
        weights = ", ".join(map(str, WEIGHTS))
        condition = (
            ""
            if where.is_all
            # The sign keeps SQLite from beginning the whole search anew for each of the ids.
            else f" AND +rowid IN ({where.ids})"
        )
        rows = self._connection.execute(
            f"SELECT rowid, bm25(documents_fts, {weights}) AS score FROM documents_fts"
            f" WHERE documents_fts MATCH ?{condition}"
            " ORDER BY score, rowid LIMIT ?",
            [render(match), *where.values, -1 if limit is None else limit],
        )
        return [(document_id, -score) for document_id, score in rows]

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        # FTS5 gives no frequencies, but its bm25 of one expression is idf · (k1 + 1) · f / (f + 1).
        weights = ", ".join(map(str, WEIGHTS))
        # SQLite's own idf: 0.000001 for what more than half of all documents hold.
        idf = max(log((total - held + 0.5) / (held + 0.5)), 1e-6) if held < total else 1e-6
        # The sign keeps SQLite from beginning the whole search anew for each of the ids.
        rows = self._connection.execute(
            f"SELECT rowid, -bm25(documents_fts, {weights}) FROM documents_fts"
            " WHERE documents_fts MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
            [render(match), json.dumps(list(ids))],
        )
        most = idf * (BM25_K1 + 1)
        frequencies = {}
        for document_id, score in rows:
            share = min(score / most, MOST_SHARE)
            frequencies[document_id] = share / (1 - share) if share > 0.0 else 0.0
        return frequencies

    def count(self, match: Expression, most: int) -> int:
        row = self._connection.execute(
            "SELECT count(*) FROM"
            " (SELECT 1 FROM documents_fts WHERE documents_fts MATCH ? LIMIT ?)",
            [render(match), most],
        ).fetchone()
        return int(row[0])

    def matching_ids(self, match: Expression) -> list[int]:
        rows = self._connection.execute(
            "SELECT rowid FROM documents_fts WHERE documents_fts MATCH ? ORDER BY rowid",
            [render(match)],
        )
        return [document_id for (document_id,) in rows]

"""
Restricts a connection to some collections: to it, all other rows do not exist.

A name in SQL means the temporary view of this name, if there is one, before the table. So each
table gets a temporary view with the rows that belong to the collections, and every statement of
every capability reads that view. `qmd.store.scoped` says which rows those are. Only the
full-text index has no views: `ScopedFullText` searches it so that hits and scores tell nothing of
closed documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from qmd.store import full_text
from qmd.store.scoped import ScopeWords, visible_rows
from qmd.store.sql import Sql
from qmd.store.sqlite.fts5 import BM25, render, totals, varints
from qmd.store.sqlite.library import Connection

if TYPE_CHECKING:
    from qmd.store.sql.filters import Selection
    from qmd.values.access import AccessScope

_OPEN = "IN (SELECT name FROM temp.scope_names)"
_COLLECTIONS = f"(SELECT c.id FROM main.collections c WHERE c.name {_OPEN})"
_ROWS = visible_rows(
    ScopeWords(
        main="main",
        is_open=f"{{0}}.name {_OPEN}",
        # The sign keeps SQLite from reading a whole collection where another index leads to a few
        # rows.
        of_collection=f"+{{0}}.collection_id IN {_COLLECTIONS}",
        of_document=(
            "EXISTS (SELECT 1 FROM main.documents d WHERE d.id = {0}"
            f" AND d.collection_id IN {_COLLECTIONS})"
        ),
        owner="(SELECT owner FROM temp.scope_owner)",
    )
)


def restrict(connection: Connection, scope: AccessScope) -> None:
    """Restrict a connection that was opened just now, for as long as it is open."""
    connection.execute("CREATE TEMP TABLE scope_names (name TEXT PRIMARY KEY) WITHOUT ROWID")
    connection.executemany(
        "INSERT INTO temp.scope_names VALUES (?)", [(name,) for name in sorted(scope.read)]
    )
    connection.execute("CREATE TEMP TABLE scope_owner (owner TEXT)")
    connection.execute("INSERT INTO temp.scope_owner VALUES (?)", [scope.owner])
    names = connection.execute(
        "SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    for (name,) in names:
        condition = _ROWS.get(name, "false")
        connection.execute(
            f'CREATE TEMP VIEW "{name}" AS SELECT t.* FROM main."{name}" t WHERE {condition}'
        )


#: The best documents of a search that are scored again.
_SCORED = 300
#: Places of tokens that are read to list those of a scope: about a second.
_PLACES = 2_000_000
#: A view cannot have a full-text index, so a condition restricts the rows.
_MATCHES = (
    "FROM main.z_documents_fts WHERE z_documents_fts MATCH ?"
    " AND EXISTS (SELECT 1 FROM documents s WHERE s.id = z_documents_fts.rowid)"
)


class ScopedFullText(full_text.FullText):
    """
    `FullText` on a connection that is restricted to a scope.

    FTS5 computes bm25 from figures of the whole index, in which the words of closed documents would
    show. So the frequencies of phrases are computed back, and bm25 from them and from figures of
    the scope: how many documents hold a phrase, and the average length of the documents that match.
    """

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        self._connection: Connection = sql.connection
        self._counts = cache(self._count_of_phrase)
        self._number = cache(self._read_number)

    def document_count(self) -> int:
        return self._number("SELECT count(*) FROM documents")

    def terms(self, beginning: str, most: int) -> dict[str, int]:
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.z_vocabulary_of_scope"
            " USING fts5vocab('main', 'z_documents_fts', 'instance')"
        )
        rows = self._connection.execute(
            "SELECT term, count(DISTINCT doc) FROM (SELECT term, doc"
            " FROM temp.z_vocabulary_of_scope WHERE term >= ? AND term < ? LIMIT ?)"
            " WHERE doc IN (SELECT id FROM documents) GROUP BY term ORDER BY term LIMIT ?",
            [beginning, f"{beginning}\U0010ffff", _PLACES, most],
        )
        return dict(rows.fetchall())

    def search(
        self, match: full_text.Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        condition = "" if selection.is_all else f" AND +rowid IN ({selection.ids})"
        rows = self._connection.execute(
            f"SELECT rowid, {BM25} AS score {_MATCHES}{condition} ORDER BY score, rowid LIMIT ?",
            [render(match), *selection.values, -1 if limit is None else max(limit, _SCORED)],
        )
        scores = {document_id: 0.0 for document_id, _ in rows}
        ids, total = list(scores), self.document_count()
        for phrase in dict.fromkeys(_phrases(match)) if scores else ():
            weight = full_text.idf(self._counts(phrase), total) * (full_text.BM25_K1 + 1)
            for document_id, frequency in self.frequencies(phrase, ids, 0, total).items():
                scores[document_id] += weight * frequency / (frequency + 1)
        best = sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
        return best if limit is None else best[:limit]

    def frequencies(
        self, match: full_text.Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        index = totals(self._connection, "main.z_documents_fts_data")
        matching = "SELECT count(*) FROM main.z_documents_fts WHERE z_documents_fts MATCH ?"
        held_by_all = self._number(matching, render(match))
        rows = self._connection.execute(
            f"SELECT rowid, -{BM25} FROM main.z_documents_fts"
            " WHERE z_documents_fts MATCH ? AND +rowid IN"
            " (SELECT s.id FROM json_each(?) j CROSS JOIN documents s ON s.id = j.value)",
            [render(match), json.dumps(list(ids))],
        )
        norms = self._norms(ids, index.mean_tokens)
        frequencies = full_text.frequencies_of(rows, held_by_all, index.documents)
        return {document_id: norms[document_id] * each for document_id, each in frequencies.items()}

    def _norms(self, ids: Sequence[int], average: float) -> dict[int, float]:
        """
        Document id → the factor by which a frequency grows if the average length of a document is
        that of these documents, not ``average`` (in tokens).
        """
        rows = self._connection.execute(
            "SELECT id, sz FROM main.z_documents_fts_docsize"
            " WHERE id IN (SELECT value FROM json_each(?))",
            [json.dumps(list(ids))],
        )
        lengths = {document_id: sum(varints(sizes)) for document_id, sizes in rows}
        mean = sum(lengths.values()) / max(1, len(lengths)) or 1.0
        return {
            document_id: (1 - full_text.BM25_B + full_text.BM25_B * length / (average or 1.0))
            / (1 - full_text.BM25_B + full_text.BM25_B * length / mean)
            for document_id, length in lengths.items()
        }

    def count(self, match: full_text.Expression, most: int) -> int:
        return self._number(
            f"SELECT count(*) FROM (SELECT 1 {_MATCHES} LIMIT ?)", render(match), most
        )

    def matching_ids(self, match: full_text.Expression) -> list[int]:
        return self._sql.column(f"SELECT rowid {_MATCHES} ORDER BY rowid", [render(match)])

    def _count_of_phrase(self, phrase: full_text.Phrase) -> int:
        return self._number(f"SELECT count(*) {_MATCHES}", render(phrase))

    def _read_number(self, sql: str, *values: object) -> int:
        (number,) = self._connection.execute(sql, values).fetchone()
        return int(number)


def _phrases(match: full_text.Expression) -> Iterator[full_text.Phrase]:
    if isinstance(match, full_text.Phrase):
        yield match
    else:
        for part in match.parts:
            yield from _phrases(part)

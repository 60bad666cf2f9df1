"""Full-text search: FTS5 expressions in, document ids and bm25 out."""

from __future__ import annotations

from qmd.sqlite import Connection
from qmd.store.filters import Where

#: bm25 weights of title, headings, body, path, extra.
WEIGHTS = (6.0, 2.0, 1.0, 2.0, 1.0)

#: What a literal is looked for in: what the file says, not where it lies.
CONTENT = "{title headings body extra}"


def search(
    connection: Connection, match: str, where: Where, limit: int | None
) -> list[tuple[int, float]]:
    """
    Document ids with their bm25 (> 0, larger is better), best first, ties by id.

    ``match`` is an FTS5 expression whose literals are quoted (see `qmd.parse.segment`).
    """
    # ORDER BY bm25() LIMIT keeps a heap of the best; ORDER BY rank sorts everything.
    weights = ", ".join(map(str, WEIGHTS))
    condition = (
        ""
        if where.everything
        else f" AND rowid IN (SELECT d.id FROM documents d WHERE {where.sql})"
    )
    rows = connection.execute(
        f"SELECT rowid, -bm25(documents_fts, {weights}) AS score FROM documents_fts"
        f" WHERE documents_fts MATCH ?{condition}"
        f" ORDER BY bm25(documents_fts, {weights}), rowid LIMIT ?",
        [match, *where.values, -1 if limit is None else limit],
    )
    return [(number, score) for number, score in rows]


def count(connection: Connection, match: str, most: int) -> int:
    """How many documents match, counted up to ``most``."""
    row = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM documents_fts WHERE documents_fts MATCH ? LIMIT ?)",
        [match, most],
    ).fetchone()
    return int(row[0])


def matching(connection: Connection, match: str) -> list[int]:
    """Ids of all documents that match, in order, unranked."""
    rows = connection.execute(
        "SELECT rowid FROM documents_fts WHERE documents_fts MATCH ? ORDER BY rowid", [match]
    )
    return [number for (number,) in rows]


def total(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM documents").fetchone()[0])


def optimize(connection: Connection) -> None:
    """Merge the index's segments into one: smaller and a little faster to read."""
    connection.execute("INSERT INTO documents_fts (documents_fts) VALUES ('optimize')")


def check(connection: Connection) -> None:
    """Raises a SQLite error if the full-text index contradicts itself."""
    connection.execute(
        "INSERT INTO documents_fts (documents_fts, rank) VALUES ('integrity-check', 1)"
    )

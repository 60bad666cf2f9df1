"""Full-text search: FTS5 expressions in, document ids and bm25 out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log

from qmd.store.sqlite.filters import Where
from qmd.store.sqlite.library import Connection

#: How much an occurrence counts in title, headings, body, path, extra. Headings stand in the body
#: as well. Measured nearly flat: .556 to .569 mean MRR@10 of five sets of questions, these best.
WEIGHTS = (3.0, 0.5, 1.0, 1.5, 0.5)
#: What FTS5's bm25() is built with.
K1 = 1.2

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


def frequencies(
    connection: Connection, match: str, ids: Sequence[int], held: int, total: int
) -> dict[int, float]:
    """
    How often some documents hold an expression, as bm25 counts it: with `WEIGHTS`, and relative
    to the length of the document, 1 being the frequency that bm25 takes for half of enough.

    FTS5 tells no frequencies, but its bm25 of one expression is idf · (K1 + 1) · f / (f + 1).

    Args:
        ids: Of documents; those that do not hold it are not in the answer.
        held: How many documents hold the expression.
        total: How many documents there are.
    """
    weights = ", ".join(map(str, WEIGHTS))
    # SQLite's own idf: 0.000001 for what more than half of all documents hold.
    idf = max(log((total - held + 0.5) / (held + 0.5)), 1e-6) if held < total else 1e-6
    # The sign keeps SQLite from beginning the whole search anew for each of the ids.
    rows = connection.execute(
        f"SELECT rowid, -bm25(documents_fts, {weights}) FROM documents_fts"
        " WHERE documents_fts MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
        [match, json.dumps(list(ids))],
    )
    found = {}
    for number, score in rows:
        share = min(max(score / (idf * (K1 + 1)), 0.0), 0.999)
        found[number] = share / (1 - share)
    return found


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


def check(connection: Connection) -> None:
    """Raises a SQLite error if the full-text index contradicts itself."""
    connection.execute(
        "INSERT INTO documents_fts (documents_fts, rank) VALUES ('integrity-check', 1)"
    )

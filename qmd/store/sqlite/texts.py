"""Documents' texts as literals are looked for in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from qmd.store.sqlite.filters import Where
from qmd.store.sqlite.library import Connection


def subject(connection: Connection, number: int, field: Literal["title", "path"] | None) -> str:
    """The title, the path, or (None) title and text of a document."""
    column = {"title": "title", "path": "path"}.get(field or "", "title || char(10) || text")
    row = connection.execute(f"SELECT {column} FROM documents WHERE id = ?", [number]).fetchone()
    return str(row[0])


def titles_and_texts(connection: Connection, where: Where) -> Iterator[tuple[int, str]]:
    """Id and ``title newline text`` of all documents that satisfy a condition, by id."""
    yield from connection.execute(
        "SELECT d.id, d.title || char(10) || d.text FROM documents d"
        f" WHERE {where.sql} ORDER BY d.id",
        where.values,
    )


def ids(connection: Connection, where: Where) -> Iterator[int]:
    """
    Ids of all documents that satisfy a condition, the latest first, then by collection and path.

    A moment counts, not how it is written: dates may have an offset from UTC.
    """
    rows = connection.execute(
        "SELECT d.id FROM documents d JOIN collections c ON c.id = d.collection_id"
        f" WHERE {where.sql}"
        " ORDER BY coalesce(julianday(d.date), julianday(d.modified_at)) DESC, c.name, d.path",
        where.values,
    )
    for (number,) in rows:
        yield number

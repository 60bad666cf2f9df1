"""Stores what full text searches: rows of ``z_searchable``, from which triggers make the index."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from qmd.store.sqlite.library import Connection
from qmd.values import NewDocument

_COLUMNS = ("title", "headings", "body", "path", "front", "words", "description")
_entry = attrgetter(*_COLUMNS)
#: Rows in one statement; some SQLite libraries take 999 values at most.
_ROWS_AT_ONCE = 128


def put(connection: Connection, documents: Sequence[tuple[int, NewDocument]]) -> None:
    """
    Store what is searched of documents by id; replacing them has taken their old rows out.

    Before each statement with triggers FTS5 writes the terms that it has gathered as a segment,
    which is merged with others later. So one statement stores many rows.
    """
    for start in range(0, len(documents), _ROWS_AT_ONCE):
        rows = documents[start : start + _ROWS_AT_ONCE]
        connection.execute(
            f"INSERT INTO z_searchable (document_id, {', '.join(_COLUMNS)})"
            " VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(rows)),
            [value for number, document in rows for value in (number, *_entry(document.fulltext))],
        )

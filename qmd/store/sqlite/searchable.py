"""Stores what full text searches: rows of ``z_searchable``, from which triggers make the index."""

from __future__ import annotations

import json
from collections.abc import Sequence

from qmd.store.sqlite.library import Connection
from qmd.values import FullTextEntry, NewDocument

_COLUMNS = ("title", "headings", "body", "path", "front", "words", "description", "replacements")
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
            " VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(rows)),
            [value for number, document in rows for value in (number, *_row(document.fulltext))],
        )


def _row(entry: FullTextEntry) -> tuple[str | None, ...]:
    """The columns of an entry: its body and frontmatter, or what makes them of the document's."""
    body, front, replacements = entry.body, entry.front, None
    if entry.replacements:
        body = front = None
        replacements = json.dumps(entry.replacements, ensure_ascii=False)
    return (
        entry.title,
        entry.headings,
        body,
        entry.path,
        front,
        entry.words,
        entry.description,
        replacements,
    )

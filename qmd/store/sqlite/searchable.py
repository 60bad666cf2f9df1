"""Stores what full text searches: rows of ``z_searchable``, and the full-text index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from qmd.store.sqlite.library import Connection
from qmd.values import FullTextEntry, NewDocument

_COLUMNS = (
    "title", "headings", "body", "path", "front", "words", "description", "replacements",
    "has_pairs",
)  # fmt: skip
#: Rows in one statement; some SQLite libraries take 999 values at most.
_ROWS_AT_ONCE = 96


def put(connection: Connection, documents: Sequence[tuple[int, NewDocument]]) -> None:
    """
    Store what is searched of documents by id; replacing them has taken their old rows out.

    The index gets the texts from here: the view ``z_documents_fts_text`` would have to make them
    again. Its words are the same, so a trigger takes a document out by the view.

    Before each statement with triggers FTS5 writes the terms that it has gathered as a segment,
    which is merged with others later. So the rows come first, and many in one statement.
    """
    marks = f"({', '.join('?' * (1 + len(_COLUMNS)))})"
    for start in range(0, len(documents), _ROWS_AT_ONCE):
        rows = documents[start : start + _ROWS_AT_ONCE]
        connection.execute(
            f"INSERT INTO z_searchable (document_id, {', '.join(_COLUMNS)})"
            f" VALUES {', '.join([marks] * len(rows))}",
            [value for number, document in rows for value in (number, *_row(document.fulltext))],
        )
    connection.executemany(
        "INSERT INTO z_documents_fts (rowid, title, headings, body, path, extra, description)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        _indexed(documents),
    )


def _row(entry: FullTextEntry) -> tuple[str | int | None, ...]:
    """The columns of an entry: its body and frontmatter, or what makes them of the document's."""
    body, front = entry.body, entry.front
    if entry.replacements or entry.has_pairs:
        body = front = None
    replacements = None
    if entry.replacements:
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
        1 if entry.has_pairs else None,
    )


def _indexed(documents: Sequence[tuple[int, NewDocument]]) -> Iterator[tuple[object, ...]]:
    """The columns of the index; those of the view, with the same words."""
    for number, document in documents:
        parsed, entry = document.parsed, document.fulltext
        front = parsed.text[: parsed.body_start] if entry.front is None else entry.front
        yield (
            number,
            parsed.title if entry.title is None else entry.title,
            entry.headings,
            parsed.text[parsed.body_start :] if entry.body is None else entry.body,
            document.path if entry.path is None else entry.path,
            f"{front}\n{entry.words}",
            parsed.description if entry.description is None else entry.description,
        )

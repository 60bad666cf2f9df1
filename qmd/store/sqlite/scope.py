"""
Restricts a connection to some collections: to it, all other rows do not exist.

A name in SQL means the temporary view of this name, if there is one, before the table. So each
table gets a temporary view with the rows that belong to the collections, and every statement of
every capability reads that view. A table that is not in `_ROWS` has no rows: whoever adds a table
must say which rows of it belong to a collection before a restricted client sees any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.store.sqlite.library import Connection

if TYPE_CHECKING:
    from qmd.values.access import AccessScope

_COLLECTIONS = (
    "(SELECT c.id FROM main.collections c WHERE c.name IN (SELECT name FROM temp.scope_names))"
)
_ALL = "1"
#: The sign keeps SQLite from reading a whole collection where another index leads to a few rows.
_OF_COLLECTION = f"+t.collection_id IN {_COLLECTIONS}"


def _of_document(column: str) -> str:
    return (
        f"EXISTS (SELECT 1 FROM main.documents d WHERE d.id = t.{column}"
        f" AND d.collection_id IN {_COLLECTIONS})"
    )


def _below_a_collection(column: str) -> str:
    """
    The condition that the innermost collection around an absolute path is one of the scope.

    So a collection that lies inside the folder of another stays closed with it.
    """
    return (
        "ifnull((SELECT c.name IN (SELECT name FROM temp.scope_names) FROM main.collections c"
        f" WHERE {column} > c.path || '/' AND {column} < c.path || '0'"
        " ORDER BY length(c.path) DESC, 1 DESC LIMIT 1), 0)"
    )


def _revision(row: str) -> str:
    """The condition that the places of a revision's file, before and after it, are visible."""
    moved = f"({row}.moved_from IS NULL OR {_below_a_collection(f'{row}.moved_from')})"
    return f"({_below_a_collection(f'{row}.path')} AND {moved})"


#: Table → the condition on its row ``t`` that makes it visible.
_ROWS = {
    "collections": "t.name IN (SELECT name FROM temp.scope_names)",
    "contexts": f"(t.collection_id IS NULL OR {_OF_COLLECTION})",
    "documents": _OF_COLLECTION,
    "attachments": _OF_COLLECTION,
    "skipped_files": _OF_COLLECTION,
    "z_vectors": _OF_COLLECTION,
    "aliases": _of_document("document_id"),
    "chunks": _of_document("document_id"),
    "links": _of_document("document_id"),
    "z_names": _of_document("document_id"),
    "properties": _of_document("document_id"),
    "z_searchable": _of_document("document_id"),
    "tags": _of_document("document_id"),
    "revisions": _revision("t"),
    # A change of several files is visible if all of them are, for it is undone as a whole.
    "changes": (
        "EXISTS (SELECT 1 FROM main.revisions r WHERE r.change_id = t.id)"
        " AND NOT EXISTS (SELECT 1 FROM main.revisions r WHERE r.change_id = t.id"
        f" AND NOT {_revision('r')})"
    ),
    "chats": "t.owner = (SELECT owner FROM temp.scope_owner)",
    "chat_turns": (
        "EXISTS (SELECT 1 FROM main.chats c WHERE c.id = t.chat_id"
        " AND c.owner = (SELECT owner FROM temp.scope_owner))"
    ),
    # They are reached by the chunks, which are restricted, and hold no text.
    "z_embeddings": _ALL,
    "z_token_states": _ALL,
    # What the program knows of itself and of its models.
    "z_meta": _ALL,
    "z_models": _ALL,
    "z_token_projections": _ALL,
}


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
        condition = _ROWS.get(name, "0")
        connection.execute(
            f'CREATE TEMP VIEW "{name}" AS SELECT t.* FROM main."{name}" t WHERE {condition}'
        )

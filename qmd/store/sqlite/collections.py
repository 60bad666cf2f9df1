"""Reads and writes collections."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from qmd.errors import CollectionNotFoundError, ConflictError
from qmd.store.sql import Sql, access, vector_state
from qmd.store.sqlite import tables
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock
from qmd.system.surrogates import whole
from qmd.values import Collection

_COLUMNS = """
    SELECT c.id, c.name, c.path, c.pattern, c.ignore,
           (SELECT count(*) FROM documents d WHERE d.collection_id = c.id),
           c.updated_at, c.indexed_at, c.included, c.owner
    FROM collections c
"""


def _collection(row: Sequence[Any]) -> Collection:
    require_types(row, int, str, str, str, str, int, str | None, str | None, int, str)
    *identity, ignore, documents, updated_at, indexed_at, included, owner = row
    collection_id, name, path, pattern = identity
    ignored = json.loads(ignore)
    require_types(ignored, *[str] * len(ignored))
    if not is_directory_path(path):
        raise ValueError("a collection's path is none")
    return Collection(
        collection_id,
        name,
        path,
        pattern,
        tuple(ignored),
        documents,
        updated_at,
        indexed_at,
        bool(included),
        owner,
    )


def is_directory_path(path: str) -> bool:
    """Whether a directory can be there: relative to nothing, of characters that names have."""
    return os.path.isabs(path) and "\0" not in path  # noqa: PTH117


def _json(value: Sequence[str] | Mapping[str, int]) -> str:
    return json.dumps(value, ensure_ascii=False)


class SqliteCollections:
    """`qmd.store.collections.Collections` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def all(self) -> list[Collection]:
        rows = self._connection.execute(
            _COLUMNS + "ORDER BY c.updated_at IS NULL, c.updated_at DESC, c.name"
        )
        return [_collection(row) for row in rows]

    def by_name(self, name: str) -> Collection:
        name = whole(name)
        row = self._connection.execute(_COLUMNS + "WHERE c.name = ?", [name]).fetchone()
        if row is None:
            raise CollectionNotFoundError(name, self._similar(name))
        return _collection(row)

    def require_unchanged(self, collection: Collection) -> None:
        row = self._connection.execute(
            "SELECT 1 FROM collections WHERE id = ? AND path = ? AND pattern = ? AND ignore = ?",
            [collection.id, collection.path, collection.pattern, _json(collection.ignore)],
        ).fetchone()
        if row is None:
            raise CollectionNotFoundError(collection.name)

    def _similar(self, name: str) -> list[str]:
        """Names of collections that ``name`` may have been meant for, nearest first."""
        from rapidfuzz import fuzz, process

        names = [
            row[0] for row in self._connection.execute("SELECT name FROM collections ORDER BY name")
        ]
        matches = process.extract(name, names, scorer=fuzz.WRatio, score_cutoff=60, limit=3)
        return [match for match, _, _ in matches]

    def ids(self, names: Sequence[str]) -> list[int]:
        # Without the count of documents, which takes 50 ms for a million.
        stored = dict(self._connection.execute("SELECT name, id FROM collections").fetchall())
        return [stored[name] if name in stored else self.by_name(name).id for name in names]

    def included_names(self) -> list[str] | None:
        rows = self._connection.execute("SELECT name, included FROM collections").fetchall()
        if all(included for _, included in rows):
            return None
        return [name for name, included in rows if included]

    def definitions(self) -> list[tuple[object, ...]]:
        rows = self._connection.execute(
            "SELECT id, name, path, pattern, ignore FROM collections ORDER BY id"
        )
        return [tuple(row) for row in rows]

    def last_changes(self) -> list[tuple[object, ...]]:
        rows = self._connection.execute("SELECT id, name, updated_at FROM collections ORDER BY id")
        return [tuple(row) for row in rows]

    def is_vault(self, name: str) -> bool:
        row = self._connection.execute(
            "SELECT is_vault FROM collections WHERE name = ?", [name]
        ).fetchone()
        return row is None or row[0] is None or bool(row[0])

    def excluded_counts(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for (counts,) in self._connection.execute("SELECT excluded FROM collections"):
            for reason, count in json.loads(counts).items():
                total[reason] = total.get(reason, 0) + count
        return dict(sorted(total.items()))

    def last_indexed_at(self) -> str | None:
        row = self._connection.execute("SELECT max(indexed_at) FROM collections").fetchone()
        return None if row[0] is None else str(row[0])


class SqliteCollectionsWriter(SqliteCollections):
    """`qmd.store.collections.CollectionsWriter` in SQLite."""

    def add(
        self, *, name: str, path: str, pattern: str, ignore: Sequence[str], owner: str = ""
    ) -> Collection:
        same = self._connection.execute(
            "SELECT path FROM collections WHERE name = ?", [name]
        ).fetchone()
        if same is not None:
            hint = "Choose another name with --name, or 'qmd collection remove' the old one."
            if same[0] == path:
                hint = "It is this very folder; 'qmd index' brings it up to date."
            raise ConflictError(f"There is already a collection named '{name}'.", hint=hint)
        if not owner:  # a token may have been promised to push a folder of this name
            access.remove_scopes(self._sql, name)
        tables.table(self._connection, "collections").insert(
            {
                "name": name,
                "path": path,
                "pattern": pattern,
                "ignore": _json(list(ignore)),
                "created_at": clock.now(),
                "owner": owner,
            }
        )
        return self.by_name(name)

    def rename(self, old: str, new: str) -> Collection:
        collection = self.by_name(old)
        if self._connection.execute("SELECT 1 FROM collections WHERE name = ?", [new]).fetchone():
            raise ConflictError(
                f"There is already a collection named '{new}'.", hint="Choose another name."
            )
        tables.table(self._connection, "collections").update(collection.id, {"name": new})
        access.rename_scopes(self._sql, old, new)
        return self.by_name(new)

    def set_included(self, name: str, *, included: bool) -> Collection:
        collection = self.by_name(name)
        tables.table(self._connection, "collections").update(
            collection.id, {"included": int(included)}
        )
        return self.by_name(name)

    def set_rules(self, name: str, *, pattern: str, ignore: Sequence[str]) -> Collection:
        collection = self.by_name(name)
        tables.table(self._connection, "collections").update(
            collection.id, {"pattern": pattern, "ignore": _json(list(ignore))}
        )
        return self.by_name(name)

    def remove(self, name: str) -> Collection:
        collection = self.by_name(name)
        documents = tables.table(self._connection, "documents")
        documents.delete_where("collection_id = ?", [collection.id])
        tables.table(self._connection, "collections").delete(collection.id)
        access.remove_scopes(self._sql, name)
        vector_state.advance(self._sql)
        return collection

    def mark_indexed(
        self,
        collection_id: int,
        *,
        excluded: Mapping[str, int],
        changed: bool,
        is_vault: bool,
    ) -> None:
        now = clock.now()
        self._connection.execute(
            "UPDATE collections SET indexed_at = ?, excluded = ?, is_vault = ?,"
            " updated_at = CASE WHEN ? OR updated_at IS NULL THEN ? ELSE updated_at END"
            " WHERE id = ?",
            [now, _json(dict(excluded)), is_vault, changed, now, collection_id],
        )

    def mark_changed(self, collection_id: int) -> None:
        self._connection.execute(
            "UPDATE collections SET updated_at = ? WHERE id = ?", [clock.now(), collection_id]
        )

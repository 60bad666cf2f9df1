"""Reads and writes collections."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from qmd.errors import CollectionNotFoundError, ConflictError
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.store.sql import Sql, access, vector_state
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
    collection_id, name, path, pattern, ignore, *others = row
    return Collection(collection_id, name, path, pattern, tuple(ignore), *others)


def _json(value: Sequence[str] | Mapping[str, int]) -> str:
    return json.dumps(value, ensure_ascii=False)


class PostgresCollections:
    """`qmd.store.collections.Collections` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def all(self) -> list[Collection]:
        rows = self._connection.execute(_COLUMNS + "ORDER BY c.updated_at DESC NULLS LAST, c.name")
        return [_collection(row) for row in rows]

    def by_name(self, name: str) -> Collection:
        name = whole(name)
        row = self._connection.execute(_COLUMNS + "WHERE c.name = %s", [name]).fetchone()
        if row is None:
            raise CollectionNotFoundError(name, self._similar(name))
        return _collection(row)

    def require_unchanged(self, collection: Collection) -> None:
        row = self._connection.execute(
            "SELECT 1 FROM collections WHERE id = %s AND path = %s AND pattern = %s"
            " AND ignore::text = %s",
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
        return [self.by_name(name).id for name in names]

    def included_names(self) -> list[str] | None:
        rows = self._connection.execute("SELECT name, included FROM collections").fetchall()
        if all(included for _, included in rows):
            return None
        return [name for name, included in rows if included]

    def definitions(self) -> list[tuple[object, ...]]:
        rows = self._connection.execute(
            "SELECT id, name, path, pattern, ignore::text FROM collections ORDER BY id"
        )
        return [tuple(row) for row in rows]

    def last_changes(self) -> list[tuple[object, ...]]:
        rows = self._connection.execute("SELECT id, name, updated_at FROM collections ORDER BY id")
        return [tuple(row) for row in rows]

    def is_vault(self, name: str) -> bool:
        row = self._connection.execute(
            "SELECT is_vault FROM collections WHERE name = %s", [name]
        ).fetchone()
        return row is None or row[0] is None or bool(row[0])

    def excluded_counts(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for (counts,) in self._connection.execute("SELECT excluded FROM collections"):
            for reason, count in counts.items():
                total[reason] = total.get(reason, 0) + count
        return dict(sorted(total.items()))

    def last_indexed_at(self) -> str | None:
        latest = one(self._connection, "SELECT max(indexed_at) FROM collections")[0]
        return None if latest is None else str(latest)


class PostgresCollectionsWriter(PostgresCollections):
    """`qmd.store.collections.CollectionsWriter` in PostgreSQL."""

    def add(
        self, *, name: str, path: str, pattern: str, ignore: Sequence[str], owner: str = ""
    ) -> Collection:
        same = self._connection.execute(
            "SELECT path FROM collections WHERE name = %s", [name]
        ).fetchone()
        if same is not None:
            hint = "Choose another name with --name, or 'qmd collection remove' the old one."
            if same[0] == path:
                hint = "It is this very folder; 'qmd index' brings it up to date."
            raise ConflictError(f"There is already a collection named '{name}'.", hint=hint)
        if not owner:  # a token may have been promised to push a folder of this name
            access.remove_scopes(self._sql, name)
        self._connection.execute(
            "INSERT INTO collections (name, path, pattern, ignore, created_at, owner)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            [name, path, pattern, _json(list(ignore)), clock.now(), owner],
        )
        return self.by_name(name)

    def rename(self, old: str, new: str) -> Collection:
        collection = self.by_name(old)
        if self._connection.execute("SELECT 1 FROM collections WHERE name = %s", [new]).fetchone():
            raise ConflictError(
                f"There is already a collection named '{new}'.", hint="Choose another name."
            )
        self._connection.execute(
            "UPDATE collections SET name = %s WHERE id = %s", [new, collection.id]
        )
        access.rename_scopes(self._sql, old, new)
        return self.by_name(new)

    def set_included(self, name: str, *, included: bool) -> Collection:
        collection = self.by_name(name)
        self._connection.execute(
            "UPDATE collections SET included = %s WHERE id = %s", [included, collection.id]
        )
        return self.by_name(name)

    def set_rules(self, name: str, *, pattern: str, ignore: Sequence[str]) -> Collection:
        collection = self.by_name(name)
        self._connection.execute(
            "UPDATE collections SET pattern = %s, ignore = %s WHERE id = %s",
            [pattern, _json(list(ignore)), collection.id],
        )
        return self.by_name(name)

    def remove(self, name: str) -> Collection:
        collection = self.by_name(name)
        self._connection.execute("DELETE FROM collections WHERE id = %s", [collection.id])
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
            "UPDATE collections SET indexed_at = %s, excluded = %s, is_vault = %s,"
            " updated_at = CASE WHEN %s OR updated_at IS NULL THEN %s ELSE updated_at END"
            " WHERE id = %s",
            [now, _json(dict(excluded)), is_vault, changed, now, collection_id],
        )

    def mark_changed(self, collection_id: int) -> None:
        self._connection.execute(
            "UPDATE collections SET updated_at = %s WHERE id = %s", [clock.now(), collection_id]
        )

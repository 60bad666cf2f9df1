"""Collections and contexts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from qmd.errors import CollectionNotFoundError, ConflictError
from qmd.store.sqlite import clock, vector_state
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.values import Collection

if TYPE_CHECKING:
    from sqlite_utils.db import Table

_COLUMNS = """
    SELECT c.id, c.name, c.path, c.pattern, c.ignore,
           (SELECT count(*) FROM documents d WHERE d.collection_id = c.id),
           c.updated_at, c.indexed_at
    FROM collections c
"""


def _collection(row: Sequence[Any]) -> Collection:
    require_types(row, int, str, str, str, str, int, str | None, str | None)
    number, name, path, pattern, ignore, documents, updated_at, indexed_at = row
    ignored = json.loads(ignore)
    require_types(ignored, *[str] * len(ignored))
    if not is_directory_path(path):
        raise ValueError("a collection's path is none")
    return Collection(
        number, name, path, pattern, tuple(ignored), documents, updated_at, indexed_at
    )


def is_directory_path(path: str) -> bool:
    """Whether a directory can be there: relative to nothing, of characters that names have."""
    return os.path.isabs(path) and "\0" not in path  # noqa: PTH117


def everything(connection: Connection) -> list[Collection]:
    """All collections, the one whose documents changed last first."""
    rows = connection.execute(_COLUMNS + "ORDER BY c.updated_at IS NULL, c.updated_at DESC, c.name")
    return [_collection(row) for row in rows]


def by_name(connection: Connection, name: str) -> Collection:
    row = connection.execute(_COLUMNS + "WHERE c.name = ?", [name]).fetchone()
    if row is None:
        raise CollectionNotFoundError(name, similar(connection, name))
    return _collection(row)


def require_same(connection: Connection, collection: Collection) -> None:
    """
    Raises CollectionNotFoundError if the collection was removed since it was read.

    Its id alone proves nothing, for the next collection that is added may get it.
    """
    row = connection.execute(
        "SELECT 1 FROM collections WHERE id = ? AND path = ? AND pattern = ? AND ignore = ?",
        [collection.id, collection.path, collection.pattern, _json(collection.ignore)],
    ).fetchone()
    if row is None:
        raise CollectionNotFoundError(collection.name)


def _json(value: Sequence[str] | Mapping[str, int]) -> str:
    return json.dumps(value, ensure_ascii=False)


def similar(connection: Connection, name: str) -> list[str]:
    """Names of collections that ``name`` may have been meant for, nearest first."""
    from rapidfuzz import fuzz, process

    names = [row[0] for row in connection.execute("SELECT name FROM collections ORDER BY name")]
    found = process.extract(name, names, scorer=fuzz.WRatio, score_cutoff=60, limit=3)
    return [name for name, _, _ in found]


def ids(connection: Connection, names: Sequence[str]) -> list[int]:
    """Raises CollectionNotFoundError for the first name that is none."""
    return [by_name(connection, name).id for name in names]


def table(connection: Connection, name: str) -> Table:
    """A table as sqlite-utils sees it."""
    from sqlite_utils import Database

    return cast("Table", Database(connection, use_counts_table=False)[name])


def add(
    connection: Connection, *, name: str, path: str, pattern: str, ignore: Sequence[str]
) -> Collection:
    same = connection.execute("SELECT path FROM collections WHERE name = ?", [name]).fetchone()
    if same is not None:
        hint = "Choose another name with --name, or 'qmd collection remove' the old one."
        if same[0] == path:
            hint = "It is this very folder; 'qmd index' brings it up to date."
        raise ConflictError(f"There is already a collection named '{name}'.", hint=hint)
    table(connection, "collections").insert(
        {
            "name": name,
            "path": path,
            "pattern": pattern,
            "ignore": _json(list(ignore)),
            "created_at": clock.now(),
        }
    )
    return by_name(connection, name)


def rename(connection: Connection, old: str, new: str) -> Collection:
    """Contexts hang on the collection, not on its name, so ``qmd://old/…`` follows."""
    collection = by_name(connection, old)
    if connection.execute("SELECT 1 FROM collections WHERE name = ?", [new]).fetchone():
        raise ConflictError(
            f"There is already a collection named '{new}'.", hint="Choose another name."
        )
    table(connection, "collections").update(collection.id, {"name": new})
    return by_name(connection, new)


def remove(connection: Connection, name: str) -> Collection:
    """With its documents, contexts, chunks and vectors; the embedding cache stays until cleanup."""
    collection = by_name(connection, name)
    connection.execute("DELETE FROM documents WHERE collection_id = ?", [collection.id])
    connection.execute("DELETE FROM collections WHERE id = ?", [collection.id])
    vector_state.advance(connection)
    return collection


def mark_indexed(
    connection: Connection, collection_id: int, *, excluded: Mapping[str, int], changed: bool
) -> None:
    """Note the end of a complete scan; ``changed`` if any document came, went or changed."""
    now = clock.now()
    connection.execute(
        "UPDATE collections SET indexed_at = ?, excluded = ?,"
        " updated_at = CASE WHEN ? OR updated_at IS NULL THEN ? ELSE updated_at END WHERE id = ?",
        [now, _json(dict(excluded)), changed, now, collection_id],
    )


def mark_changed(connection: Connection, collection_id: int) -> None:
    """Note that documents came, went or changed, without a scan of the whole."""
    connection.execute(
        "UPDATE collections SET updated_at = ? WHERE id = ?", [clock.now(), collection_id]
    )


def settings(connection: Connection) -> list[tuple[Any, ...]]:
    """What a person has set of each collection, cheap enough to be compared every second."""
    rows = connection.execute("SELECT id, name, path, pattern, ignore FROM collections ORDER BY id")
    return [tuple(row) for row in rows]


def last_changes(connection: Connection) -> list[tuple[Any, ...]]:
    """Differs as soon as any document came, went or changed; cheap."""
    rows = connection.execute("SELECT id, name, updated_at FROM collections ORDER BY id")
    return [tuple(row) for row in rows]


def excluded(connection: Connection) -> dict[str, int]:
    """How many files and folders the rules left out at the last scans, by reason."""
    total: dict[str, int] = {}
    for (counts,) in connection.execute("SELECT excluded FROM collections"):
        for reason, number in json.loads(counts).items():
            total[reason] = total.get(reason, 0) + number
    return dict(sorted(total.items()))


def last_indexed(connection: Connection) -> str | None:
    """When a collection was last scanned to the end (ISO 8601 UTC)."""
    row = connection.execute("SELECT max(indexed_at) FROM collections").fetchone()
    return None if row[0] is None else str(row[0])

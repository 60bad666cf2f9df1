"""
Saves what can still be read of a damaged database into a new one.

It takes over what the files do not hold, and the vectors, because making them takes the most time.
"""

from __future__ import annotations

import math
import shlex
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qmd.errors import CorruptDatabaseError, NotADatabaseError
from qmd.store.reader import Writer
from qmd.store.sql import collections, require_types
from qmd.store.sql.models import CHOICE
from qmd.store.sql.revisions import unpack_revision
from qmd.store.sqlite import damage
from qmd.store.sqlite.library import FAILURES, Connection, connect, dbapi
from qmd.store.sqlite.store import SqliteStore
from qmd.values import Rescued

Row = Sequence[Any]


class _Table(NamedTuple):
    """``types`` by column; ``check`` raises ValueError, TypeError or zlib.error for a bad row."""

    name: str
    types: Mapping[str, Any]
    check: Callable[..., object] = lambda *_: None


def _check_collection(collection_id: int, name: str, path: str, *_: object) -> None:
    if not name or not collections.is_directory_path(path):
        raise ValueError


def _check_revision(
    revision_id: int,
    path: str,
    digest: str,
    size: int,
    content: bytes,
    tool: str,
    created_at: str,
    kind: str,
    *_: object,
) -> None:
    unpack_revision(content, kind, size, digest)


def _check_vector(embedding_id: int, model: int, digest: bytes, vector: bytes) -> None:
    if not all(map(math.isfinite, struct.unpack(f"<{len(vector) // 2}e", vector))):
        raise ValueError


def _check_projection(
    projection_id: int, model: int, recipe: str, code_bytes: int, projection: bytes
) -> None:
    if not recipe or code_bytes < 1:
        raise ValueError


#: What stands for columns that older databases lack: kind before 0003, included before 0015, owner
#: before 0016, position before 0022, the others before 0011.
_BEFORE = {
    "kind": "'content'",
    "change_id": "NULL",
    "action": "'write'",
    "hash_after": "NULL",
    "moved_from": "NULL",
    "included": "1",
    "owner": "''",
    "position": "id",
}

_TABLES = (
    _Table(
        "collections",
        {
            **{"id": int, "name": str, "path": str, "pattern": str, "ignore": str},
            **{"created_at": str, "included": int, "owner": str},
        },
        _check_collection,
    ),
    _Table(
        "contexts",
        {"id": int, "collection_id": int | None, "prefix": str, "text": str, "created_at": str},
    ),
    _Table(
        "revisions",
        {
            **{"id": int, "path": str, "hash": str, "bytes": int, "content": bytes},
            **{"tool": str, "created_at": str, "kind": str},
            **{"change_id": int | None, "action": str},
            **{"hash_after": str | None, "moved_from": str | None},
        },
        _check_revision,
    ),
    _Table(
        "changes",
        {
            **{"id": int, "tool": str, "session": str, "number_in_session": int},
            **{"created_at": str, "files": int, "undone_by": int | None, "position": int},
        },
    ),
    _Table(
        "z_models",
        {"id": int, "name": str, "fingerprint": str, "dimension": int, "created_at": str},
    ),
    _Table(
        "z_embeddings",
        {"id": int, "model_id": int, "hash": bytes, "vector": bytes},
        _check_vector,
    ),
    _Table(
        "z_token_projections",
        {"id": int, "model_id": int, "recipe": str, "code_bytes": int, "projection": bytes},
        _check_projection,
    ),
    _Table("z_token_states", {"id": int, "embedding_id": int, "codes": bytes}),
)
#: Deletes rows that do not fit to another row.
_UNFITTING = {
    "z_embeddings": "DELETE FROM z_embeddings WHERE length(vector) <>"
    " 2 * (SELECT dimension FROM z_models WHERE id = model_id)",
    "z_token_states": "DELETE FROM z_token_states WHERE NOT EXISTS (SELECT 1 FROM z_embeddings e"
    " JOIN z_token_projections p ON p.model_id = e.model_id"
    " WHERE e.id = embedding_id AND length(codes) % p.code_bytes = 0)",
}


def save(damaged: Path, new: Path) -> Rescued:
    """
    Make ``new`` a database with the collections, contexts, revisions and vectors of ``damaged``.

    Token states come with the vectors.

    Rows that cannot be read, or do not hold what was stored, are left out and counted. Documents
    are not taken over: the files have them.

    Raises:
        CorruptDatabaseError: Nothing can be read.
        StoreError, DiskFullError: The new one cannot be written.
    """
    saved: dict[str, int] = {}
    lost: dict[str, int] = {}
    try:
        source = connect(damaged, read_only=True, tolerant=True)
    except (NotADatabaseError, CorruptDatabaseError) as error:
        raise _nothing(damaged) from error
    store = SqliteStore(new, create=True)
    try:
        for table in _TABLES:
            rows, unreadable = _rows(source, table)
            subject = table.name.removeprefix("z_")
            saved[subject] = store.write(partial(_insert, table=table, rows=rows))
            lost[subject] = unreadable + len(rows) - saved[subject]
        chosen = _chosen_model(source)
        if chosen is not None:
            store.write(lambda writer: writer.models.choose(chosen))
    finally:
        source.close()
        store.close()
    if not any(saved.values()):
        raise _nothing(damaged)
    return Rescued(
        collections=saved["collections"],
        contexts=saved["contexts"],
        revisions=saved["revisions"],
        vectors=saved["embeddings"],
        lost={name: count for name, count in lost.items() if count},
    )


def _nothing(damaged: Path) -> CorruptDatabaseError:
    quoted = shlex.quote(str(damaged))
    return CorruptDatabaseError(
        f"Nothing can be read of the database {damaged}; it was left as it is.",
        hint=f"Put a backup in its place: 'qmd db restore BACKUP --db {quoted}'. Without one, move"
        f" it away and run 'qmd up FOLDER --db {quoted}' for each of your folders: contexts and"
        " earlier contents of files are lost then.",
    )


def _rows(source: Connection, table: _Table) -> tuple[list[Row], int]:
    """All rows that can be read and are sound, and how many others there are at least."""
    rows, lost = [], 0
    name = _source_name(source, table.name)
    columns = ", ".join(_columns(source, name, table))
    for row_id in sorted(_ids(source, name)):
        try:
            row = source.execute(f"SELECT {columns} FROM {name} WHERE id = ?", [row_id]).fetchone()
            if row is None:
                raise ValueError("only an index has it")
            require_types(row, list(table.types.values()))
            table.check(*row)
        except (*FAILURES, ValueError, TypeError, MemoryError, struct.error, zlib.error):
            lost += 1
        else:
            rows.append(row)
    return rows, lost


def _source_name(source: Connection, table: str) -> str:
    try:
        return damage.stored_name(source, table)
    except FAILURES:
        return table


def _columns(source: Connection, name: str, table: _Table) -> list[str]:
    """What to select; an older database lacks some of the columns."""
    try:
        present = [row[1] for row in source.execute(f"PRAGMA table_info({name})")]
    except FAILURES:
        present = []
    return [
        _BEFORE[column] if column in _BEFORE and column not in present else column
        for column in table.types
    ]


def _ids(source: Connection, table: str) -> set[int]:
    """The ids of all rows, as far as the table or one of its indexes still leads to them."""
    # What lies behind a broken page is reached from the other end, or by an index.
    queries = [f"SELECT id FROM {table} ORDER BY id {order}" for order in ("ASC", "DESC")]
    try:
        indexes = [row[1] for row in source.execute(f"PRAGMA index_list({table})")]
    except FAILURES:
        indexes = []
    queries += [f'SELECT id FROM {table} INDEXED BY "{name}"' for name in indexes]
    ids: set[int] = set()
    for query in queries:
        try:
            for (row_id,) in source.execute(query):
                if isinstance(row_id, int):
                    ids.add(row_id)
        except (*FAILURES, MemoryError):
            continue
    return ids


def _chosen_model(source: Connection) -> str | None:
    try:
        table = damage.stored_name(source, "z_meta")
        row = source.execute(f"SELECT value FROM {table} WHERE key = ?", [CHOICE]).fetchone()
        return None if row is None else str(row[0])
    except FAILURES:
        return None


def _insert(writer: Writer, table: _Table, rows: Sequence[Row]) -> int:
    """Insert the rows that fit to what is there; returns how many do."""
    columns = ", ".join(table.types)
    marks = ", ".join("?" * len(table.types))
    stored = 0
    for row in rows:
        try:
            writer.connection.execute(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", row)
        except dbapi.IntegrityError:  # two of one name, or of a collection that is lost
            continue
        stored += 1
    if table.name in _UNFITTING:
        stored -= writer.connection.execute(_UNFITTING[table.name]).rowcount
    return stored

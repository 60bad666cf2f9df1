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
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from qmd.errors import CorruptDatabaseError, NotADatabaseError
from qmd.store.reader import Writer
from qmd.store.sql.models import CHOICE
from qmd.store.sql.revisions import unpack_revision
from qmd.store.sqlite import damage
from qmd.store.sqlite.library import FAILURES, Connection, connect, dbapi
from qmd.store.sqlite.store import SqliteStore
from qmd.values import Rescued

#: A row by column.
Row: TypeAlias = dict[str, Any]
#: What a row holds whose column older databases lack.
_DEFAULTS = {"kind": "content"}


class _Table(NamedTuple):
    """
    A table that is saved.

    Attributes:
        left_out: Its columns that say what the program did with documents.
        check: Raises ValueError, TypeError or zlib.error for a row, by column, that is not sound.
    """

    name: str
    left_out: frozenset[str] = frozenset()
    check: Callable[[Mapping[str, Any]], object] = lambda row: None


def _check_collection(row: Mapping[str, Any]) -> None:
    if not row["name"]:
        raise ValueError("a collection without a name")


def _check_revision(row: Mapping[str, Any]) -> None:
    unpack_revision(row["content"], row["kind"], row["bytes"], row["hash"])


def _check_vector(row: Mapping[str, Any]) -> None:
    vector = row["vector"]
    if not all(map(math.isfinite, struct.unpack(f"<{len(vector) // 2}e", vector))):
        raise ValueError("a vector that is not finite")


def _check_projection(row: Mapping[str, Any]) -> None:
    if not row["recipe"] or row["code_bytes"] < 1:
        raise ValueError("codes that cannot be")


_TABLES = (
    _Table(
        "collections",
        frozenset({"excluded", "updated_at", "indexed_at", "is_vault"}),
        _check_collection,
    ),
    _Table("contexts"),
    _Table("revisions", check=_check_revision),
    _Table("changes"),
    _Table("z_models", frozenset({"active", "next"})),
    _Table("z_embeddings", check=_check_vector),
    _Table("z_token_projections", check=_check_projection),
    _Table("z_token_states"),
    _Table("z_picture_texts", frozenset({"claimed_until"})),
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
            with store.reading() as reader:
                columns = damage.columns(reader.connection, table.name)
            rows, unreadable = _rows(source, table, columns)
            subject = table.name.removeprefix("z_")
            saved[subject] = store.write(partial(_insert, table=table.name, rows=rows))
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


def _rows(
    source: Connection, table: _Table, columns: Sequence[damage.Column]
) -> tuple[list[Row], int]:
    """All rows that can be read and are sound, and how many others there are at least."""
    rows, lost = list[Row](), 0
    name = _source_name(source, table.name)
    saved = _saved(source, name, table, columns)
    for row_id in sorted(_ids(source, name)):
        try:
            values = source.execute(
                f"SELECT {', '.join(saved.values())} FROM {name} WHERE id = ?", [row_id]
            ).fetchone()
            if values is None:
                raise ValueError("only an index has it")
            row = dict(zip(saved, values, strict=True))
            if any(each.problem(row[each.name]) for each in columns if each.name in row):
                raise ValueError("a value that cannot be")
            table.check(_DEFAULTS | row)
        except (*FAILURES, ValueError, TypeError, MemoryError, struct.error, zlib.error):
            lost += 1
        else:
            rows.append(row)
    return rows, lost


def _source_name(source: Connection, table: str) -> str:
    with suppress(*FAILURES):
        return damage.stored_name(source, table)
    return table


def _saved(
    source: Connection, name: str, table: _Table, columns: Sequence[damage.Column]
) -> dict[str, str]:
    """Column → what to select for it. Those that an older database lacks have their defaults."""
    present = set[str]()
    with suppress(*FAILURES):
        present = {row[1] for row in source.execute(f"PRAGMA table_info({name})")}
    saved = {
        each.name: each.name
        for each in columns
        if each.name not in table.left_out and (each.name in present or not present)
    }
    return (
        saved | {"position": "id"} if table.name == "changes" and "position" not in saved else saved
    )


def _ids(source: Connection, table: str) -> set[int]:
    """The ids of all rows, as far as the table or one of its indexes still leads to them."""
    # What lies after a broken page is reached from the other end, or by an index.
    queries = [f"SELECT id FROM {table} ORDER BY id {order}" for order in ("ASC", "DESC")]
    with suppress(*FAILURES):
        indexes = [row[1] for row in source.execute(f"PRAGMA index_list({table})")]
        queries += [f'SELECT id FROM {table} INDEXED BY "{name}"' for name in indexes]
    ids: set[int] = set()
    for query in queries:
        with suppress(*FAILURES, MemoryError):
            ids.update(row[0] for row in source.execute(query) if isinstance(row[0], int))
    return ids


def _chosen_model(source: Connection) -> str | None:
    try:
        table = damage.stored_name(source, "z_meta")
        row = source.execute(f"SELECT value FROM {table} WHERE key = ?", [CHOICE]).fetchone()
        return None if row is None else str(row[0])
    except FAILURES:
        return None


def _insert(writer: Writer, table: str, rows: Sequence[Row]) -> int:
    """Insert the rows that fit to what is there; returns how many do."""
    stored = 0
    for row in rows:
        marks = ", ".join("?" * len(row))
        try:
            writer.connection.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values())
            )
        except dbapi.IntegrityError:  # two of one name, or of a collection that is lost
            continue
        stored += 1
    if table in _UNFITTING:
        stored -= writer.connection.execute(_UNFITTING[table]).rowcount
    return stored

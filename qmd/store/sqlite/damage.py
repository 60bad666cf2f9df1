"""
Finds damage in a database file.

The store looks for it after an unexpected error, to tell damage on the disk from a mistake in this
program. SQLite's own check does not know what values mean: flipped bytes may leave text that is
not UTF-8, a number in place of a text, JSON that ends early, or half a vector.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from qmd.errors import CorruptDatabaseError, NotADatabaseError, QmdError
from qmd.store.sql import collections, shared
from qmd.store.sql.revisions import unpack_revision
from qmd.store.sqlite.library import BUSY_TIMEOUT_S, FAILURES, Connection, connect, is_damage

#: Called with the number of checks that are done, that of all checks, and what is checked next.
CheckProgress: TypeAlias = Callable[[int, int, str], object]

#: What a table's column holds, by its declared type.
_KINDS: Mapping[str, type] = {"TEXT": str, "INTEGER": int, "BLOB": bytes}


class Text(bytes):
    """A text as it is stored: UTF-8, if nothing is wrong."""


def find(path: Path, *, timeout: float = BUSY_TIMEOUT_S) -> str | None:
    """
    What is wrong with the database at ``path``, in words; None if nothing is found, or if it
    cannot be read for ``timeout`` seconds.

    It reads the whole file, until it finds something.
    """
    try:
        connection = connect(path, read_only=True, timeout=timeout)
    except (CorruptDatabaseError, NotADatabaseError) as error:
        return str(error)
    except QmdError:  # it is gone, or locked: that says nothing
        return None
    try:
        return next(problems(connection), None)
    except FAILURES:
        return None
    finally:
        connection.close()


def first_problems(connection: Connection, progress: CheckProgress | None = None) -> list[str]:
    """
    What is wrong with the database, in words, at most 20 of it: damage, or a document that full
    text does not know. ``progress``: as of `problems`.
    """
    damages = list(islice(problems(connection, progress), 20))
    if damages:
        return damages
    sizes = stored_name(connection, "z_documents_fts_docsize")
    documents, indexed = connection.execute(
        f"SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM {sizes})"
    ).fetchone()
    return (
        []
        if documents == indexed
        else [f"{documents} documents, but {indexed} in the full-text index"]
    )


def problems(connection: Connection, progress: CheckProgress | None = None) -> Iterator[str]:
    """
    What SQLite finds in each table, what stands in the wrong place, and what SQLite's check of
    the whole file finds, such as pages that no table uses.

    Args:
        progress: Called before each check with the number of those done, of all, and its subject.
    """
    kept = connection.text_factory
    connection.text_factory = Text
    try:
        checks = list(_checks(connection))
        for number, (subject, find_problems) in enumerate(checks):
            if progress is not None:
                progress(number, len(checks), subject)
            yield from find_problems()
    except FAILURES as error:
        if not is_damage(error):  # a lock, for example
            raise
        yield f"{type(error).__name__}: {error}"
    finally:
        connection.text_factory = kept


def _checks(connection: Connection) -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
    """The subject of each check, and the check: first what the later ones rely on."""
    rows = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'view' ORDER BY name"
    ).fetchall()
    # Table by table, because SQLite does not say how far its check of a whole file is.
    for table in [_decoded(name) for (name,) in rows]:
        yield table, partial(_by_sqlite, connection, "integrity_check", table)
    tables = _tables(connection)
    for table in tables:
        yield table, partial(_in_table, connection, table)
    yield "meta", partial(_in_counters, connection)
    yield "documents", partial(_in_documents, connection)
    yield "embeddings", partial(_in_vectors, connection)
    if {"token_states", "z_token_states"} & set(tables):  # not before 0006
        yield "token_states", partial(_in_token_states, connection)
    yield "revisions", partial(_in_revisions, connection)
    yield "pages", partial(_by_sqlite, connection, "quick_check", None)


def _by_sqlite(connection: Connection, pragma: str, table: str | None) -> Iterator[str]:
    """What a check of SQLite finds in a table, or in the whole file (None), at most 20 of it."""
    subject = "20" if table is None else f'"{table}"'
    for (message,) in islice(connection.execute(f"PRAGMA {pragma}({subject})"), 20):
        if message != b"ok":
            yield _decoded(message)


def _tables(connection: Connection) -> list[str]:
    """Our own; those of full text are its own business."""
    rows = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite%' ORDER BY name"
    )
    return [_decoded(name) for (name,) in rows]


class Column(NamedTuple):
    """``kind``: the type of its values; None for any."""

    name: str
    kind: type | None
    is_required: bool
    check: Callable[[str], bool] | None

    def problem(self, value: object) -> str | None:
        """What is wrong with one value."""
        if value is None:
            return "nothing where something must be" if self.is_required else None
        if isinstance(value, Text):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                return "text that is no UTF-8"
        if self.kind is not None and type(value) is not self.kind:
            return f"{type(value).__name__} instead of {self.kind.__name__}"
        if self.check is not None and isinstance(value, str) and not self.check(value):
            return "a text that cannot be read"
        return None


def columns(connection: Connection, table: str) -> list[Column]:
    """The columns of a table, in their order."""
    rows = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    texts = [
        (_decoded(name), _decoded(kind), bool(required)) for _, name, kind, required, *_ in rows
    ]
    return [
        Column(name, _KINDS.get(kind), required, _CHECKS.get((table, name)))
        for name, kind, required in texts
    ]


def _in_table(connection: Connection, table: str) -> Iterator[str]:
    checks = columns(connection, table)
    names = ", ".join(f'"{column.name}"' for column in checks)
    for row in connection.execute(f'SELECT {names} FROM "{table}"'):
        for value, column in zip(row, checks, strict=True):
            if (problem := column.problem(value)) is not None:
                yield f"{table}.{column.name}: {problem}"


def _in_counters(connection: Connection) -> Iterator[str]:
    table = stored_name(connection, "z_meta")
    for (value,) in connection.execute(
        f"SELECT value FROM {table} WHERE key = ?", [shared.VECTORS]
    ):
        if re.fullmatch(rb"\d{1,18}:\d{1,18}", bytes(value)) is None:
            yield "meta.value: counters that are no numbers"


def _in_documents(connection: Connection) -> Iterator[str]:
    for parent, table in (("collection", "documents"), ("document", "chunks")):
        (homeless,) = connection.execute(
            f"SELECT count(*) FROM {table} WHERE {parent}_id NOT IN (SELECT id FROM {parent}s)"
        ).fetchone()
        if homeless:
            yield f"{table}.{parent}_id: {homeless} {table} of no {parent}"


def _in_vectors(connection: Connection) -> Iterator[str]:
    embeddings, models = (stored_name(connection, name) for name in ("z_embeddings", "z_models"))
    rows = connection.execute(
        f"SELECT e.vector, m.dimension FROM {embeddings} e JOIN {models} m ON m.id = e.model_id"
    )
    for vector, dimension in rows:
        if len(vector) != 2 * dimension:
            yield f"embeddings.vector: {len(vector)} bytes for {dimension} numbers"
        elif not all(map(math.isfinite, struct.unpack(f"<{dimension}e", vector))):
            yield "embeddings.vector: not finite"


def _in_token_states(connection: Connection) -> Iterator[str]:
    states, embeddings, projections = (
        stored_name(connection, name)
        for name in ("z_token_states", "z_embeddings", "z_token_projections")
    )
    rows = connection.execute(
        f"SELECT length(t.codes), p.code_bytes FROM {states} t"
        f" JOIN {embeddings} e ON e.id = t.embedding_id"
        f" LEFT JOIN {projections} p ON p.model_id = e.model_id"
    )
    for length, code_bytes in rows:
        if not isinstance(code_bytes, int) or code_bytes < 1:
            yield "token_projections.code_bytes: not the size of a code"
            return
        if length % code_bytes:
            yield f"token_states.codes: {length} bytes for codes of {code_bytes}"


def _in_revisions(connection: Connection) -> Iterator[str]:
    rows = connection.execute("SELECT content, kind, bytes, hash FROM revisions")
    for content, kind, size, digest in rows:
        try:
            unpack_revision(content, kind.decode(), size, digest.decode())
        except (ValueError, zlib.error):
            yield "revisions.content: not what was kept"


def _decoded(text: bytes | str) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def _json(kind: type) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return isinstance(json.loads(text), kind)
        except (ValueError, RecursionError):
            return False

    return check


_CHECKS: Mapping[tuple[str, str], Callable[[str], bool]] = {
    ("collections", "path"): collections.is_directory_path,
    ("collections", "ignore"): _json(list),
    ("collections", "excluded"): _json(dict),
    ("documents", "properties"): _json(dict),
    ("documents", "warnings"): _json(list),
}


def stored_name(connection: Connection, name: str) -> str:
    """The name that a table has in a file of any version: those before 1.8 have no ``z_``."""
    columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
    return name if columns else name.removeprefix("z_")

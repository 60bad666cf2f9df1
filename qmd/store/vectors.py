"""
Vectors: exact ones by text hash, and a sqlite-vec index over the chunks.

``embeddings`` keeps each vector once, float16[dimension] of unit norm, keyed by model and
hash of the embedded text; it is an ordinary table, and a cache that outlives the chunks.
``vectors_<model>`` is a vec0 table of int8 copies for the nearest-neighbour scan, one row a
chunk; its hits are rescored with the exact vectors. ``chunks.model_id`` tells whose vector
a chunk has in the index, NULL while it waits for one.

While the model is being changed there are two such tables: that of the active model answers,
that of the coming one is filled, as ``chunks.next_model_id`` tells, and takes over at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import ModelMismatchError, VectorsUnavailableError
from qmd.model import ModelSpec
from qmd.sqlite import Connection, OperationalError, extensions_loadable
from qmd.store import clock, meta

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.filters import Where

#: int8 copies are clip(round(256 x), ±63): sqlite-vec's NEON build overflows beyond.
SCALE, CLIP = 256, 63
#: sqlite-vec refuses larger k.
MAX_K = 4096
#: In ``meta``: how often vectors were made anew, and how often the index was changed since.
STATE = "vectors"
#: In ``meta``: the name of the model that was chosen for this database.
CHOICE = "model"


class Model(NamedTuple):
    """A model that this database has vectors of."""

    id: int
    name: str
    fingerprint: str
    dimension: int

    @property
    def table(self) -> str:
        return f"vectors_{self.id}"


class Waiting(NamedTuple):
    """A chunk without a vector, with all that its embedded text is made of."""

    id: int
    hash: bytes
    title: str
    heading_path: str
    text: str


# --- the extension -------------------------------------------------------------------


def load(connection: Connection) -> str:
    """
    Load sqlite-vec into a connection, once; returns its version.

    Raises:
        VectorsUnavailableError: There is no sqlite-vec here, or SQLite cannot load it.
    """
    try:
        return str(connection.execute("SELECT vec_version()").fetchone()[0])
    except OperationalError as error:
        if "no such function" not in str(error):
            raise
    if not extensions_loadable():
        raise VectorsUnavailableError(
            "This Python's SQLite cannot load extensions, so there is no vector search.",
            hint="pip install pysqlite3 (or sqlean.py), then run the command again.",
        )
    try:
        import sqlite_vec
    except ImportError as error:
        raise VectorsUnavailableError(
            "sqlite-vec is not installed, so there is no vector search.",
            hint="pip install sqlite-vec (it has no build for every platform).",
        ) from error
    connection.enable_load_extension(True)
    try:
        sqlite_vec.load(connection)
    except OperationalError as error:
        raise VectorsUnavailableError(
            f"sqlite-vec cannot be loaded: {error}", hint="pip install --force-reinstall sqlite-vec"
        ) from error
    finally:
        connection.enable_load_extension(False)
    # A nearest-neighbour scan reads the whole index: copying the pages took half of its time.
    connection.execute(f"PRAGMA mmap_size = {1 << 30}")
    return str(connection.execute("SELECT vec_version()").fetchone()[0])


def load_if_used(connection: Connection) -> None:
    """
    Load sqlite-vec where the database has a vector index, so that deletions reach it.

    Where it cannot be loaded, deleted chunks leave rows behind there. They are never found
    (hits join the chunks), and `purge` removes them on the next `embed`.
    """
    if _indexes(connection):
        try:
            load(connection)
        except VectorsUnavailableError:
            return


def is_loaded(connection: Connection) -> bool:
    """Whether this connection has sqlite-vec."""
    row = connection.execute(
        "SELECT 1 FROM pragma_function_list WHERE name = 'vec_version'"
    ).fetchone()
    return row is not None


def _indexes(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master"
        " WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%USING vec0%'"
    )
    return [name for (name,) in rows]


# --- models --------------------------------------------------------------------------


def active(connection: Connection) -> Model | None:
    """The model whose vectors the index holds, or None before the first `embed`."""
    row = connection.execute(
        "SELECT id, name, fingerprint, dimension FROM models WHERE active"
    ).fetchone()
    return None if row is None else Model(*row)


def coming(connection: Connection) -> Model | None:
    """The model whose vectors are being made while those of the active one answer."""
    row = connection.execute(
        "SELECT id, name, fingerprint, dimension FROM models WHERE next"
    ).fetchone()
    return None if row is None else Model(*row)


def begin(connection: Connection, spec: ModelSpec) -> Model:
    """
    The model of ``spec``, ready to be filled: the index's own, or one beside it.

    Where the index has no vectors, the model becomes the index's at once. Where it has another
    model's, they go on answering, until `take_over` finds that none is missing; what was made
    for a third model stays in the cache.
    """
    load(connection)
    current, other = active(connection), coming(connection)
    known = next(
        (each for each in (current, other) if each and each.fingerprint == spec.fingerprint), None
    )
    if known is not None and known.name != spec.name:  # a folder was moved
        connection.execute("UPDATE models SET name = ? WHERE id = ?", [spec.name, known.id])
        known = known._replace(name=spec.name)
    if known is None:
        if other is not None:
            cancel(connection)
        beside = current is not None and has_vectors(connection)
        if current is not None and not beside:
            connection.execute(f'DROP TABLE IF EXISTS "{current.table}"')
            connection.execute("UPDATE models SET active = 0 WHERE active")
        mark = "next" if beside else "active"
        connection.execute(
            "INSERT INTO models"
            f" (name, fingerprint, dimension, query_prefix, passage_prefix, created_at, {mark})"
            " VALUES (?, ?, ?, ?, ?, ?, 1)"
            f" ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, {mark} = 1",
            [
                spec.name,
                spec.fingerprint,
                spec.dimension,
                spec.query_prefix,
                spec.passage_prefix,
                clock.now(),
            ],
        )
        known = coming(connection) if beside else active(connection)
        assert known is not None  # just made
        _changed(connection, remade=not beside)
    # A partition is a collection: filtering by it reads only its rows. Small vec0 chunks,
    # because each partition owns at least one.
    connection.execute(
        f'CREATE VIRTUAL TABLE IF NOT EXISTS "{known.table}" USING vec0('
        "chunk_id INTEGER PRIMARY KEY, collection_id INTEGER PARTITION KEY,"
        f" embedding int8[{known.dimension}] distance_metric=L1, chunk_size=256)"
    )
    return known


def cancel(connection: Connection) -> None:
    """Stay with the active model. What was made for the coming one stays in the cache."""
    model = coming(connection)
    if model is None:
        return
    load(connection)
    connection.execute(f'DROP TABLE IF EXISTS "{model.table}"')
    connection.execute("UPDATE models SET next = 0 WHERE next")
    connection.execute("UPDATE chunks SET next_model_id = NULL WHERE next_model_id IS NOT NULL")


def take_over(connection: Connection, model: Model) -> bool:
    """
    Let the coming model answer from now on, if every chunk has its vector; whether it does.

    The other one's index goes, its vectors stay in the cache until `cleanup`.
    """
    if coming(connection) != model:
        return False
    missing = connection.execute(
        "SELECT 1 FROM chunks WHERE next_model_id IS NULL LIMIT 1"
    ).fetchone()
    if missing is not None:
        return False
    load(connection)
    purge(connection, model)
    before = active(connection)
    connection.execute("UPDATE chunks SET model_id = next_model_id, next_model_id = NULL")
    connection.execute("UPDATE models SET active = (id = ?), next = 0", [model.id])
    if before is not None:
        connection.execute(f'DROP TABLE IF EXISTS "{before.table}"')
    _changed(connection, remade=True)
    return True


def chosen(connection: Connection) -> str | None:
    """The name of the model that this database is to have, if somebody has said so."""
    return meta.read(connection, CHOICE)


def choose(connection: Connection, name: str) -> None:
    """Say so, for all processes."""
    meta.put(connection, CHOICE, name)


def state(connection: Connection) -> tuple[int, int]:
    """Two counters: the first tells that known vectors may differ, the second that some came
    or went. Chunks that were deleted by hand do not count."""
    epoch, _, count = (meta.read(connection, STATE) or "0:0").partition(":")
    return int(epoch), int(count)


def _changed(connection: Connection, *, remade: bool = False) -> None:
    """To be called in the transaction of every change, so that copies in memory follow."""
    epoch, count = state(connection)
    meta.put(connection, STATE, f"{epoch + 1}:0" if remade else f"{epoch}:{count + 1}")


def has_vectors(connection: Connection) -> bool:
    """Whether any chunk is in the index."""
    row = connection.execute("SELECT 1 FROM chunks WHERE model_id IS NOT NULL LIMIT 1").fetchone()
    return row is not None


# --- filling -------------------------------------------------------------------------


def _column(connection: Connection, model: Model) -> str:
    """
    Where a chunk says that it has this model's vector.

    Raises:
        ModelMismatchError: Another process has chosen another model.
    """
    if active(connection) == model:
        return "model_id"
    if coming(connection) == model:
        return "next_model_id"
    raise ModelMismatchError(
        f"Another process has begun to embed with another model than {model.name}.",
        hint="Let every program use the same model, then run 'qmd embed' again.",
    )


def waiting(
    connection: Connection,
    model: Model,
    limit: int,
    collection_ids: Sequence[int] = (),
    after: int = 0,
) -> list[Waiting]:
    """
    Chunks without this model's vector whose id is above ``after``, by id.

    Raises:
        ModelMismatchError: It is neither the active nor the coming model.
    """
    column = _column(connection, model)
    condition = ""
    if collection_ids:
        condition = f" AND d.collection_id IN ({', '.join('?' * len(collection_ids))})"
    rows = connection.execute(
        "SELECT k.id, k.hash, d.title, k.heading_path, k.document_id, k.start_char, k.end_char"
        " FROM chunks k JOIN documents d ON d.id = k.document_id"
        f" WHERE k.{column} IS NULL AND k.id > ?{condition} ORDER BY k.id LIMIT ?",
        [after, *collection_ids, limit],
    ).fetchall()
    # Sliced here: SQL's substr() would count through a long text once for each chunk.
    texts: dict[int, str] = {}
    found = []
    for number, digest, title, heading_path, document_id, start, end in rows:
        if document_id not in texts:
            (texts[document_id],) = connection.execute(
                "SELECT text FROM documents WHERE id = ?", [document_id]
            ).fetchone()
        text = texts[document_id][start:end]
        found.append(Waiting(number, digest, title, heading_path, text))
    return found


def count_waiting(
    connection: Connection, model: Model | None, collection_ids: Sequence[int] = ()
) -> int:
    """How many chunks lack a model's vector; None for the active one, or any."""
    column = "model_id" if model is None else _column(connection, model)
    if not collection_ids:
        row = connection.execute(f"SELECT count(*) FROM chunks WHERE {column} IS NULL").fetchone()
    else:
        row = connection.execute(
            "SELECT count(*) FROM chunks k JOIN documents d ON d.id = k.document_id"
            f" WHERE k.{column} IS NULL"
            f" AND d.collection_id IN ({', '.join('?' * len(collection_ids))})",
            list(collection_ids),
        ).fetchone()
    return int(row[0])


def forget(connection: Connection, model: Model, collection_ids: Sequence[int] = ()) -> None:
    """
    Make all chunks (of the collections) wait again, and drop their cached vectors.

    Chunks of other collections with the same text wait too: they share the vector.

    Raises:
        ModelMismatchError: It is neither the active nor the coming model.
    """
    column = _column(connection, model)
    condition, values = "1", list[object]()
    if collection_ids:
        marks = ", ".join("?" * len(collection_ids))
        condition = f"document_id IN (SELECT id FROM documents WHERE collection_id IN ({marks}))"
        values = list(collection_ids)
    hashes = f"SELECT hash FROM chunks WHERE {condition}"
    connection.execute(
        f"DELETE FROM embeddings WHERE model_id = ? AND hash IN ({hashes})", [model.id, *values]
    )
    connection.execute(
        f"UPDATE chunks SET {column} = NULL WHERE {column} IS NOT NULL AND hash IN ({hashes})",
        values,
    )
    _changed(connection, remade=True)


def cached(connection: Connection, model: Model, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
    """Hash → float16[dimension], for those that were embedded before."""
    found: dict[bytes, bytes] = {}
    for digest in set(hashes):
        row = connection.execute(
            "SELECT vector FROM embeddings WHERE hash = ? AND model_id = ?", [digest, model.id]
        ).fetchone()
        if row is not None:
            found[digest] = row[0]
    return found


def store(
    connection: Connection,
    model: Model,
    chunks: Sequence[tuple[int, bytes]],
    vectors: dict[bytes, bytes],
) -> int:
    """
    Put vectors into cache and index.

    Args:
        chunks: Chunk id and text hash. A chunk that has gone meanwhile, or whose text has
            changed, is passed over.
        vectors: Hash → float16[dimension] of unit norm.

    Returns:
        How many chunks got their vector.

    Raises:
        ModelMismatchError: It is neither the active nor the coming model.
    """
    column = _column(connection, model)
    connection.executemany(
        "INSERT OR IGNORE INTO embeddings (model_id, hash, vector) VALUES (?, ?, ?)",
        [(model.id, digest, vector) for digest, vector in vectors.items()],
    )
    stored = 0
    for number, digest in chunks:
        row = connection.execute(
            "SELECT d.collection_id FROM chunks k JOIN documents d ON d.id = k.document_id"
            " WHERE k.id = ? AND k.hash = ?",
            [number, digest],
        ).fetchone()
        if row is None or digest not in vectors:
            continue
        # vec0 has no upsert.
        connection.execute(f'DELETE FROM "{model.table}" WHERE chunk_id = ?', [number])
        connection.execute(
            f'INSERT INTO "{model.table}" (chunk_id, collection_id, embedding)'
            " VALUES (?, ?, vec_int8(?))",
            [number, row[0], quantize(vectors[digest])],
        )
        connection.execute(f"UPDATE chunks SET {column} = ? WHERE id = ?", [model.id, number])
        stored += 1
    if stored and column == "model_id":
        _changed(connection)
    return stored


def delete(connection: Connection, ids: Sequence[int]) -> None:
    """Take chunks out of the index; the cache keeps their vectors."""
    if not ids:
        return
    tables = _indexes(connection)
    for table in tables:
        if is_loaded(connection):
            connection.executemany(
                f'DELETE FROM "{table}" WHERE chunk_id = ?',
                [(number,) for number in ids],
            )
    if tables:
        _changed(connection)


def delete_where(connection: Connection, condition: str, values: Sequence[object]) -> None:
    """Take the chunks that satisfy an SQL condition on ``chunks`` out of the index."""
    if _indexes(connection):
        rows = connection.execute(
            "SELECT id FROM chunks"
            f" WHERE (model_id IS NOT NULL OR next_model_id IS NOT NULL) AND ({condition})",
            values,
        ).fetchall()
        delete(connection, [number for (number,) in rows])


_ORPHANS = "chunk_id NOT IN (SELECT id FROM chunks)"


def count_orphans(connection: Connection, model: Model) -> int:
    """Index rows whose chunk is gone (deleted where sqlite-vec was missing)."""
    row = connection.execute(f'SELECT count(*) FROM "{model.table}" WHERE {_ORPHANS}').fetchone()
    return int(row[0])


def purge(connection: Connection, model: Model) -> int:
    """Remove them; returns how many there were."""
    rows = connection.execute(f'SELECT chunk_id FROM "{model.table}" WHERE {_ORPHANS}').fetchall()
    delete(connection, [number for (number,) in rows])
    return len(rows)


# --- searching -----------------------------------------------------------------------


def nearest(
    connection: Connection, model: Model, query: bytes, k: int, where: Where
) -> list[tuple[int, int, bytes]]:
    """
    The chunks nearest to a query, before exact rescoring.

    Args:
        query: int8[dimension] from `quantize`.
        k: How many; filtered before, so that many come where that many match.

    Returns:
        Chunk id, document id and exact vector (float16[dimension]), in no order.
    """
    load(connection)
    condition, values = "", tuple[object, ...]()
    if where.everything:
        pass
    elif where.collection_ids is not None:
        # One scan per partition: IN (…) gives k rows for each of them.
        condition = f" AND collection_id IN ({', '.join('?' * len(where.collection_ids))})"
        values = where.collection_ids
    else:
        condition = (
            " AND chunk_id IN (SELECT k.id FROM chunks k JOIN documents d ON d.id = k.document_id"
            f" WHERE {where.sql})"
        )
        values = where.values
    rows = connection.execute(
        "SELECT n.chunk_id, c.document_id, e.vector FROM ("
        f'SELECT chunk_id FROM "{model.table}"'
        f" WHERE embedding MATCH vec_int8(?) AND k = ?{condition}) n"
        " JOIN chunks c ON c.id = n.chunk_id"
        " JOIN embeddings e ON e.hash = c.hash AND e.model_id = ?",
        [query, min(k, MAX_K), *values, model.id],
    )
    return [(chunk, document, vector) for chunk, document, vector in rows]


def everything(
    connection: Connection, model: Model, where: Where
) -> Iterable[tuple[int, int, bytes]]:
    """As `nearest`, for all chunks that satisfy the condition: an exact scan."""
    return connection.execute(
        "SELECT k.id, k.document_id, e.vector FROM chunks k"
        " JOIN documents d ON d.id = k.document_id"
        " JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        f" WHERE k.model_id IS NOT NULL AND {where.sql}",
        [model.id, *where.values],
    )


def indexed(connection: Connection) -> NDArray[np.int64]:
    """The ids of all chunks that have a vector, ascending."""
    import numpy as np

    # One text instead of 100,000 rows: a third of the time.
    (text,) = connection.execute(
        "SELECT group_concat(id) FROM chunks WHERE model_id IS NOT NULL"
    ).fetchone()
    return np.sort(np.fromstring(text or "", dtype=np.int64, sep=","))


def coded(connection: Connection, model: Model, ids: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Chunk id, collection id and exact vector of these chunks, by id, as far as there are."""
    rows = connection.execute(
        "SELECT k.id, d.collection_id, e.vector FROM json_each(?) j"
        " CROSS JOIN chunks k ON k.id = j.value"
        " CROSS JOIN documents d ON d.id = k.document_id"
        " CROSS JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        " WHERE k.model_id IS NOT NULL",
        [json.dumps(list(ids)), model.id],
    )
    return [(chunk, collection, vector) for chunk, collection, vector in rows]


def exact(
    connection: Connection, model: Model, ids: Sequence[int], where: Where
) -> list[tuple[int, int, bytes]]:
    """As `nearest`, for the chunks of these ids that satisfy the condition."""
    documents = "" if where.everything else " CROSS JOIN documents d ON d.id = k.document_id"
    rows = connection.execute(
        "SELECT k.id, k.document_id, e.vector FROM json_each(?) j"
        f" CROSS JOIN chunks k ON k.id = j.value{documents}"
        " CROSS JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        f" WHERE k.model_id IS NOT NULL AND {where.sql}",
        [json.dumps(list(ids)), model.id, *where.values],
    )
    return [(chunk, document, vector) for chunk, document, vector in rows]


def sample(connection: Connection, model: Model, most: int) -> list[bytes]:
    """Up to ``most`` of the model's vectors (float16[dimension]) from all over the index."""
    low, high = connection.execute("SELECT min(id), max(id) FROM embeddings").fetchone()
    if low is None:
        return []
    step = max(1, (high - low + 1) / most)
    ids = sorted({low + int(number * step) for number in range(most)})
    rows = connection.execute(
        "SELECT e.vector FROM json_each(?) j CROSS JOIN embeddings e ON e.id = j.value"
        " WHERE e.model_id = ?",
        [json.dumps(ids), model.id],
    ).fetchall()
    if len(rows) < most // 2:  # another model's are among them, or gaps where many were deleted
        rows = connection.execute(
            "SELECT vector FROM embeddings WHERE model_id = ? ORDER BY id LIMIT ?", [model.id, most]
        ).fetchall()
    return [vector for (vector,) in rows]


def of_documents(
    connection: Connection, model: Model, documents: Sequence[int], most: int
) -> list[tuple[int, int, bytes]]:
    """As `nearest`, for the first ``most`` chunks of these documents, by document and place."""
    rows = connection.execute(
        "SELECT k.id, k.document_id, e.vector FROM json_each(?) j"
        " CROSS JOIN chunks k ON k.document_id = j.value AND k.seq < ?"
        " CROSS JOIN embeddings e ON e.hash = k.hash AND e.model_id = ?"
        " WHERE k.model_id IS NOT NULL ORDER BY k.document_id, k.seq",
        [json.dumps(list(documents)), most, model.id],
    )
    return [(chunk, document, vector) for chunk, document, vector in rows]


def spans(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """Chunk id → start_char, end_char, start_line."""
    rows = connection.execute(
        "SELECT id, start_char, end_char, start_line FROM chunks"
        " WHERE id IN (SELECT value FROM json_each(?))",
        [json.dumps(list(ids))],
    )
    return {number: (start, end, line) for number, start, end, line in rows}


# --- bytes ---------------------------------------------------------------------------


def pack(vectors: NDArray[np.float32]) -> list[bytes]:
    """
    float32[n, dimension] of unit norm → n times float16[dimension] as bytes.

    Raises:
        ValueError: A vector is not finite; sqlite-vec would accept NaN and find it everywhere.
    """
    import numpy as np

    if not np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    return [row.tobytes() for row in vectors.astype(np.float16)]


def quantize(vector: bytes) -> bytes:
    """float16[dimension] → int8[dimension] as the index holds it."""
    import numpy as np

    exact = np.frombuffer(vector, dtype=np.float16).astype(np.float32)
    return np.clip(np.rint(exact * SCALE), -CLIP, CLIP).astype(np.int8).tobytes()

"""
The models that this database has vectors of, and how one takes the place of another.

While the model is being changed there are vectors of two: those of the active model answer,
those of the coming one are being made, as ``chunks.next_model_id`` tells, and take over at once.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from qmd.errors import ModelMismatchError
from qmd.store.sqlite import clock, meta, sqlite_vec, vector_state
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.values import ModelSpec

#: In ``meta``: the name of the model that was chosen for this database.
CHOICE = "model"


class Model(NamedTuple):
    """A model that this database has vectors of."""

    id: int
    name: str
    fingerprint: str
    dimension: int


def active(connection: Connection) -> Model | None:
    """The model whose vectors the index holds, or None before the first `embed`."""
    return _marked(connection, "active")


def coming(connection: Connection) -> Model | None:
    """The model whose vectors are being made while those of the active one answer."""
    return _marked(connection, "next")


def _marked(connection: Connection, mark: Literal["active", "next"]) -> Model | None:
    row = connection.execute(
        f"SELECT id, name, fingerprint, dimension FROM models WHERE {mark}"
    ).fetchone()
    if row is None:
        return None
    require_types(row, int, str, str, int)
    return Model(*row)


def chosen(connection: Connection) -> str | None:
    """The name of the model that this database is to have, if somebody has said so."""
    return meta.read(connection, CHOICE)


def choose(connection: Connection, name: str) -> None:
    """Say so, for all processes."""
    meta.put(connection, CHOICE, name)


def has_vectors(connection: Connection) -> bool:
    """Whether any chunk is in the index."""
    row = connection.execute("SELECT 1 FROM chunks WHERE model_id IS NOT NULL LIMIT 1").fetchone()
    return row is not None


def column(connection: Connection, model: Model) -> str:
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


# --- changing it ---------------------------------------------------------------------


def begin(connection: Connection, spec: ModelSpec) -> Model:
    """
    The model of ``spec``, ready to be filled: the index's own, or one beside it.

    Where the index has no vectors, the model becomes the index's at once. Where it has another
    model's, they go on answering, until `take_over` finds that none is missing; what was made
    for a third model stays in the cache.
    """
    sqlite_vec.load(connection)  # vectors that cannot be searched are not worth making
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
            connection.execute("DELETE FROM vectors WHERE model_id = ?", [current.id])
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
        vector_state.advance(connection, remade=not beside)
    return known


def cancel(connection: Connection) -> None:
    """Stay with the active model. What was made for the coming one stays in the cache."""
    model = coming(connection)
    if model is None:
        return
    connection.execute("DELETE FROM vectors WHERE model_id = ?", [model.id])
    connection.execute("UPDATE models SET next = 0 WHERE next")
    connection.execute("UPDATE chunks SET next_model_id = NULL WHERE next_model_id IS NOT NULL")


def take_over(connection: Connection, model: Model) -> bool:
    """
    Let the coming model answer from now on, if every chunk has its vector; whether it does.

    The other one's vectors stay in the cache until `cleanup`.
    """
    if coming(connection) != model:
        return False
    missing = connection.execute(
        "SELECT 1 FROM chunks WHERE next_model_id IS NULL LIMIT 1"
    ).fetchone()
    if missing is not None:
        return False
    connection.execute("UPDATE chunks SET model_id = next_model_id, next_model_id = NULL")
    connection.execute("UPDATE models SET active = (id = ?), next = 0", [model.id])
    connection.execute("DELETE FROM vectors WHERE model_id <> ?", [model.id])
    vector_state.advance(connection, remade=True)
    return True

"""
Knows the models whose vectors the database holds, and replaces one by another.

While the model is being changed there are vectors of two: those of the active model answer,
those of the coming one are being made, as ``chunks.next_model_id`` tells, and take over at once.
"""

from __future__ import annotations

from typing import Literal

from qmd.errors import ModelMismatchError
from qmd.store.models import StoredModel
from qmd.store.postgres import pgvector
from qmd.store.postgres.library import Connection
from qmd.store.sql import Sql, vector_state
from qmd.store.sql.meta import Meta, MetaWriter
from qmd.system import clock
from qmd.values import ModelSpec

#: In ``z_meta``: the name of the model that was chosen for this database.
CHOICE = "model"


class PostgresModels:
    """`qmd.store.models.Models` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def active(self) -> StoredModel | None:
        return self._marked("active")

    def coming(self) -> StoredModel | None:
        return self._marked("next")

    def _marked(self, mark: Literal["active", "next"]) -> StoredModel | None:
        row = self._connection.execute(
            f"SELECT id, name, fingerprint, dimension FROM z_models WHERE {mark}"
        ).fetchone()
        return None if row is None else StoredModel(*row)

    def chosen_name(self) -> str | None:
        return Meta(self._sql).get(CHOICE)

    def has_vectors(self) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM chunks WHERE model_id IS NOT NULL LIMIT 1"
        ).fetchone()
        return row is not None

    def chunk_column(self, model: StoredModel) -> str:
        """
        Where a chunk says that it has this model's vector.

        Raises:
            ModelMismatchError: Another process has chosen another model.
        """
        if self.active() == model:
            return "model_id"
        if self.coming() == model:
            return "next_model_id"
        raise ModelMismatchError(
            f"Another process has begun to embed with another model than {model.name}.",
            hint="Let every program use the same model, then run 'qmd embed' again.",
        )


class PostgresModelsWriter(PostgresModels):
    """`qmd.store.models.ModelsWriter` in PostgreSQL."""

    def choose(self, name: str) -> None:
        MetaWriter(self._sql).put(CHOICE, name)

    def begin(self, spec: ModelSpec) -> StoredModel:
        pgvector.prepare(self._connection)
        active, coming = self.active(), self.coming()
        for model in (active, coming):
            if model is not None and model.fingerprint == spec.fingerprint:
                return self._renamed(model, spec.name)
        if coming is not None:
            self.cancel()
        beside = active is not None and self.has_vectors()
        if active is not None and not beside:
            pgvector.remove(self._connection, active)
            self._connection.execute("UPDATE z_models SET active = false WHERE active")
        self._insert(spec, "next" if beside else "active")
        vector_state.advance(self._sql, remade=not beside)
        model = self.coming() if beside else self.active()
        assert model is not None  # just inserted
        return model

    def _renamed(self, model: StoredModel, name: str) -> StoredModel:
        """The same model by another name: its folder was moved."""
        if model.name != name:
            self._connection.execute(
                "UPDATE z_models SET name = %s WHERE id = %s", [name, model.id]
            )
        return model._replace(name=name)

    def _insert(self, spec: ModelSpec, mark: Literal["active", "next"]) -> None:
        self._connection.execute(
            "INSERT INTO z_models"
            f" (name, fingerprint, dimension, query_prefix, passage_prefix, created_at, {mark})"
            " VALUES (%s, %s, %s, %s, %s, %s, true)"
            f" ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, {mark} = true",
            [
                spec.name,
                spec.fingerprint,
                spec.dimension,
                spec.query_prefix,
                spec.passage_prefix,
                clock.now(),
            ],
        )

    def cancel(self) -> None:
        model = self.coming()
        if model is None:
            return
        pgvector.remove(self._connection, model)
        self._connection.execute("UPDATE z_models SET next = false WHERE next")
        self._connection.execute(
            "UPDATE chunks SET next_model_id = NULL WHERE next_model_id IS NOT NULL"
        )

    def take_over(self, model: StoredModel) -> bool:
        if self.coming() != model:
            return False
        missing = self._connection.execute(
            "SELECT 1 FROM chunks WHERE next_model_id IS NULL LIMIT 1"
        ).fetchone()
        if missing is not None:
            return False
        before = self.active()
        self._connection.execute(
            "UPDATE chunks SET model_id = next_model_id, next_model_id = NULL,"
            " hash = coalesce(next_hash, hash), next_hash = NULL"
        )
        self._connection.execute("UPDATE z_models SET active = (id = %s), next = false", [model.id])
        if before is not None:
            pgvector.remove(self._connection, before)
        vector_state.advance(self._sql, remade=True)
        return True

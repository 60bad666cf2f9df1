"""The embedding models whose vectors this database holds."""

from __future__ import annotations

from typing import Literal, NamedTuple

from qmd.errors import ModelMismatchError
from qmd.store import sql as capabilities
from qmd.store.sql import Sql, meta
from qmd.store.sql.meta import Meta, MetaWriter
from qmd.system import clock
from qmd.values import ModelSpec


class StoredModel(NamedTuple):
    """A model whose vectors this database holds."""

    id: int
    name: str
    fingerprint: str
    dimension: int


#: In ``z_meta``: the name of the model that was chosen for this database.
CHOICE = "model"


class Models:
    """
    Reads which models the database has: at most two.

    The active model answers searches. The coming model, if there is one, takes over as soon as
    every chunk has a vector of it.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def active(self) -> StoredModel | None:
        """The model whose vectors answer searches; None before the first `embed`."""
        return self._marked("active")

    def coming(self) -> StoredModel | None:
        """The model whose vectors are being made; None if the model does not change."""
        return self._marked("next")

    def _marked(self, mark: Literal["active", "next"]) -> StoredModel | None:
        sql = f"SELECT id, name, fingerprint, dimension FROM z_models WHERE {mark}"
        return next(iter(self._sql.all(StoredModel, sql)), None)

    def chosen_name(self) -> str | None:
        """The name of the model that a person has chosen for this database; None if nobody has."""
        return Meta(self._sql).get(CHOICE)

    def has_vectors(self) -> bool:
        """Whether any chunk has a vector of the active model."""
        row = self._sql.run("SELECT 1 FROM chunks WHERE model_id IS NOT NULL LIMIT 1").fetchone()
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


class ModelsWriter(Models):
    """Changes the model."""

    def choose(self, name: str) -> None:
        """Set `chosen_name`, for all processes."""
        MetaWriter(self._sql).put(CHOICE, name)

    def begin(self, spec: ModelSpec) -> StoredModel:
        """
        Make a model the active or the coming one, so that vectors can be stored for it.

        If the index has no vectors, the model becomes the active one at once. If it has those of
        another model, they answer searches until `take_over`. The vectors of an earlier coming
        model stay in the cache.
        """
        self._sql.engine("vectors").prepare(self._sql.connection)
        active, coming = self.active(), self.coming()
        for model in (active, coming):
            if model is not None and model.fingerprint == spec.fingerprint:
                return self._renamed(model, spec.name)
        if coming is not None:
            self.cancel()
        beside = active is not None and self.has_vectors()
        if active is not None and not beside:
            self._remove_copies(active)
            self._sql.run("UPDATE z_models SET active = false WHERE active")
        self._insert(spec, "next" if beside else "active")
        meta.advance_vectors(self._sql, remade=not beside)
        model = self.coming() if beside else self.active()
        assert model is not None  # just inserted
        return model

    def _remove_copies(self, model: StoredModel) -> None:
        capabilities.vectors.remove_copies(self._sql, model)

    def _renamed(self, model: StoredModel, name: str) -> StoredModel:
        """The same model by another name: its folder was moved."""
        if model.name != name:
            self._sql.run("UPDATE z_models SET name = ? WHERE id = ?", [name, model.id])
        return model._replace(name=name)

    def _insert(self, spec: ModelSpec, mark: Literal["active", "next"]) -> None:
        self._sql.run(
            "INSERT INTO z_models"
            f" (name, fingerprint, dimension, query_prefix, passage_prefix, created_at, {mark})"
            " VALUES (?, ?, ?, ?, ?, ?, true)"
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
        """Drop the coming model and keep the active one. The vectors made stay in the cache."""
        model = self.coming()
        if model is None:
            return
        self._remove_copies(model)
        self._sql.run("UPDATE z_models SET next = false WHERE next")
        self._sql.run("UPDATE chunks SET next_model_id = NULL WHERE next_model_id IS NOT NULL")

    def take_over(self, model: StoredModel) -> bool:
        """
        Make the coming model the active one, if every chunk has a vector of it.

        The vectors of the earlier model stay in the cache until `cleanup`.

        Returns:
            Whether the model is the active one now.
        """
        if self.coming() != model:
            return False
        missing = self._sql.run(
            "SELECT 1 FROM chunks WHERE next_model_id IS NULL LIMIT 1"
        ).fetchone()
        if missing is not None:
            return False
        before = self.active()
        self._sql.run(
            "UPDATE chunks SET model_id = next_model_id, next_model_id = NULL,"
            " hash = coalesce(next_hash, hash), next_hash = NULL"
        )
        self._sql.run("UPDATE z_models SET active = (id = ?), next = false", [model.id])
        if before is not None:
            self._remove_copies(before)
        meta.advance_vectors(self._sql, remade=True)
        return True

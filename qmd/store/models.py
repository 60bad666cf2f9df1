"""The embedding models whose vectors this database holds."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from qmd.values import ModelSpec


class StoredModel(NamedTuple):
    """A model whose vectors this database holds."""

    id: int
    name: str
    fingerprint: str
    dimension: int


class Models(Protocol):
    """
    Reads which models the database has: at most two.

    The active model answers searches. The coming model, if there is one, takes over as soon as
    every chunk has a vector of it.
    """

    def active(self) -> StoredModel | None:
        """The model whose vectors answer searches; None before the first `embed`."""
        ...

    def coming(self) -> StoredModel | None:
        """The model whose vectors are being made; None if the model does not change."""
        ...

    def chosen_name(self) -> str | None:
        """The name of the model that a person has chosen for this database; None if nobody has."""
        ...

    def has_vectors(self) -> bool:
        """Whether any chunk has a vector of the active model."""
        ...


class ModelsWriter(Models, Protocol):
    """Changes the model."""

    def choose(self, name: str) -> None:
        """Set `chosen_name`, for all processes."""
        ...

    def begin(self, spec: ModelSpec) -> StoredModel:
        """
        Make a model the active or the coming one, so that vectors can be stored for it.

        If the index has no vectors, the model becomes the active one at once. If it has those of
        another model, they answer searches until `take_over`. The vectors of an earlier coming
        model stay in the cache.
        """
        ...

    def cancel(self) -> None:
        """Drop the coming model and keep the active one. The vectors made stay in the cache."""
        ...

    def take_over(self, model: StoredModel) -> bool:
        """
        Make the coming model the active one, if every chunk has a vector of it.

        The vectors of the earlier model stay in the cache until `cleanup`.

        Returns:
            Whether the model is the active one now.
        """
        ...

"""The embedding models that this database has vectors of."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from qmd.values import ModelSpec


class StoredModel(NamedTuple):
    """A model that this database has vectors of."""

    id: int
    name: str
    fingerprint: str
    dimension: int


class Models(Protocol):
    """Reads which models there are. At most two: the active one, and one that is to follow it."""

    def active(self) -> StoredModel | None:
        """The model whose vectors the index holds, or None before the first `embed`."""
        ...

    def coming(self) -> StoredModel | None:
        """The model whose vectors are being made while those of the active one answer."""
        ...

    def chosen_name(self) -> str | None:
        """The name of the model that this database is to have, if somebody has said so."""
        ...

    def has_vectors(self) -> bool:
        """Whether any chunk is in the index."""
        ...


class ModelsWriter(Models, Protocol):
    """Changes the model."""

    def choose(self, name: str) -> None:
        """Set what `chosen_name` gives, for all processes."""
        ...

    def begin(self, spec: ModelSpec) -> StoredModel:
        """
        The model of ``spec``, ready to be filled: the index's own, or one beside it.

        Where the index has no vectors, the model becomes the index's at once. Where it has another
        model's, they go on answering, until `take_over` finds that none is missing; what was made
        for a third model stays in the cache.
        """
        ...

    def cancel(self) -> None:
        """Stay with the active model. What was made for the coming one stays in the cache."""
        ...

    def take_over(self, model: StoredModel) -> bool:
        """
        Let the coming model answer from now on, if every chunk has its vector; whether it does.

        The other one's vectors stay in the cache until `cleanup`.
        """
        ...

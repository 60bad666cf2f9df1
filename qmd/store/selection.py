"""Filters, as a store has understood them."""

from __future__ import annotations

from typing import Protocol


class Selection(Protocol):
    """
    The documents that satisfy filters, in the form of the store that made it (`Reader.select`).

    It is worth nothing in another snapshot: collections may have gone meanwhile.
    """

    @property
    def is_all(self) -> bool:
        """Whether it leaves out no document."""
        ...

    @property
    def collection_ids(self) -> tuple[int, ...] | None:
        """The collections, if it asks for nothing else; empty for all; None if it does."""
        ...

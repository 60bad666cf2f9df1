"""A selection of documents: filters in the form of the store that applies them."""

from __future__ import annotations

from typing import Protocol


class Selection(Protocol):
    """
    The documents that pass some filters, made by `Reader.select`.

    It is valid in the snapshot that made it only: collections may be removed meanwhile.
    """

    @property
    def is_all(self) -> bool:
        """Whether it leaves out no document."""
        ...

    @property
    def collection_ids(self) -> tuple[int, ...] | None:
        """
        The collections that are selected, if only collections are filtered; empty for all.

        None if there are other filters.
        """
        ...

"""The properties of documents: which keys and values there are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from qmd.values.properties import PropertySummary, PropertyValue


class Properties(Protocol):
    """Reads properties. Keys are in the form of `qmd.values.properties.fold_key`."""

    def existing_keys(self, keys: Collection[str]) -> frozenset[str]:
        """Those of ``keys`` that a document has."""
        ...

    def summaries(self) -> list[PropertySummary]:
        """All keys, those of most documents first, then by name."""
        ...

    def values(self, key: str, *, limit: int | None = None) -> list[PropertyValue]:
        """
        The values of a key, those of most documents first, then by name.

        Args:
            limit: Return at most this many; None for all.
        """
        ...

    def written(self, key: str, document_ids: Sequence[int]) -> dict[int, list[str]]:
        """Document id → its values for a key as written, in their order; no entry without one."""
        ...

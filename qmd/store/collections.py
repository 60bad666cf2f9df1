"""Collections and contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from qmd.values import Collection


class Collections(Protocol):
    """Collections."""

    def all(self) -> list[Collection]:
        """All collections, the one whose documents changed last first."""
        ...

    def by_name(self, name: str) -> Collection:
        """by_name."""
        ...

    def require_unchanged(self, collection: Collection) -> None:
        """
        Raises CollectionNotFoundError if the collection was removed since it was read.

        Its id alone proves nothing, for the next collection that is added may get it.
        """
        ...

    def ids(self, names: Sequence[str]) -> list[int]:
        """Raises CollectionNotFoundError for the first name that is none."""
        ...

    def definitions(self) -> list[tuple[Any, ...]]:
        """What a person has set of each collection, cheap enough to be compared every second."""
        ...

    def last_changes(self) -> list[tuple[Any, ...]]:
        """Differs as soon as any document came, went or changed; cheap."""
        ...

    def excluded_counts(self) -> dict[str, int]:
        """How many files and folders the rules left out at the last scans, by reason."""
        ...

    def last_indexed_at(self) -> str | None:
        """When a collection was last scanned to the end (ISO 8601 UTC)."""
        ...


class CollectionsWriter(Collections, Protocol):
    """CollectionsWriter."""

    def add(self, *, name: str, path: str, pattern: str, ignore: Sequence[str]) -> Collection:
        """add."""
        ...

    def rename(self, old: str, new: str) -> Collection:
        """Contexts hang on the collection, not on its name, so ``qmd://old/…`` follows."""
        ...

    def remove(self, name: str) -> Collection:
        """With its documents, contexts, chunks and vectors; cached vectors stay until cleanup."""
        ...

    def mark_indexed(
        self, collection_id: int, *, excluded: Mapping[str, int], changed: bool
    ) -> None:
        """Note the end of a complete scan; ``changed`` if any document came, went or changed."""
        ...

    def mark_changed(self, collection_id: int) -> None:
        """Note that documents came, went or changed, without a scan of the whole."""
        ...

"""Collections: the folders that are indexed, with their rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from qmd.values import Collection


class Collections(Protocol):
    """Reads collections."""

    def all(self) -> list[Collection]:
        """All collections, the one whose documents changed last first."""
        ...

    def by_name(self, name: str) -> Collection:
        """
        The collection of a name.

        Raises:
            CollectionNotFoundError: There is none; the error names similar ones.
        """
        ...

    def require_unchanged(self, collection: Collection) -> None:
        """
        Check that id, path, mask and ignore patterns of a collection have not changed.

        The id alone would not do: after a removal the next new collection may get the same id.

        Raises:
            CollectionNotFoundError: It was removed or changed since it was read.
        """
        ...

    def ids(self, names: Sequence[str]) -> list[int]:
        """
        The ids of named collections, in the order of the names.

        Raises:
            CollectionNotFoundError: For the first name that no collection has.
        """
        ...

    def included_names(self) -> list[str] | None:
        """The collections in which searches look that name none; None if these are all."""
        ...

    def definitions(self) -> list[tuple[object, ...]]:
        """
        The settings of all collections, to be compared with an earlier result.

        The call is cheap enough for every second.
        """
        ...

    def last_changes(self) -> list[tuple[object, ...]]:
        """
        A value that differs from an earlier one if a document was added, changed or removed.

        The call is cheap enough for every second.
        """
        ...

    def is_vault(self, name: str) -> bool:
        """
        Whether a collection was an Obsidian vault at its last scan; True before the first one.

        Where its Markdown links lead depends on it.
        """
        ...

    def excluded_counts(self) -> dict[str, int]:
        """How many files and folders the rules left out at the last scans, by reason."""
        ...

    def last_indexed_at(self) -> str | None:
        """When any collection was last scanned to the end (ISO 8601 UTC); None if none ever was."""
        ...


class CollectionsWriter(Collections, Protocol):
    """Changes collections."""

    def add(
        self, *, name: str, path: str, pattern: str, ignore: Sequence[str], owner: str = ""
    ) -> Collection:
        """
        Add a collection.

        Args:
            path: The absolute path of a directory.
            pattern: Which files belong to it (see `qmd.ingest.rules`).
            ignore: Patterns of files to leave out, as in a .gitignore.
            owner: Whose folder it is, if another machine pushes it.

        Raises:
            ConflictError: A collection of this name exists.
        """
        ...

    def rename(self, old: str, new: str) -> Collection:
        """
        Rename a collection; its contexts stay with it.

        Raises:
            CollectionNotFoundError: There is none named ``old``.
            ConflictError: There is one named ``new``.
        """
        ...

    def set_included(self, name: str, *, included: bool) -> Collection:
        """
        Say whether searches that name no collection look in this one.

        Raises:
            CollectionNotFoundError: There is none of this name.
        """
        ...

    def set_rules(self, name: str, *, pattern: str, ignore: Sequence[str]) -> Collection:
        """
        Replace the mask and the ignore patterns of a collection; the next run applies them.

        Raises:
            CollectionNotFoundError: There is none of this name.
        """
        ...

    def remove(self, name: str) -> Collection:
        """
        Remove a collection with its documents, contexts, chunks and vectors; cached vectors stay
        until `UpkeepWriter.remove_leftovers`.

        Raises:
            CollectionNotFoundError: There is none of this name.
        """
        ...

    def mark_indexed(
        self,
        collection_id: int,
        *,
        excluded: Mapping[str, int],
        changed: bool,
        is_vault: bool,
    ) -> None:
        """
        Record the end of a complete scan.

        Args:
            is_vault: Whether the folder is an Obsidian vault.
            excluded: Reason → how many files and folders the rules left out.
            changed: Whether a document was added, changed or removed.
        """
        ...

    def mark_changed(self, collection_id: int) -> None:
        """Record that documents were added, changed or removed, without a complete scan."""
        ...

"""Counts for `status`, and what `cleanup`, `backup` and `doctor` do to the database."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class Counts(NamedTuple):
    """``needs_embedding``: distinct contents with a chunk that has no vector yet."""

    documents: int
    chunks: int
    chunks_embedded: int
    needs_embedding: int


class Upkeep(Protocol):
    """Reads how the database is."""

    def counts(self) -> Counts:
        """How much the database holds."""
        ...

    def size_bytes(self) -> int:
        """Bytes of the database as this snapshot sees it; a part may not be in its file yet."""
        ...

    def count_contents_waiting(self) -> int:
        """How many distinct texts have a chunk without a vector."""
        ...

    def count_documents_waiting(self) -> int:
        """How many documents have a chunk without a vector; cheap enough for every search."""
        ...

    def count_leftovers(self) -> dict[str, int]:
        """What nothing refers to any more: how many of each kind, by a name for people."""
        ...

    def problems(self) -> list[str]:
        """What is damaged, the first twenty problems in words; reads the whole database."""
        ...

    def migrations(self) -> list[str]:
        """The names of the migrations that made the schema, in order."""
        ...

    def has_misplaced_vectors(self) -> bool:
        """Whether a program of an older version has put vectors where this one does not look."""
        ...

    def copy_to(self, target: Path, *, replace: bool) -> int:
        """
        Write all that this snapshot holds to a file of its own, whoever writes meanwhile.

        Returns:
            Its size in bytes.

        Raises:
            ConflictError: The target exists and ``replace`` is false, or is a database in use.
            InputError, StoreError, DiskFullError: It cannot be written; nothing is left behind.
        """
        ...


class UpkeepWriter(Upkeep, Protocol):
    """Cleans up."""

    def remove_leftovers(self) -> dict[str, int]:
        """Remove what `count_leftovers` counts; returns how many of each there were."""
        ...

    def remove_misplaced_vectors(self) -> None:
        """Remove what `has_misplaced_vectors` tells of; their chunks wait for vectors again."""
        ...

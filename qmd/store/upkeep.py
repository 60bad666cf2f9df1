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
    """Upkeep."""

    def counts(self) -> Counts:
        """counts."""
        ...

    def size_bytes(self) -> int:
        """Bytes of the database as this snapshot sees it; a part may still lie in the WAL."""
        ...

    def count_contents_waiting(self) -> int:
        """count_contents_waiting."""
        ...

    def count_documents_waiting(self) -> int:
        """How many documents have a chunk without a vector; cheap enough for every search."""
        ...

    def count_leftovers(self) -> dict[str, int]:
        """What nothing refers to any more, counted."""
        ...

    def problems(self) -> list[str]:
        """What is wrong with the whole file, the first twenty problems; reads every page."""
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
    """UpkeepWriter."""

    def remove_leftovers(self) -> dict[str, int]:
        """Remove them; returns how many of each there were."""
        ...

    def remove_misplaced_vectors(self) -> None:
        """Remove what `has_misplaced_vectors` tells of; their chunks wait for vectors again."""
        ...

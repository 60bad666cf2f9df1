"""Counts for `status`, and the work of `cleanup`, `backup` and `doctor` on the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

#: Telling the texts of so many documents apart takes 20 ms.
MOST_COMPARED = 10_000


class Counts(NamedTuple):
    """
    How much the database holds.

    ``chunks_outdated``: how many of those with a vector have another title or other headings now.
    ``needs_embedding``: how many distinct texts have a chunk without a vector.
    """

    documents: int
    chunks: int
    chunks_embedded: int
    chunks_outdated: int
    needs_embedding: int


class Upkeep(Protocol):
    """Counts and checks the content of the database, and copies it."""

    def counts(self) -> Counts:
        """How much the database holds."""
        ...

    def count_chunks(self) -> int:
        """How many chunks there are."""
        ...

    def count_chunks_waiting(self) -> int:
        """How many chunks have no vector."""
        ...

    def size_bytes(self) -> int:
        """Bytes of the database in this snapshot; a part may not be in the main file yet."""
        ...

    def count_contents_waiting(self) -> int:
        """
        How many distinct texts have a chunk without a vector.

        It is cheap enough for every search: if more than `MOST_COMPARED` documents wait, those of
        equal text count one by one.
        """
        ...

    def count_leftovers(self) -> dict[str, int]:
        """Name of a kind (for people) → how many rows of it nothing refers to any more."""
        ...

    def problems(self, progress: Callable[[int, int, str], object] | None = None) -> list[str]:
        """
        The first twenty damages, as sentences. The call reads the whole database.

        Args:
            progress: Called before each check with the number of those done, of all, and its
                subject.
        """
        ...

    def migrations(self) -> list[str]:
        """The names of the migrations that made the schema, in order."""
        ...

    def has_misplaced_vectors(self) -> bool:
        """Whether an older version of this program has stored vectors that this one cannot see."""
        ...

    def copy_to(
        self,
        target: Path,
        *,
        replace: bool,
        progress: Callable[[int, int], object] | None = None,
    ) -> int:
        """
        Write this snapshot to a database file; others may write to the original meanwhile.

        Args:
            progress: Called with the bytes that are copied, and all bytes.

        Returns:
            The size of the copy in bytes.

        Raises:
            ConflictError: The target exists and ``replace`` is false, or is a database in use.
            InputError, StoreError, DiskFullError: The copy cannot be written; no part of it stays.
        """
        ...


class UpkeepWriter(Upkeep, Protocol):
    """Removes what is no longer needed."""

    def remove_leftovers(
        self, progress: Callable[[int, int, str], object] | None = None
    ) -> dict[str, int]:
        """
        Remove what `count_leftovers` counts, and return the counts.

        ``progress``: called before each kind with the number of those done, of all steps of a
        cleanup, and its name.
        """
        ...

    def remove_misplaced_vectors(self) -> None:
        """Remove the vectors that `has_misplaced_vectors` reports; their chunks wait again."""
        ...

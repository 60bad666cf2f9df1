"""
The temporary files of unfinished writes.

A killed process leaves its temporary files behind; their records tell the next process where.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class PendingWrites(Protocol):
    """Reads the absolute paths of the temporary files of unfinished writes."""

    def all(self) -> list[str]:
        """All temporary files."""
        ...

    def in_directory(self, directory: str) -> list[str]:
        """The temporary files directly in a directory, an absolute path."""
        ...


class PendingWritesWriter(PendingWrites, Protocol):
    """Records the begin and the end of writes."""

    def begin(self, temporary: str) -> None:
        """Record that a temporary file will be made at this absolute path."""
        ...

    def end(self, temporaries: Iterable[str]) -> None:
        """Remove the records of temporary files that were removed or have replaced their file."""
        ...

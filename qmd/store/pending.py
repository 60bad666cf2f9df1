"""The temporary files of writes that are under way: what a killed process left is found here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class PendingWrites(Protocol):
    """PendingWrites."""

    def all(self) -> list[str]:
        """Those that were begun and not ended."""
        ...

    def in_directory(self, directory: str) -> list[str]:
        """Those of them that lie directly in a directory."""
        ...


class PendingWritesWriter(PendingWrites, Protocol):
    """PendingWritesWriter."""

    def begin(self, temporary: str) -> None:
        """A temporary file is about to be made there (an absolute path)."""
        ...

    def end(self, temporaries: Iterable[str]) -> None:
        """They are gone, or in their place."""
        ...

"""The temporary files of writes that are under way: what a killed process left is found here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class PendingWrites(Protocol):
    """Reads which writes were begun and not ended; each is the path of its temporary file."""

    def all(self) -> list[str]:
        """The temporary files of all of them."""
        ...

    def in_directory(self, directory: str) -> list[str]:
        """Those that lie directly in a directory (an absolute path)."""
        ...


class PendingWritesWriter(PendingWrites, Protocol):
    """Notes writes."""

    def begin(self, temporary: str) -> None:
        """A temporary file is about to be made there (an absolute path)."""
        ...

    def end(self, temporaries: Iterable[str]) -> None:
        """The temporary files are gone, or in their place."""
        ...

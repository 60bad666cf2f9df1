"""Small values that processes share through the database, by key."""

from __future__ import annotations

from typing import Protocol


class Meta(Protocol):
    """Reads values by key."""

    def get(self, key: str) -> str | None:
        """The value of a key; None if it was never set."""
        ...


class MetaWriter(Meta, Protocol):
    """Sets values."""

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        ...

"""Settings of the database file itself."""

from __future__ import annotations

from typing import Protocol


class Meta(Protocol):
    """Reads small facts that processes leave for each other, by key."""

    def get(self, key: str) -> str | None:
        """The value of a key, None if it was never set."""
        ...


class MetaWriter(Meta, Protocol):
    """Leaves such facts."""

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        ...

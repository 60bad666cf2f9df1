"""What processes with one database tell each other: which documents they have changed."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol


class ChangedDocument(NamedTuple):
    """A committed change. ``previous`` is the old path of a document moved in its collection."""

    kind: Literal["added", "updated", "moved", "removed"]
    collection: str
    path: str
    previous: str | None = None


class ChangeFeed(Protocol):
    """
    The changes that other processes commit from its first use on, each once.

    It is for one thread; only `wake` may be called from others.
    """

    def next(self, timeout_s: float) -> list[ChangedDocument]:
        """
        The changes since the last call, in the order of their commits; at most some thousand.

        It waits for the first one for up to ``timeout_s``, and returns none then.

        Raises:
            StoreError: The server cannot be reached. The next call connects anew, and misses none
                of the changes meanwhile unless they are very many.
        """
        ...

    def wake(self) -> None:
        """Have a `next` that waits return."""
        ...

    def close(self) -> None: ...

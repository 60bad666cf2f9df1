"""Counting the documents of tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Tags(Protocol):
    """
    Counts documents by tag, in one collection or (None) in all.

    A tag with slashes, such as ``work/plans``, lies below ``work``.
    """

    def counts(self, prefix: str = "", *, collection: str | None = None) -> list[tuple[str, int]]:
        """
        Each tag with the number of its documents, sorted by tag.

        ASCII letters of either case are the same tag; other letters are not.

        Args:
            prefix: Only this tag and those below it; empty for all.
        """
        ...

    def count_below(self, tags: Sequence[str], *, collection: str | None = None) -> int:
        """How many documents have one of these tags, or a tag below one of them."""
        ...

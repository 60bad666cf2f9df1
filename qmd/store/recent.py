"""The documents whose files changed last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from qmd.store.selection import Selection
from qmd.values import DocumentInfo


class RecentDocument(NamedTuple):
    """
    A document with what tells who wrote its file.

    Attributes:
        absolute_path: On the disk; links in it are not followed.
        hash: SHA-256 of the document's text, in hexadecimal.
        encoding: A Python codec name.
        indexed: When the index took in this state of the file, ISO 8601 UTC.
    """

    info: DocumentInfo
    absolute_path: str
    hash: str
    encoding: str
    indexed: str


class Recent(Protocol):
    """Lists documents by the time of change of their files; both methods take collection ids."""

    def latest(
        self,
        collection_ids: Sequence[int],
        selection: Selection,
        *,
        since: str | None = None,
        limit: int,
    ) -> list[RecentDocument]:
        """
        The selected documents whose files changed last, the latest first.

        Args:
            since: ISO 8601 UTC as the database stores it; only changes from then on.
            limit: Return at most this many.
        """
        ...

    def count_since(
        self, collection_ids: Sequence[int], selection: Selection, since: str | None = None
    ) -> int:
        """How many documents `latest` lists without a limit."""
        ...

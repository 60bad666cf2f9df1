"""The state of the files as the indexer last saw them, and storing documents made from files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from qmd.values import FileState, NewDocument, SkippedFile
from qmd.values.reports import SkipCount, WarnedDocument


class StoredFile(NamedTuple):
    """A document as the indexer compares it with the disk."""

    id: int
    state: FileState
    hash: str
    parser_version: int


class DocumentPlace(NamedTuple):
    """A document by id and path. Ids are used again, so only both together identify it."""

    id: int
    path: str


class Files(Protocol):
    """
    Reads documents as files: what the indexer compares with the disk.

    Paths are relative to the root of their collection.
    """

    def in_collection(self, collection_id: int) -> dict[str, StoredFile]:
        """Path → document, for all documents of a collection."""
        ...

    def at_or_below(self, collection_id: int, places: Iterable[str]) -> dict[str, StoredFile]:
        """As `in_collection`, for the documents at these paths or below them; "" is the root."""
        ...

    def state_at(self, collection_id: int, path: str) -> FileState | None:
        """The state of the file that a document was made from; None without such a document."""
        ...

    def with_hash(self, collection_id: int, digest: str) -> dict[str, StoredFile]:
        """As `in_collection`, for the documents whose text has this hash."""
        ...

    def skips_in_collection(
        self, collection_id: int, version: int | None = None
    ) -> dict[str, tuple[SkippedFile, FileState | None]]:
        """Path → the skip, and the state of the file if this version of the parser has read it."""
        ...

    def attachments_at_or_below(self, collection_id: int, places: Iterable[str]) -> set[str]:
        """The files that are no documents, at these paths or below them; "" is the root."""
        ...

    def all_skips(self) -> list[SkippedFile]:
        """All files that were skipped, by collection and path."""
        ...

    def skip_counts(self) -> list[SkipCount]:
        """How many files were skipped, by collection and reason."""
        ...

    def skips(self, reason: str, *, offset: int, limit: int) -> list[SkippedFile]:
        """The files that were skipped for a reason, by collection and path."""
        ...

    def warned(self, *, offset: int, limit: int) -> list[WarnedDocument]:
        """
        The documents with warnings, by collection and path. Reads a row of each document: 10 ms
        for 10,000.
        """
        ...

    def count_warned(self) -> int:
        """How many documents have warnings. Reads a row of each document."""
        ...

    def indexed_per_hour(self, since: str) -> list[tuple[str, int]]:
        """
        How many documents the index took in, as they are now, in each hour from ``since`` on.

        Reads a row of each document: 12 ms for 10,000.

        Args:
            since: ISO 8601 UTC as the database stores it.

        Returns:
            The hours, ``2026-11-23T14`` in UTC, in order; none without documents.
        """
        ...


class FilesWriter(Files, Protocol):
    """Stores documents that were read from files."""

    def put(
        self, collection_id: int, document: NewDocument, replace: DocumentPlace | None = None
    ) -> int:
        """
        Store a document; it replaces the document at ``replace`` if that still exists.

        Chunks whose text has not changed keep their ids and so their vectors. If another process
        has stored the same file meanwhile, that row is replaced.

        Returns:
            The document's id.
        """
        ...

    def put_all(
        self,
        collection_id: int,
        documents: Iterable[tuple[NewDocument, DocumentPlace | None]],
    ) -> list[int]:
        """
        Store documents as `put` does, which takes twice as long for each; returns their ids.

        Full text has them when all are stored.
        """
        ...

    def set_states(self, states: Iterable[tuple[int, FileState]]) -> None:
        """Record the new states (document id, state) of files whose texts have not changed."""
        ...

    def delete(self, collection_id: int, places: Iterable[tuple[str, StoredFile]]) -> None:
        """
        Delete documents by their paths, with their chunks, vectors, tags, links and full text.

        A document stays if another process has moved or replaced it since it was read as a
        `StoredFile`.
        """
        ...

    def replace_skips(
        self,
        collection_id: int,
        skips: Iterable[tuple[SkippedFile, FileState | None]],
        version: int,
    ) -> None:
        """Replace the records of a collection's skipped files."""
        ...

    def change_attachments(
        self, collection_id: int, added: Iterable[str], removed: Iterable[str]
    ) -> None:
        """Record the paths of files that are no documents, and forget others."""
        ...

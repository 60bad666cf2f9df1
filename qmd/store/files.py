"""The state of the files as the indexer last saw them, and storing documents made from files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from qmd.values import FileState, NewDocument, SkippedFile


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

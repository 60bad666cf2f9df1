"""What the last scan saw of the files, and documents written from new scans."""

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
    """A document and where it was: ids are used again, so that both must fit."""

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
        """As `in_collection`, for the documents at these paths and below them; "" is the root."""
        ...

    def state_at(self, collection_id: int, path: str) -> FileState | None:
        """The file a document was made from; None if there is no such document."""
        ...

    def with_hash(self, collection_id: int, digest: str) -> dict[str, StoredFile]:
        """As `in_collection`, for the documents whose text has this hash."""
        ...

    def skips_in_collection(
        self, collection_id: int, version: int | None = None
    ) -> dict[str, tuple[SkippedFile, FileState | None]]:
        """Path → skip, and the file's state if this version of the parser has read it."""
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
        Store a document, in place of the one at ``replace`` if that is still there.

        Chunks whose text did not change keep their ids, and with them their vectors. Another
        process may have stored the same file meanwhile: then its row is replaced.

        Returns:
            The document's id.
        """
        ...

    def set_states(self, states: Iterable[tuple[int, FileState]]) -> None:
        """Note new states, by document id, of files whose texts stayed the same."""
        ...

    def delete(self, collection_id: int, places: Iterable[tuple[str, StoredFile]]) -> None:
        """
        Delete documents by their paths, with their chunks, vectors, tags, links and full text.

        One that another process has moved or stored anew since it was read as a `StoredFile` stays.
        """
        ...

    def replace_skips(
        self,
        collection_id: int,
        skips: Iterable[tuple[SkippedFile, FileState | None]],
        version: int,
    ) -> None:
        """Replace what is noted of a collection's skipped files."""
        ...

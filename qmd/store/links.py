"""Reading the links of documents, and the files that a link may name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from qmd.values.documents import LinkKind


class StoredLink(NamedTuple):
    """
    A link as it is written in a document.

    Attributes:
        collection, path: The place of the document that holds the link.
        seq: The number of the link in its document, from 0, in the order of the text.
        target: As `qmd.values.documents.Link.target`: without ``#heading`` and ``^block``.
        target_key: `qmd.values.names.link_key` of the target: None for a web address, "" for a
            link inside its own note.
        text: What a wikilink shows (``[[target|text]]``); None for other kinds.
        line: From 1.
    """

    document_id: int
    collection: str
    path: str
    seq: int
    kind: LinkKind
    target: str
    target_key: str | None
    text: str | None
    heading: str | None
    block: str | None
    line: int


class NamedFile(NamedTuple):
    """
    A file of a collection that a link may lead to.

    Attributes:
        path: Relative to the collection.
        document_id: None for an attachment, a file that is no document.
    """

    path: str
    document_id: int | None


class Links(Protocol):
    """
    Reads links as they are written, and files by their keys.

    `qmd.search.lookup.link_targets` says which file a link leads to.
    """

    def of_documents(self, document_ids: Sequence[int]) -> list[StoredLink]:
        """All links in these documents, also web addresses, by document id and ``seq``."""
        ...

    def to_keys(self, collection: str, keys: Iterable[str]) -> list[StoredLink]:
        """
        The links in a collection whose ``target_key`` is one of these, by path and ``seq``.

        For the backlinks of a file pass `qmd.values.names.link_keys_to` of its path. These are
        candidates: ``[[b/plan]]`` has the key of ``a/plan.md``, too.
        """
        ...

    def in_collection(self, collection: str) -> Iterator[StoredLink]:
        """All links of a collection but web addresses, by document id and ``seq``."""
        ...

    def files_with_keys(self, collection: str, keys: Iterable[str]) -> list[NamedFile]:
        """The documents and attachments of a collection with these `name_key`s, in any order."""
        ...

    def has_folder(self, collection: str, path: str) -> bool:
        """Whether a document or attachment of a collection lies below this path."""
        ...

    def attachments(self, collection: str, *, limit: int | None = None) -> list[str]:
        """The paths of files of a collection that are no documents, in order."""
        ...

"""Stored documents: found by path, suffix, docid or folder, and their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from qmd.store.selection import Selection
from qmd.values import DocumentInfo


class FullDocument(NamedTuple):
    """A document with its text; the body begins at ``text[body_start]``, behind frontmatter."""

    info: DocumentInfo
    text: str
    body_start: int


class Documents(Protocol):
    """Reads documents. Ids are those of `DocumentInfo.id`."""

    def by_id(self, document_id: int) -> DocumentInfo:
        """A document that exists."""
        ...

    def below(
        self,
        collection: str | None,
        prefix: str = "",
        *,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[DocumentInfo]:
        """Documents of a collection (None: of all) below a path of whole components, in order."""
        ...

    def count(self) -> int:
        """How many documents there are."""
        ...

    def count_below(self, collection: str | None, prefix: str = "") -> int:
        """How many documents `below` gives without a limit."""
        ...

    def by_path(self, collection: str, path: str) -> DocumentInfo | None:
        """The document at a path below its collection; None if there is none."""
        ...

    def by_suffix(self, suffix: str) -> list[DocumentInfo]:
        """
        Documents whose ``collection/path`` ends with ``suffix`` at a component's start.

        An empty suffix matches nothing. Letter case counts; no wildcard does.
        """
        ...

    def by_docid(self, digits: str) -> list[DocumentInfo]:
        """Documents whose content hash starts with these hex digits, in path order."""
        ...

    def content_hash(self, document_id: int) -> str:
        """The whole hash of a document's text, of which its docid is the beginning."""
        ...

    def text(self, document_id: int) -> str:
        """The whole text of a document, as it was decoded."""
        ...

    def text_bytes(self, document_id: int) -> int:
        """The size of a document's text in UTF-8, without reading it into Python."""
        ...

    def file_names(self) -> list[str]:
        """Every ``collection/path``, in order."""
        ...

    def warnings(self, document_id: int) -> list[str]:
        """What was wrong with the file when it was parsed, in sentences."""
        ...

    def full(self, document_ids: Sequence[int]) -> list[FullDocument]:
        """Documents that exist, with their texts, in the order of the ids; each id once."""
        ...

    def identities(self) -> list[tuple[int, str, str, str]]:
        """Id, collection, path and content hash of every document."""
        ...

    def searched_text(self, document_id: int, field: Literal["title", "path"] | None) -> str:
        """The title, the path, or (None) ``title newline text`` of a document."""
        ...

    def titles_and_texts(self, selection: Selection) -> Iterator[tuple[int, str]]:
        """Id and ``title newline text`` of all selected documents, by id."""
        ...

    def latest_ids(self, selection: Selection) -> Iterator[int]:
        """
        Ids of all selected documents, the latest first, then by collection and path.

        A moment counts, not how it is written: dates may have an offset from UTC.
        """
        ...

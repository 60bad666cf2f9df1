"""Reading documents by name, and listing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import DocumentInfo, DocumentSlice, MultiGetReply


class DocumentMethods(Parts):
    def get(
        self, file: str, *, from_line: int | None = None, max_lines: int | None = None
    ) -> DocumentSlice:
        """
        One document, by ``collection/path``, ``qmd://…``, a path on the disk, a unique suffix,
        ``#docid`` or six hex digits; ``:LINE`` (and ``:COUNT``) behind it beats ``from_line``.

        Raises:
            DocumentNotFoundError: With up to three suggestions.
            AmbiguousNameError: More than one document fits.
            InputError: ``max_lines`` below 1.
        """
        from qmd.search.lookup import documents as lookup

        with self._store.reading() as reader:
            return lookup.get(reader, file, from_line=from_line, max_lines=max_lines)

    def multi_get(
        self, pattern: str, *, max_lines: int | None = None, max_bytes: int = 10240
    ) -> MultiGetReply:
        """
        Several documents by glob or comma-separated list; larger ones than ``max_bytes`` are
        named, not read.

        Raises:
            NoMatchError, InputError.
        """
        from qmd.search.lookup import documents as lookup

        with self._store.reading() as reader:
            return lookup.multi_get(reader, pattern, max_lines=max_lines, max_bytes=max_bytes)

    def documents(
        self, prefix: str = "", *, limit: int | None = None, offset: int = 0
    ) -> list[DocumentInfo]:
        """
        The documents below ``collection/prefix``, by collection and path.

        Args:
            limit: None for all.
            offset: How many to leave out at the start.

        Raises:
            CollectionNotFoundError.
        """

        with self._store.reading() as reader:
            collection, rest = _folder(reader, prefix)
            return reader.documents.below(collection, rest, limit=limit, offset=offset)

    def count_documents(self, prefix: str = "") -> int:
        """How many documents `documents` lists without a limit. Raises CollectionNotFoundError."""

        with self._store.reading() as reader:
            return reader.documents.count_below(*_folder(reader, prefix))


def _folder(reader: Reader, prefix: str) -> tuple[str | None, str]:

    collection, _, rest = prefix.removeprefix("qmd://").strip("/").partition("/")
    if collection:
        reader.collections.by_name(collection)
    return collection or None, rest

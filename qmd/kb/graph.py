"""The graph of documents: their tags, what changed, what is similar, and how they are linked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.errors import InputError
from qmd.kb.parts import Parts
from qmd.values.graph import MAX_LISTED

if TYPE_CHECKING:
    from qmd.values.graph import RecentChanges, TagTree


class GraphMethods(Parts):
    """Each method returns at most ``limit`` items, and how many there are in all."""

    def tags(self, prefix: str = "", *, collection: str | None = None, limit: int = 100) -> TagTree:
        """
        The tags with most documents, as a tree; each comes with the number of its documents.

        Args:
            prefix: ``work`` or ``work/``: only this tag and those below it; empty for all.
            collection: Only documents of this collection; None for all.
            limit: 1 to 1000.

        Raises:
            CollectionNotFoundError.
            InputError: The limit is out of its range.
        """
        from qmd.search.graph.tags import tag_tree

        _check(limit)
        with self._store.reading() as reader:
            return tag_tree(reader, prefix, collection=collection, limit=limit)

    def recent(
        self, *, since: str | None = None, collection: str | None = None, limit: int = 20
    ) -> RecentChanges:
        """
        The documents whose files changed last, the latest first, and which tool wrote them.

        Args:
            since: A span such as ``7d`` (m, h, d, w, y), or a date; None for any time.
            collection: Only documents of this collection; None for all.
            limit: 1 to 1000.

        Raises:
            CollectionNotFoundError.
            InputError: ``since`` or the limit is not valid.
        """
        from qmd.search.graph.recent import recent_changes

        _check(limit)
        with self._store.reading() as reader:
            return recent_changes(reader, since=since, collection=collection, limit=limit)


def _check(limit: int) -> None:
    if not 1 <= limit <= MAX_LISTED:
        raise InputError(f"The limit must be between 1 and {MAX_LISTED}, not {limit}.")

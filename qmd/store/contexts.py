"""Contexts: descriptions that people give to everything below a path."""

from __future__ import annotations

from typing import Protocol

from qmd.values import Context


class Contexts(Protocol):
    """Reads contexts."""

    def all(self) -> list[Context]:
        """All contexts, from the global one to the most specific."""
        ...


class ContextsWriter(Contexts, Protocol):
    """
    Changes contexts.

    A place is a collection (None: all of them) and a path below it ("": the root).
    """

    def put(self, collection_id: int | None, prefix: str, text: str) -> Context:
        """Add a context, or replace the text of the one at that place."""
        ...

    def remove(self, collection_id: int | None, prefix: str) -> Context:
        """
        Remove the context at a place, and return it.

        Raises:
            ContextNotFoundError: The place has no context.
        """
        ...

"""Which contexts apply to a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qmd.model import Context
from qmd.sqlite import Connection
from qmd.store import collections


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a database, from the global one to the most specific."""

    everything: Sequence[Context]

    def of(self, collection: str, path: str) -> str | None:
        """Every context whose prefix holds the document, joined by a blank line, or None."""
        texts = [
            context.text
            for context in self.everything
            if context.collection is None
            or (
                context.collection == collection
                and (
                    not context.prefix
                    or path == context.prefix
                    or path.startswith(context.prefix + "/")
                )
            )
        ]
        return "\n\n".join(texts) or None


def load(connection: Connection) -> Contexts:
    return Contexts(collections.contexts(connection))

"""Which contexts apply to a document."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.values import Context


def of(contexts: Sequence[Context], collection: str, path: str) -> str | None:
    """
    Every context whose prefix holds the document, joined by a blank line, or None.

    ``contexts`` are all of them, from the global one to the most specific.
    """
    texts = [context.text for context in contexts if _holds(context, collection, path)]
    return "\n\n".join(texts) or None


def _holds(context: Context, collection: str, path: str) -> bool:
    if context.collection is None:
        return True
    if context.collection != collection:
        return False
    prefix = context.prefix
    return not prefix or path == prefix or path.startswith(prefix + "/")

"""The contexts that apply to a document."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.values import Context


def join_contexts(contexts: Sequence[Context], collection: str, path: str) -> str | None:
    """
    The texts of the contexts whose prefix the document lies below, joined by a blank line, or None.

    ``contexts`` are those of the whole database, from the global one to the most specific.
    """
    texts = [context.text for context in contexts if _applies_to(context, collection, path)]
    return "\n\n".join(texts) or None


def _applies_to(context: Context, collection: str, path: str) -> bool:
    if context.collection is None:
        return True
    if context.collection != collection:
        return False
    prefix = context.prefix
    return not prefix or path == prefix or path.startswith(prefix + "/")

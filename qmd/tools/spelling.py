"""Finds the name that a client may have misspelled, and shortens long names for messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Characters. No name in qmd is longer, and comparing long names takes too much time.
LONGEST = 100


def closest(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The most similar of ``names``; None if none is similar enough (``cutoff``: 0 to 1)."""
    if len(name) > LONGEST:
        return None
    similar_names = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return similar_names[0] if similar_names else None


def shortened(name: str) -> str:
    """A name for a message: at most `LONGEST` characters and an ellipsis."""
    return name if len(name) <= LONGEST else name[:LONGEST] + "…"

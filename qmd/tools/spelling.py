"""Names that a client got wrong: which one it may have meant, and how much of its own is shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Characters; no name of ours is as long, and comparing takes time that grows with the length.
LONGEST = 100


def closest(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The one of ``names`` that is most like a name, if any is (``cutoff``: 0 to 1)."""
    if len(name) > LONGEST:
        return None
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return close[0] if close else None


def shortened(name: str) -> str:
    return name if len(name) <= LONGEST else name[:LONGEST] + "…"

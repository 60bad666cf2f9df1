"""Find changed files, parse and store them, and embed their chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.ingest import (
        collection_paths,
        embedding,
        events,
        git_pull,
        index,
        new_collection,
        rules,
        vault,
        why,
    )

__all__ = [
    "collection_paths",
    "embedding",
    "events",
    "git_pull",
    "index",
    "new_collection",
    "rules",
    "vault",
    "why",
]

__getattr__ = lazy.load(__name__, modules=__all__)

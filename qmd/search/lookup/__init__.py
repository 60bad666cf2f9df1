"""Find documents by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.lookup import anchors, documents, globs, resolve, similar

__all__ = ["anchors", "documents", "globs", "resolve", "similar"]

__getattr__ = lazy.load(__name__, modules=__all__)

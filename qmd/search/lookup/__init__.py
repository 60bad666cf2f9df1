"""Find documents by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.lookup import budget, documents, outline, resolve

__all__ = ["budget", "documents", "outline", "resolve"]

__getattr__ = lazy.load(__name__, modules=__all__)

"""The graph of documents: links, tags, and what is similar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.graph import broken, links, similar, tags

__all__ = ["broken", "links", "similar", "tags"]

__getattr__ = lazy.load(__name__, modules=__all__)

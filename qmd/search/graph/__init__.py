"""
What links, tags and vectors say about how documents belong together.

Its modules can be used as attributes, and are loaded when they first are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.graph import broken, links, similar, tags

__all__ = ["broken", "links", "similar", "tags"]

__getattr__ = lazy.load(__name__, modules=__all__)

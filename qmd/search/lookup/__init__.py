"""
Documents by name, and what links mean.

Its modules that few names need can be used as attributes, and are loaded when they first are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.lookup import anchors, globs, similar

__all__ = ["anchors", "globs", "similar"]

__getattr__ = lazy.load(__name__, modules=__all__)

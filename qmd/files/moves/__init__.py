"""Moves and renames notes, and rewrites the links that would lose their target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.moves import mover as mover

__getattr__ = lazy.load(__name__)

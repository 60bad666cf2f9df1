"""Folders of other machines: the server keeps a copy of each, which is a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.pushed import folder

__all__ = ["folder"]

__getattr__ = lazy.load(__name__, modules=__all__)

"""Bring folders and notes from other programs, and a whole knowledge base to another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.transfer import (
        basic_memory,
        copy_to,
        export,
        markdown_zip,
        obsidian,
        take_back,
        take_over,
        tobi,
    )

__all__ = [
    "basic_memory",
    "copy_to",
    "export",
    "markdown_zip",
    "obsidian",
    "take_back",
    "take_over",
    "tobi",
]

__getattr__ = lazy.load(__name__, modules=__all__)

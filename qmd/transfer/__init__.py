"""Bring folders and notes from other programs, and a whole knowledge base to another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.transfer import (
        copy_to,
        export,
        markdown_zip,
        programs,
        take_back,
        take_over,
    )

__all__ = [
    "copy_to",
    "export",
    "markdown_zip",
    "programs",
    "take_back",
    "take_over",
]

__getattr__ = lazy.load(__name__, modules=__all__)

"""Bring folders and notes from other programs, and a whole knowledge base to another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.transfer import conversations as conversations
    from qmd.transfer import export as export
    from qmd.transfer import markdown_zip as markdown_zip
    from qmd.transfer import programs as programs
    from qmd.transfer import take_back as take_back

__getattr__ = lazy.load(__name__)

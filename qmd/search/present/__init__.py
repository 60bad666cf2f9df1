"""From ranked candidates to the hits of a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.present import key_lines as key_lines

__getattr__ = lazy.load(__name__)

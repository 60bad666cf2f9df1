"""Notes in a vault: what a path means, and reading, writing and listing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.notes import notes, vault

__all__ = ["notes", "vault"]

__getattr__ = lazy.load(__name__, modules=__all__)

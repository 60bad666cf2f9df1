"""Find documents by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.lookup import documents as documents
    from qmd.search.lookup import globs as globs
    from qmd.search.lookup import resolve as resolve
    from qmd.search.lookup import similar as similar

__getattr__ = lazy.load(__name__)

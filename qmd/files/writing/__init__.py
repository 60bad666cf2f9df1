"""The one way in which files change: allowed by the policy, whole, with the old content kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.writing import policy as policy
    from qmd.files.writing import writer as writer

__getattr__ = lazy.load(__name__)

"""
Models: what search needs of them (`protocols`), and the ones there are.

Its modules that need numpy can be used as attributes, and are loaded when they first are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.inference import token_codes, token_projections

__all__ = ["token_codes", "token_projections"]

__getattr__ = lazy.load(__name__, modules=__all__)

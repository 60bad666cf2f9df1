"""The query language: parse a string into terms, exclusions and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.query import dates as dates

__getattr__ = lazy.load(__name__)

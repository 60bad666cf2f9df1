"""
Views: tables of notes, described in YAML, in the query language of Dataview, or as a base.

`expressions` reads conditions and columns, `written` the three forms, `computing` evaluates an
expression for one note, and `table` makes the view. No code of a note is ever run: an expression is
a tree of known operations with a budget of steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.views import table as table
    from qmd.search.views import written as written

__getattr__ = lazy.load(__name__)

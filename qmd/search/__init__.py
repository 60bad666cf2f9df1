"""Query → hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search import budget as budget
    from qmd.search import listing as listing
    from qmd.search import meaning as meaning
    from qmd.search import memory as memory
    from qmd.search import query as query
    from qmd.search import question as question
    from qmd.search import rank as rank
    from qmd.search import retrieve as retrieve
    from qmd.search import searches as searches
    from qmd.search import spelling as spelling
    from qmd.search import views as views

__getattr__ = lazy.load(__name__)

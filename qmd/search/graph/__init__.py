"""The graph of documents: links, tags, and what is similar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.graph import links as links
    from qmd.search.graph import similar as similar
    from qmd.search.graph import tags as tags

__getattr__ = lazy.load(__name__)

"""
`KnowledgeBase`: the interface of the library, which the command line and the servers call too.

`knowledge_base` opens and closes it. Each of the other modules holds the methods of one subject.
They use the rooms below as attributes of lazy packages (`qmd.lazy`), so that a short command loads
little of them. `opening` is what one search needs of a knowledge base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.kb import opening as opening
    from qmd.kb.knowledge_base import KnowledgeBase

__all__ = ["KnowledgeBase"]

__getattr__ = lazy.load(__name__, attributes={"KnowledgeBase": "qmd.kb.knowledge_base"})

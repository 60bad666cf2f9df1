"""The tools, as endpoints call them: one logic, and here the words of this face."""

from __future__ import annotations

from typing import Any

from qmd.kb import KnowledgeBase
from qmd.tools import texts
from qmd.tools.arguments import Arguments
from qmd.tools.definition import Reply, TextBlock
from qmd.tools.knowledge import TOOLS as _TOOLS

TOOLS = {tool.name: tool for tool in _TOOLS}


def run(name: str, kb: KnowledgeBase, arguments: Arguments) -> Reply:
    """What a tool answers. Raises what it raises."""
    return TOOLS[name].run(kb, arguments, texts.REST)


def fields(reply: Reply) -> dict[str, Any]:
    """What the reply of a tool with structured content says, for a reply model."""
    assert reply.structured is not None
    return {**reply.structured, "content": first_text(reply)}


def first_text(reply: Reply) -> str:
    """The text of the interface; what a tool adds behind it has a field of its own here."""
    block = reply.blocks[0]
    assert isinstance(block, TextBlock)
    return block.text

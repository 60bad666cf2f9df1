"""Calls the MCP tools from endpoints, with the texts of REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.operations.replies import Reply, TextBlock
from qmd.server.endpoints.definition import Answer, Call
from qmd.tools.arguments import Arguments
from qmd.tools.knowledge import TOOLS as _TOOLS
from qmd.tools.schemas import ReplyModel

TOOLS = {tool.name: tool for tool in _TOOLS}


def run(name: str, kb: KnowledgeBase, arguments: Arguments) -> Reply:
    """
    Run a tool.

    Raises:
        QmdError: An error of the tool.
    """
    return TOOLS[name].run(kb, arguments, texts.REST)


def answering(name: str, model: type[ReplyModel]) -> Callable[[Call], Answer]:
    """Make the ``run`` of an endpoint that calls a tool and answers with the tool's reply."""

    def run_tool(call: Call) -> Answer:
        return answer(model, run(name, call.kb, call.arguments))

    return run_tool


def answer(model: type[ReplyModel], reply: Reply) -> dict[str, Any]:
    """A tool's structured content and, as ``content``, its text, in the order of the model."""
    assert reply.structured is not None
    parts = {**reply.structured, "content": first_text(reply)}
    return {name: parts[name] for name in model.model_fields if name in parts}


def first_text(reply: Reply) -> str:
    """The first text of a reply, which the specification prescribes; REST has fields for others."""
    block = reply.blocks[0]
    assert isinstance(block, TextBlock)
    return block.text

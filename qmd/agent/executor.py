"""Runs the tools that the model calls: the server's own, under its write policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qmd.agent.parser import ToolCall
from qmd.errors import InputError, QmdError
from qmd.kb import KnowledgeBase
from qmd.tools.definition import DocumentBlock, Reply, Tool
from qmd.tools.texts import MCP, error_text
from qmd.tools.validation import InvalidArgumentsError, parameter_sentences, validate

DIALECT = replace(MCP, get_tool="get")
"""The texts of MCP, but with plain tool names: MCP clients put the server's name before them."""

_READ_ONLY = (
    "Tool '{tool}' writes, and this run only reads. Nothing was changed. "
    "The person must start it with --write to allow that."
)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The description of a tool for the model; ``parameters`` is a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: ``data`` if it succeeded, else ``error``."""

    success: bool
    data: str | None = None
    error: str | None = None

    @property
    def text(self) -> str:
        return (self.data if self.success else self.error) or ""

    def as_json(self) -> dict[str, Any]:
        if self.success:
            return {"success": True, "data": self.data}
        return {"success": False, "error": self.error}


class ToolExecutor:
    """
    The tools of one knowledge base; `execute` raises nothing that a tool may raise.

    Those that write are offered only where the knowledge base was opened with
    ``confirm_writes``: a document may persuade a model to write, so a person must agree.
    """

    def __init__(self, kb: KnowledgeBase, tools: Sequence[Tool[Any]]) -> None:
        self._kb = kb
        self._tools = {tool.name: tool for tool in tools if tool.read_only or kb.confirms_writes}
        self._withheld = frozenset(tool.name for tool in tools) - frozenset(self._tools)

    def definitions(self) -> list[ToolDefinition]:
        return [
            ToolDefinition(tool.name, tool.description, tool.input_schema())
            for tool in self._tools.values()
        ]

    def writes(self, name: str) -> bool:
        """Whether a tool of this name is offered that changes files."""
        return name in self._tools and not self._tools[name].read_only

    def execute(self, call: ToolCall) -> ToolResult:
        """Check the parameters, and run the tool only if they are right."""
        tool = self._tools.get(call.tool)
        if tool is None:
            if call.tool in self._withheld:
                return ToolResult(success=False, error=_READ_ONLY.format(tool=call.tool))
            error = f"Tool '{call.tool}' is not available (tool not found)"
            return ToolResult(success=False, error=error)
        try:
            self._check(tool, call.params)
        except QmdError as error:
            return ToolResult(success=False, error=str(error))
        try:
            return _result(tool.call(self._kb, call.params, DIALECT))
        except QmdError as error:  # an error that the tool's specification passes on unchanged
            return ToolResult(success=False, error=error_text(error))
        except Exception as error:  # noqa: BLE001 - a defect must not end the conversation
            kind = type(error).__name__
            return ToolResult(success=False, error=f"Tool '{tool.name}' failed: {kind}: {error}")

    def _check(self, tool: Tool[Any], params: Mapping[str, Any]) -> None:
        """Raises InputError: in the words of the agent's specification."""
        try:
            validate(tool.arguments, params)
        except InvalidArgumentsError as error:
            sentences = parameter_sentences(error.problems) or [
                _without_heading(tool.name, error_text(tool.refusal(tool.name, error)))
            ]
            raise InputError("Invalid parameters: " + "; ".join(sentences)) from error


def _without_heading(tool: str, message: str) -> str:
    """The details of a tool's own message about its arguments."""
    for heading in ("Invalid parameters: ", f"Invalid arguments for {tool}: "):
        message = message.removeprefix(heading)
    return message


def _result(reply: Reply) -> ToolResult:
    structured = reply.structured or {}
    texts = [
        f"[{block.document.file}]\n{block.text}" if isinstance(block, DocumentBlock) else block.text
        for block in reply.blocks
    ]
    # A search's summary has no snippets: over MCP they stand in the structured content.
    texts += [
        f"[{hit['file']}]\n{hit['snippet']}"
        for hit in structured.get("results", ())
        if isinstance(hit, Mapping) and "snippet" in hit
    ]
    text = "\n\n".join(texts)
    if reply.is_error:
        return ToolResult(success=False, error=text)
    data = structured.get("data")
    return ToolResult(success=True, data=data if isinstance(data, str) else text)

"""
What a client gets to know of tools before it calls one.

It is brief, because a model reads the whole of it before each answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from qmd.operations.texts import Dialect
from qmd.tools.arguments import Arguments
from qmd.tools.definition import Tool
from qmd.tools.schemas import outline, shorten
from qmd.values.facts import Obvious

#: What a client takes for granted of a hint that it does not get. Of a tool that only reads the
#: other hints say nothing.
_DEFAULT_HINTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool in a listing; ``hints`` have the names of MCP."""

    name: str
    title: str | None
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    hints: Mapping[str, bool]


def listing(tools: Iterable[Tool[Any]], dialect: Dialect) -> list[ListedTool]:
    """
    What a client gets to know of the tools that one server offers.

    Nothing stands there twice: neither a description or a bound of an argument, nor what is
    `Obvious`. A schema of replies tells the names of what is in them, and only where the text has
    less. A tool with `Tool.is_prescribed` is listed whole.
    """
    listed: set[tuple[object, ...]] = set()
    return [
        _whole(tool, dialect) if tool.is_prescribed else _brief(tool, dialect, listed)
        for tool in tools
    ]


def _whole(tool: Tool[Any], dialect: Dialect) -> ListedTool:
    return ListedTool(
        tool.name,
        tool.title,
        tool.description,
        tool.input_schema(),
        None if tool.output_schema is None else tool.output_schema(dialect),
        _hints(tool),
    )


def _brief(tool: Tool[Any], dialect: Dialect, listed: set[tuple[object, ...]]) -> ListedTool:
    """The tool without what the listing tells already."""
    whole = _whole(tool, dialect)
    properties = whole.input_schema["properties"]
    for name in _obvious(tool.arguments) & properties.keys():
        properties[name].pop("description", None)
    for name, schema in properties.items():
        shorten(name, schema, listed)
    output = whole.output_schema if tool.outputs_more else None
    return ListedTool(
        whole.name,
        None if _words(whole.title) == _words(whole.name) else whole.title,
        whole.description,
        whole.input_schema,
        None if output is None else outline(output, listed),
        {
            name: value
            for name, value in whole.hints.items()
            if value is not _DEFAULT_HINTS.get(name)
            and not (tool.read_only and name in ("destructiveHint", "idempotentHint"))
        },
    )


def _hints(tool: Tool[Any]) -> dict[str, bool]:
    return {
        "readOnlyHint": tool.read_only,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": False,
    }


def _obvious(arguments: type[Arguments]) -> set[str]:
    return {
        to_camel(name)
        for name, field in arguments.model_fields.items()
        if any(isinstance(fact, Obvious) for fact in field.metadata)
    }


def _words(text: str | None) -> str:
    return (text or "").replace("_", " ").casefold()

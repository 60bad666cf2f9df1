"""
What a client gets to know of tools before it calls one.

A brief listing is for servers with many tools: a model reads the whole of it before each answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from qmd.tools.arguments import Arguments
from qmd.tools.definition import Tool
from qmd.tools.texts import Dialect
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


def in_full(tools: Iterable[Tool[Any]], dialect: Dialect) -> list[ListedTool]:
    return [
        ListedTool(
            tool.name,
            tool.title,
            tool.description,
            tool.input_schema(),
            None if tool.output_schema is None else tool.output_schema(dialect),
            _hints(tool),
        )
        for tool in tools
    ]


def in_brief(tools: Sequence[Tool[Any]], dialect: Dialect) -> list[ListedTool]:
    """
    The listing without what the rest of it says.

    No description stands there twice, and none of what is `Obvious`. A schema of replies tells the
    names of what is in them, and only where the text has less.
    """
    listing = []
    described: set[tuple[str, str]] = set()
    named: set[tuple[str, ...]] = set()
    for tool, full in zip(tools, in_full(tools, dialect), strict=True):
        properties = full.input_schema["properties"]
        for name in _obvious(tool.arguments) & properties.keys():
            properties[name].pop("description", None)
        for name, schema in properties.items():
            _shorten(name, schema, described)
        output = full.output_schema if tool.outputs_more else None
        only_reads = full.hints["readOnlyHint"]
        listing.append(
            ListedTool(
                full.name,
                None if _says(full.title) == _says(full.name) else full.title,
                full.description,
                full.input_schema,
                None if output is None else _outline(output, named),
                {
                    name: value
                    for name, value in full.hints.items()
                    if value is not _DEFAULT_HINTS.get(name)
                    and not (only_reads and name in ("destructiveHint", "idempotentHint"))
                },
            )
        )
    return listing


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


def _shorten(name: str, schema: dict[str, Any], described: set[tuple[str, str]]) -> None:
    """Leave out what was ``described`` before, and a default that stands for "not at all"."""
    text = (name, schema.get("description", ""))
    if text in described:
        del schema["description"]
    elif text[1]:
        described.add(text)
    if schema.get("default") in (0, False):
        del schema["default"]


def _says(text: str | None) -> str:
    return (text or "").replace("_", " ").casefold()


def _outline(schema: Mapping[str, Any], named: set[tuple[str, ...]]) -> dict[str, Any]:
    """A schema of replies with the names of what is always there, unless they were ``named``."""
    outline: dict[str, Any] = {"type": schema["type"]}
    members = {name: schema["properties"][name] for name in schema.get("required", ())}
    lists = {name: member["items"] for name, member in members.items() if "items" in member}
    if lists:
        outline["properties"] = {
            name: {"type": "array", "items": _outline(item, named)} for name, item in lists.items()
        }
    names = tuple(members)
    if names and (lists or names not in named):
        outline["required"] = list(names)
        named.add(names)
    return outline

"""The toolset ``graph``: links, check_links, tags, recent, similar, properties, outline."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from qmd.kb import KnowledgeBase
from qmd.tools.arguments import Arguments, Count, OptionalText
from qmd.tools.budget import ListTokens
from qmd.tools.definition import Reply, TextBlock, Tool
from qmd.tools.operations import tools_of_family
from qmd.tools.outline import OUTLINE
from qmd.tools.texts import Dialect
from qmd.values.graph import MAX_LISTED
from qmd.values.list_budget import ListBudget
from qmd.values.printable import one_line
from qmd.values.wire import to_wire


class PropertyListArguments(Arguments):
    key: OptionalText = Field(None, description="List the values of this property instead")
    limit: Count = Field(50, le=MAX_LISTED, description="Most items")
    max_tokens: ListTokens = None


def properties(kb: KnowledgeBase, arguments: PropertyListArguments, dialect: Dialect) -> Reply:
    budget = ListBudget(arguments.max_tokens)
    if arguments.key is None:
        keys = kb.properties()
        listed = budget.take(keys[: arguments.limit])
        lines = [f"{each.key} {each.documents} ({', '.join(each.kinds)})" for each in listed]
        text = _listing("Properties, with their documents", len(keys), lines)
        return Reply(
            (TextBlock(text),), {"keys": to_wire(listed, dialect.field), "total": len(keys)}
        )
    values = kb.property_values(arguments.key)
    shown = budget.take(values[: arguments.limit])
    lines = [f"{each.value or '(empty)'} {each.documents}" for each in shown]
    text = _listing(f"Values of {arguments.key}, with their documents", len(values), lines)
    return Reply(
        (TextBlock(text),), {"values": to_wire(shown, dialect.field), "total": len(values)}
    )


def _listing(title: str, total: int, items: list[str]) -> str:
    """A title with the number of all items, and the listed ones below it, each on one line."""
    lines = list(map(one_line, items))
    rest = total - len(lines)
    more = [f"… {rest:,} more: raise limit or maxTokens"] if rest > 0 else []
    return "\n".join([f"{one_line(title)}: {total:,}", *lines, *more])


TOOLS: tuple[Tool[Any], ...] = (
    *tools_of_family("graph"),
    Tool(
        name="properties",
        title="Properties",
        description="The properties of all notes (frontmatter and inline fields), or the values of"
        " one, with counts. Searches take them as key:value.",
        arguments=PropertyListArguments,
        run=properties,
    ),
    OUTLINE,
)

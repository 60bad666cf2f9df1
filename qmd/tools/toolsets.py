"""Lists the toolsets, and selects the tools that one server offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from qmd.errors import InputError
from qmd.tools.definition import Tool

#: Toolset → (the name of a server that offers no other toolset, the module with its ``TOOLS``).
TOOLSETS: Mapping[str, tuple[str, str]] = {
    "qmd": ("qmd", "qmd.tools.knowledge"),
    "graph": ("qmd graph", "qmd.tools.graph"),
    "edit": ("qmd edit", "qmd.tools.edit"),
    "posts": ("AfdianToMarkdown", "qmd.tools.posts"),
    "summary": ("SummaryMCP", "qmd.tools.summary"),
    "notes": ("Axon", "qmd.tools.notes"),
    "images": ("MetaTag Genie", "qmd.tools.images"),
}


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """
    The tools of one server.

    Attributes:
        tools: The tools that clients can call.
        withheld: The tools that a read-only server does not offer. A call of one is answered with
            the reason.
    """

    server_name: str
    toolsets: tuple[str, ...]
    tools: tuple[Tool[Any], ...]
    withheld: tuple[Tool[Any], ...] = ()


def select(names: Sequence[str] = (), *, read_only: bool = False) -> ToolSelection:
    """
    Select the tools of some toolsets.

    Args:
        names: The toolsets; empty for all.
        read_only: Withhold the tools that write.

    Raises:
        InputError: A name is not that of a toolset.
    """
    for name in names:
        if name not in TOOLSETS:
            raise InputError(
                f"There is no toolset {name!r}.", hint="Toolsets: " + ", ".join(TOOLSETS)
            )
    chosen = tuple(name for name in TOOLSETS if name in names or not names)
    tools: list[Tool[Any]] = []
    withheld: list[Tool[Any]] = []
    for name in chosen:
        module = import_module(TOOLSETS[name][1])
        together = getattr(module, "TOGETHER", {}) if len(chosen) > 1 else {}
        for listed in module.TOOLS:
            tool = together.get(listed.name, listed)
            (withheld if read_only and not tool.read_only else tools).append(tool)
    server_name = TOOLSETS[chosen[0]][0] if len(chosen) == 1 else "qmd"
    return ToolSelection(server_name, chosen, tuple(tools), tuple(withheld))

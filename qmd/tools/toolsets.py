"""Lists the toolsets, and selects the tools that one server offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qmd.errors import InputError
from qmd.tools.definition import Tool
from qmd.tools.operations import tools_of_operations
from qmd.values.notes import Language

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

#: Toolset → (the name of a server that offers no other toolset, the module with the ``TOOLS`` that
#: do not come from operations; "" for none).
TOOLSETS: Mapping[str, tuple[str, str]] = {
    "qmd": ("qmd", ""),
    "graph": ("qmd graph", ""),
    "edit": ("qmd edit", ""),
    "capture": ("qmd capture", ""),
    "memory": ("qmd memory", ""),
    "posts": ("AfdianToMarkdown", ""),
    "summary": ("SummaryMCP", ""),
    "notes": ("Axon", ""),
    "images": ("MetaTag Genie", "qmd.tools.images"),
    "chatgpt": ("qmd", ""),
}
ALL = "all"
#: The toolsets whose tools have names of others, which their client prescribes.
ALONE = frozenset({"chatgpt"})

#: The toolsets that read and write files in no collection, so that no scope contains them.
UNSCOPED = frozenset({"posts", "summary", "images"})

Condition = Callable[["KnowledgeBase"], bool]


def _can_write(kb: KnowledgeBase) -> bool:
    return kb.policy.writable


#: The toolsets of a server for which nobody has named any → whether the database calls for it.
CALLED_FOR: Mapping[str, Condition] = {
    "qmd": lambda kb: True,
    "edit": _can_write,
    "notes": _can_write,
    "posts": lambda kb: kb.has_posts(),
    "images": lambda kb: _can_write(kb) and kb.has_photos(),
}


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """
    The tools of one server.

    Attributes:
        tools: The tools that clients can call.
        withheld: The tools that a read-only server does not offer. A call of one is answered with
            the reason.
        conditions: Tool → whether it is listed for a database as it is now; the tools that are not
            here are always listed.
        language: The language of the descriptions; None for that of each specification.
    """

    server_name: str
    toolsets: tuple[str, ...]
    tools: tuple[Tool[Any], ...]
    withheld: tuple[Tool[Any], ...] = ()
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    language: Language | None = None

    def listed(self, kb: KnowledgeBase) -> tuple[Tool[Any], ...]:
        """The tools that the database calls for."""
        holds = {condition: condition(kb) for condition in set(self.conditions.values())}
        return tuple(
            tool
            for tool in self.tools
            if tool.name not in self.conditions or holds[self.conditions[tool.name]]
        )


def select(
    names: Sequence[str] = (), *, read_only: bool = False, language: Language | None = None
) -> ToolSelection:
    """
    Select the tools of some toolsets.

    Args:
        names: The toolsets; empty or "all" for all.
        read_only: Withhold the tools that write.
        language: Of the descriptions; None for that of each specification.

    Raises:
        InputError: A name is not that of a toolset, or that of one which must be served alone.
    """
    for name in names:
        if name not in (*TOOLSETS, ALL):
            raise InputError(
                f"There is no toolset {name!r}.", hint="Toolsets: " + ", ".join((*TOOLSETS, ALL))
            )
    has_all = not names or ALL in names
    chosen = tuple(name for name in TOOLSETS if name in names or (has_all and name not in ALONE))
    if len(chosen) > 1 and not ALONE.isdisjoint(chosen):
        alone = ", ".join(sorted(ALONE.intersection(chosen)))
        raise InputError(
            f"The toolset {alone} stands alone: other toolsets have tools of the same names.",
            hint=f"Give it a server of its own: --toolset {alone}",
        )
    tools: list[Tool[Any]] = []
    withheld: list[Tool[Any]] = []
    for name in chosen:
        for tool in tools_of(name, alone=len(chosen) == 1):
            described = tool.worded(language)
            (withheld if read_only and not tool.read_only else tools).append(described)
    server_name = TOOLSETS[chosen[0]][0] if len(chosen) == 1 else "qmd"
    return ToolSelection(server_name, chosen, tuple(tools), tuple(withheld), language=language)


def withholding(selection: ToolSelection) -> ToolSelection:
    """A selection whose tools that write are withheld."""
    return replace(
        selection,
        tools=tuple(tool for tool in selection.tools if tool.read_only),
        withheld=(*selection.withheld, *(tool for tool in selection.tools if not tool.read_only)),
    )


def scoped(selection: ToolSelection) -> ToolSelection:
    """The tools of a selection that are offered to a client with a scope."""
    names = {tool.name for name in UNSCOPED for tool in tools_of(name, alone=False)}
    return replace(
        selection,
        toolsets=tuple(name for name in selection.toolsets if name not in UNSCOPED),
        tools=tuple(tool for tool in selection.tools if tool.name not in names),
        withheld=tuple(tool for tool in selection.withheld if tool.name not in names),
    )


def select_by_database(
    *, read_only: bool = False, language: Language | None = None
) -> ToolSelection:
    """
    Select the tools of a server for which nobody has named any: those that its database calls for.

    Args: As `select`.
    """
    selection = select(tuple(CALLED_FOR), read_only=read_only, language=language)
    return replace(
        selection,
        conditions={
            tool.name: condition
            for name, condition in CALLED_FOR.items()
            for tool in tools_of(name, alone=False)
        },
    )


def tools_of(toolset: str, *, alone: bool) -> Sequence[Tool[Any]]:
    """The tools of a toolset; ``alone``: as on a server that offers no other one."""
    derived = tools_of_operations(toolset, alone=alone)
    if not TOOLSETS[toolset][1]:
        return derived
    module = import_module(TOOLSETS[toolset][1])
    together: Mapping[str, Tool[Any]] = {} if alone else getattr(module, "TOGETHER", {})
    return [*(together.get(tool.name, tool) for tool in module.TOOLS), *derived]


def toolset_of(tool: str) -> str | None:
    """The toolset with the tool of this name, as on a server with all; None if there is none."""
    for toolset in TOOLSETS:
        if any(tool == each.name for each in tools_of(toolset, alone=False)):
            return toolset
    return None

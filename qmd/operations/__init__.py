"""
What qmd does, each operation declared once: `definition` says what is derived from a declaration.

A family is a module of this package. It is imported when one of its operations is used, so that
`qmd search` loads `searches` alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from qmd import lazy, system
from qmd.operations.definition import Joined as Joined
from qmd.operations.definition import Operation as Operation

if TYPE_CHECKING:
    from qmd.operations import hits as hits
    from qmd.operations import plugins as plugins

__getattr__ = lazy.load(__name__)

#: The modules with operations, in the order of the references.
FAMILIES = (
    *("searches", "reading", "graph", "documents", "memory"),
    *("editing", "capture"),
    *("collections", "contexts", "indexing", "upkeep", "access", "chats"),
)

#: Those whose texts a specification prescribes: they have no endpoints, and commands made by hand.
TOOLS_ALONE = ("notes", "posts", "summary", "chatgpt")


def operations_of(family: str) -> list[Operation]:
    """The operations that a module of this package declares, in their order."""
    members = vars(import_module(f"{__name__}.{family}")).values()
    return [each for each in members if isinstance(each, Operation)]


def every_operation() -> list[Operation]:
    """Those of the families with endpoints; some have no command, some no tool."""
    return [each for family in FAMILIES for each in operations_of(family)]


def every_tool() -> list[Operation]:
    """All of all families, then those of plugins; those whose `toolset` is None have no tool."""
    return [*every_own(), *of_plugins()]


def of_plugins() -> list[Operation]:
    """Those of the plugins that are turned on in this process."""
    if not system.plugins.turned_on():
        return []
    operations: list[Operation] = import_module(f"{__name__}.plugins").turned_on()
    return operations


def every_own() -> list[Operation]:
    """All that qmd declares itself."""
    alone = [each for family in TOOLS_ALONE for each in operations_of(family)]
    return [*every_operation(), *alone]


def every_command() -> list[Operation]:
    """All with a command."""
    return [each for each in every_tool() if each.command_name is not None]


def every_joined() -> list[Joined]:
    """The tools that stand for several operations."""
    members = [import_module(f"{__name__}.{family}") for family in FAMILIES]
    return [each for one in members for each in vars(one).values() if isinstance(each, Joined)]

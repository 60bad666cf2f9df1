"""What the database keeps: what tools changed, what a file held, and the room it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from qmd import operations
from qmd.operations.definition import KnowledgeBase, Row, Styled, operation
from qmd.values.facts import Describe, NotSent, Range
from qmd.values.reports import CleanupReport, PluginList, ProgressCallback
from qmd.values.writing import FileChange

FAMILY = {"toolset": None, "group": "write"}


@dataclass(frozen=True, slots=True)
class ChangeList:
    changes: tuple[FileChange, ...]


@operation(
    never_cut=True,
    command=None,  # it is a part of 'qmd history' and 'qmd undo': `qmd.cli.history`
)
def changes(
    kb: KnowledgeBase,
    session: Annotated[str | None, Describe("Only the changes of this session")] = None,
    limit: Annotated[int, Range(1, 1000), Describe("The most changes to list")] = 20,
) -> ChangeList:
    """
    What tools have changed, the latest first.

    Each change with its tool, its session and its files.
    """
    return ChangeList(tuple(kb.undo.changes(session, limit=limit)))


def _plugins(listed: PluginList) -> Iterator[Row]:
    for plugin in listed.plugins:
        package = f"{plugin.package} {plugin.version}".strip()
        text = plugin.problem or ", ".join(plugin.offers) or package
        state = Styled(f"{plugin.state:6}  {plugin.kind:10}  ", "dim")
        yield Row((state, Styled(plugin.name, "file"), f"  {text}"))


@operation(
    rows=_plugins,
    never_cut=True,
    when_empty="No plugin is installed.",
    done_by="upkeep:plugins",
    examples=("qmd plugins", "qmd plugins --json"),
)
def plugins(kb: KnowledgeBase) -> PluginList:
    """
    List the installed plugins.

    A plugin offers file formats, models, or operations: tools, commands and endpoints. It is off
    until the setting plugins names it.
    """
    return operations.plugins.listed(kb.plugins)


@operation(
    in_shell_alone=True,
    view="render_cleanup",
    command="db cleanup",
    destroys=True,
    examples=("qmd db cleanup --dry-run", "qmd db cleanup"),
    lane="write",
)
def cleanup(
    kb: KnowledgeBase,
    dry_run: Annotated[bool, Describe("Only say what would be removed")] = False,
    progress: Annotated[ProgressCallback | None, NotSent()] = None,
) -> CleanupReport:
    """Remove what nothing refers to, and give the space back."""
    return kb.cleanup(dry_run=dry_run, progress=progress)

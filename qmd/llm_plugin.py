"""
The plugin of `llm` (https://llm.datasette.io): the tools of qmd, and fragments `-f qmd:…`.

    llm -T QMD "what did we decide about backups?" --td
    llm -f qmd:notes/release.md "summarize"
    llm -f "qmd:how do we restore the database" "write a checklist"

`llm` loads this module by its entry point wherever qmd is installed beside it, at each start; so
whatever takes long to import waits for the first use. Nothing here writes.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import llm

if TYPE_CHECKING:
    from qmd.agent.executor import ToolExecutor
    from qmd.kb import KnowledgeBase


class QMD(llm.Toolbox):
    """
    Search and read the notes that qmd has indexed.

    Args:
        db: The database; None for the one that the command line uses.
        toolsets: Those whose tools are offered, separated by commas; tools that write never are.
    """

    def __init__(self, db: str | None = None, toolsets: str = "qmd") -> None:
        self._tools = functools.partial(_tools, db, tuple(toolsets.split(",")))

    @classmethod
    def method_tools(cls) -> list[llm.Tool]:
        return _tools(None, ("qmd",))

    def tools(self) -> list[llm.Tool]:
        return self._tools()


def _tools(db: str | None, toolsets: tuple[str, ...]) -> list[llm.Tool]:
    from qmd.tools.toolsets import select

    return [
        llm.Tool(
            name=f"qmd_{tool.name}",
            description=tool.description,
            input_schema=dict(tool.input_schema()),
            implementation=_implementation(tool.name, db, toolsets),
            plugin="qmd",
        )
        for tool in select(toolsets, read_only=True).tools
    ]


def _implementation(name: str, db: str | None, toolsets: tuple[str, ...]) -> Callable[..., str]:
    def run(**arguments: Any) -> str:
        from qmd.agent.parser import ToolCall

        return _executor(db, toolsets).execute(ToolCall(name, arguments)).text

    return run


@functools.cache
def _executor(db: str | None, toolsets: tuple[str, ...]) -> ToolExecutor:
    from qmd.agent.executor import ToolExecutor
    from qmd.tools.toolsets import select

    return ToolExecutor(_knowledge_base(db), select(toolsets, read_only=True).tools)


@functools.cache
def _knowledge_base(db: str | None = None) -> KnowledgeBase:
    """The database, open until the process ends: a second query then needs no second model."""
    from qmd.cli.session import Session

    session = Session()
    session.db = db
    kb = session.open(ask_server=True, read_only_files=True)
    atexit.register(kb.close)
    return kb


def load_fragments(argument: str) -> list[llm.Fragment]:
    """
    Notes that qmd has indexed: qmd:collection/note.md, qmd:#docid, qmd:'journal/2026-*.md', or
    words and questions, for the five notes that answer best: 'qmd:how do we make backups'
    """
    from qmd.errors import QmdError
    from qmd.operations.texts import error_text
    from qmd.tools.fragments import fragments

    try:
        read = fragments(_knowledge_base(), argument)
    except QmdError as error:
        raise ValueError(error_text(error)) from error
    return [llm.Fragment(each.text, f"qmd:{each.file or argument}") for each in read]


@llm.hookimpl
def register_tools(register: Callable[..., None]) -> None:
    register(QMD)


@llm.hookimpl
def register_fragment_loaders(register: Callable[..., None]) -> None:
    register("qmd", load_fragments)

"""Contexts, which say what lies below a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qmd.errors import ContextNotFoundError
from qmd.operations.definition import KnowledgeBase, Replied, operation
from qmd.values import Context
from qmd.values.facts import Inline, Shell
from qmd.values.text import one_line

FAMILY = {"toolset": None}


@dataclass(frozen=True, slots=True)
class ListedContext:
    context: Annotated[Context, Inline("path", "text")]


@dataclass(frozen=True, slots=True)
class ContextList:
    contexts: tuple[ListedContext, ...]


def _context_list(replied: Replied) -> ContextList:
    return ContextList(tuple(map(ListedContext, replied.value)))


@operation(
    sends=_context_list,
    view="render_contexts",
    command="context list",
    examples=("qmd context list", "qmd context list --json"),
)
def contexts(kb: KnowledgeBase) -> list[Context]:
    """List the contexts, from the global one to the most specific."""
    return kb.contexts()


@operation(
    in_shell_alone=True,  # a client's paths are not those of a shell: `qmd.server.endpoints`
    text=lambda replied: f"Removed context for {one_line(replied.value.path)}",
    command="context rm",
    destroys=True,
    examples=("qmd context rm ~/notes/work", "qmd context rm qmd://notes/2025"),
    errors=(ContextNotFoundError,),
    lane="write",
)
def remove_context(
    kb: KnowledgeBase, path: Annotated[str, Shell(completes="documents")]
) -> Context:
    """Remove a context, named as it was added or as it is listed."""
    return kb.remove_context(path)

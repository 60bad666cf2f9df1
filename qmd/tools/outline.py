"""The tool outline, which lists the headings of a document with their lines."""

from __future__ import annotations

from pydantic import Field

from qmd.kb import KnowledgeBase
from qmd.tools.arguments import Arguments
from qmd.tools.budget import ListTokens
from qmd.tools.definition import Reply, TextBlock, Tool
from qmd.tools.texts import Dialect
from qmd.values.list_budget import ListBudget
from qmd.values.outline import DocumentOutline
from qmd.values.printable import one_line
from qmd.values.wire import to_wire


class OutlineArguments(Arguments):
    file: str = Field(description="A name as get takes it, perhaps with #Heading")
    max_tokens: ListTokens = None


def fitted_outline(kb: KnowledgeBase, arguments: OutlineArguments) -> DocumentOutline:
    """The outline, with as many headings, and then blocks, as fit into the budget."""
    outlined = kb.outline(arguments.file)
    budget = ListBudget(arguments.max_tokens)
    return budget.fit(budget.fit(outlined, "headings"), "blocks")


def _outline(kb: KnowledgeBase, arguments: OutlineArguments, dialect: Dialect) -> Reply:
    outlined = fitted_outline(kb, arguments)
    title = f"{outlined.document.file} ({outlined.lines:,} lines)"
    text = "\n".join(map(one_line, [title, *_rows(outlined, dialect)]))
    return Reply((TextBlock(text),), to_wire(outlined, dialect.field))


def _rows(outlined: DocumentOutline, dialect: Dialect) -> list[str]:
    """One line for each heading and block, in their order: its line, and what it is."""
    rows = [
        (heading.line, f"{heading.line}: {'#' * heading.level} {heading.text}")
        for heading in outlined.headings
    ]
    rows += [(block.line, f"{block.line}: ^{block.block}") for block in outlined.blocks]
    rest = outlined.rest(dialect.field("max_tokens"))
    return [row for _, row in sorted(rows, key=lambda row: row[0])] + ([rest] if rest else [])


OUTLINE = Tool(
    name="outline",
    title="Outline of a document",
    description="The headings and named blocks of one document, with their line numbers.",
    arguments=OutlineArguments,
    run=_outline,
)

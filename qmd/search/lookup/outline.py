"""Read the outline of a document, or of one section of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.parse.lines import split_lines
from qmd.parse.sections import block_ids, outline_of
from qmd.search.lookup.resolve import resolve
from qmd.values.outline import MAX_OUTLINED, DocumentOutline, OutlinedBlock, OutlinedHeading

if TYPE_CHECKING:
    from qmd.store import Reader


def outline(reader: Reader, name: str) -> DocumentOutline:
    """
    The headings and named blocks of the document with this name, or of the section it names.

    Raises:
        DocumentNotFoundError, SectionNotFoundError, AmbiguousNameError
    """
    resolved = resolve(reader, name)
    text = reader.documents.text(resolved.document.id)
    lines = len(split_lines(text))
    first, end = 1, lines + 1
    if resolved.end_line is not None:
        first, end = resolved.line or 1, resolved.end_line
    headings = [
        OutlinedHeading(each.heading.level, each.heading.text, each.start_line, each.end_line - 1)
        for each in outline_of(text)
        if first <= each.start_line < end
    ]
    blocks = [OutlinedBlock(block, line) for block, line in block_ids(text) if first <= line < end]
    return DocumentOutline(
        resolved.document,
        lines,
        tuple(headings[:MAX_OUTLINED]),
        tuple(blocks[:MAX_OUTLINED]),
        len(headings),
    )

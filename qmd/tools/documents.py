"""The tools get and multi_get, which return documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.operations.replies import DocumentBlock, Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.tools.arguments import Arguments, Count, Integer, TokenBudget
from qmd.values import DocumentSlice, LeftOut, SkippedDocument
from qmd.values.facts import Obvious
from qmd.values.printable import one_line
from qmd.values.wire import to_wire


class GetArguments(Arguments):
    file: str = Field(
        description="Path, name, `[[link]]`, `#docid` or qmd:// URI; then `#Heading` or `:LINE`"
    )
    from_line: Integer | None = Field(None, description="First line, from 1")
    max_lines: Annotated[Count | None, Obvious()] = Field(None, description="Most lines to return")
    max_tokens: TokenBudget = None
    line_numbers: Annotated[bool, Obvious()] = Field(False, description="Number the lines")


class MultiGetArguments(Arguments):
    pattern: str = Field(description="Glob (`journals/2025-05*.md`) or comma-separated files")
    max_lines: Count | None = Field(None, description="Most lines of each file")
    max_bytes: Annotated[Count, Obvious()] = Field(10240, description="Skip files larger than this")
    max_tokens: TokenBudget = None
    line_numbers: Annotated[bool, Obvious()] = Field(False, description="Number the lines")


def get(kb: KnowledgeBase, arguments: GetArguments, dialect: Dialect) -> Reply:
    document = kb.get(
        arguments.file,
        from_line=arguments.from_line,
        max_lines=arguments.max_lines,
        max_tokens=arguments.max_tokens,
        max_total_bytes=dialect.max_bytes,
        line_numbers=arguments.line_numbers,
    )
    # No notice of lines cut off by maxLines, as in multi_get: the caller chose the lines.
    block = _document(document, document.text, dialect, numbered=arguments.line_numbers)
    has_budget = arguments.max_tokens is not None
    structured = to_wire(replace(document, text=block.text), dialect.field)
    return Reply((block, *_notices(document, dialect, has_budget=has_budget)), structured)


def multi_get(kb: KnowledgeBase, arguments: MultiGetArguments, dialect: Dialect) -> Reply:
    reply = kb.multi_get(
        arguments.pattern,
        max_lines=arguments.max_lines,
        max_bytes=arguments.max_bytes,
        max_tokens=arguments.max_tokens,
        line_numbers=arguments.line_numbers,
    )
    blocks: list[TextBlock | DocumentBlock] = []
    items: list[DocumentSlice | SkippedDocument] = []
    if reply.errors:
        blocks.append(TextBlock(texts.errors_block(reply.errors)))
    for item in reply.items:
        if isinstance(item, SkippedDocument):
            notice = texts.skip_notice(item.document.file, item.document.bytes, dialect)
            blocks.append(TextBlock(notice))
            items.append(item)
        else:
            truncated = item.more_lines if item.left_out is None else 0
            text = texts.with_notice(item.text, truncated, dialect)
            blocks.append(_document(item, text, dialect, numbered=arguments.line_numbers))
            body = _numbered(item.text, item, numbered=arguments.line_numbers)
            items.append(replace(item, text=body))
            has_budget = arguments.max_tokens is not None
            blocks += _notices(item, dialect, has_budget=has_budget)
    if reply.next_file is not None:
        blocks.append(TextBlock(texts.documents_left_out(reply.more, reply.next_file)))
    structured = to_wire(replace(reply, items=tuple(items)), dialect.field)
    return Reply(tuple(blocks), structured, is_error=not reply.items)


#: A resource is read by its URI, so its text need not name the file.
_RESOURCE = replace(texts.MCP, heads_with=frozenset({"context"}))


def _notices(document: DocumentSlice, dialect: Dialect, *, has_budget: bool) -> list[TextBlock]:
    """
    The notices, if any, of the lines that a budget or the bound of replies left out, and of other
    sections of the name.
    """
    notices = []
    if document.same_name:
        sentence = texts.same_name(document.same_name)
        place = f"{one_line(document.document.file)}:{document.same_name[0]}"
        notices.append(f"{sentence}: get {place}")
    if document.left_out is not None:
        notices.append(_lines_left_out(document, document.left_out, dialect, has_budget=has_budget))
    return [TextBlock(f"[{notice}]") for notice in notices]


def _lines_left_out(
    document: DocumentSlice, left_out: LeftOut, dialect: Dialect, *, has_budget: bool
) -> str:
    return texts.lines_left_out(
        left_out,
        document.document.file,
        raise_what=dialect.field("max_tokens") if has_budget else None,
    )


def document_block(document: DocumentSlice) -> DocumentBlock:
    """A document as an MCP resource: with numbered lines, and its context before the text."""
    return _document(document, document.text, _RESOURCE, numbered=True)


def _document(
    document: DocumentSlice, text: str, dialect: Dialect, *, numbered: bool
) -> DocumentBlock:
    return DocumentBlock(
        document.document,
        _numbered(text, document, numbered=numbered),
        document.context,
        document.left_out,
        document.same_name,
        heading=texts.document_heading(document, dialect),
        first_line=document.from_line,
        last_line=document.last_line,
    )


def _numbered(text: str, document: DocumentSlice, *, numbered: bool) -> str:
    return texts.line_numbers(text, document.from_line, document.lines) if numbered else text

"""
Prints documents and listings of them in each output format.

For ``qmd get``, ``multi-get``, ``ls`` and ``status``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from qmd.cli import terminal
from qmd.cli.command import Group
from qmd.cli.formats import DISPLAY_PATHS, Columns, Places, flat, numbered, places, table
from qmd.cli.listings import ListingView
from qmd.cli.render_reports import render_status
from qmd.cli.session import session
from qmd.errors import NoMatchError
from qmd.operations import texts
from qmd.parse.lines import split_lines
from qmd.system import clock
from qmd.values import DocumentSlice, SkippedDocument
from qmd.values.text import counted
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.operations import Operation
    from qmd.values import DocumentInfo


def get(
    operation: Operation, arguments: Mapping[str, Any], *, output: str, full_path: bool
) -> None:
    numbered = arguments["line_numbers"]
    with session().open() as kb:
        excerpt = operation.run(kb, **{**arguments, "line_numbers": numbered and output == "cli"})
        where = places(kb.collections, full_path=full_path)
        nothing = _no_lines_text(kb, excerpt)
    render_document(excerpt, output, line_numbers=numbered and output == "cli", where=where)
    if nothing is not None:
        terminal.note(nothing, style="warning")
    if excerpt.left_out is not None:
        terminal.note(f"… {left_out_text(excerpt)}")
    elif excerpt.more_lines and output == "cli":
        terminal.note(f"… {counted(excerpt.more_lines, 'more line')}")
    if excerpt.same_name and output == "cli":
        terminal.note(f"… {same_name_text(excerpt)}")


def multi_get(
    operation: Operation, arguments: Mapping[str, Any], *, output: str, full_path: bool
) -> None:
    numbered = arguments["line_numbers"] and output == "cli"
    with session().open() as kb:
        reply = operation.run(kb, **{**arguments, "line_numbers": numbered})
        where = places(kb.collections, full_path=full_path)
        slices = (each for each in reply.items if isinstance(each, DocumentSlice))
        nothing = [text for each in slices if (text := _no_lines_text(kb, each)) is not None]
    render_documents(reply.items, output, line_numbers=numbered, where=where)
    for each in nothing:
        terminal.note(each, style="warning")
    if reply.next_file is not None:
        raise_what = "--max-tokens" if "max_tokens" in arguments else "--max-total-bytes"
        terminal.note(
            f"{counted(reply.more, 'more document')} left out, the first is {reply.next_file}: "
            f"narrow the pattern, or raise {raise_what}.",
            style="warning",
        )
    if reply.errors:
        raise NoMatchError("\n".join(reply.errors))


def ls(
    operation: Operation, arguments: Mapping[str, Any], *, as_json: bool, full_path: bool
) -> None:
    filters = {name: arguments[name] for name in ("prefix", "tags", "properties")}
    with session().open() as kb:
        listed = operation.run(kb, **{"limit": None, **arguments})
        reason = "" if listed.documents else kb.why_none(**filters)
        where = places(kb.collections, full_path=full_path)
    if as_json:
        terminal.write_json(
            [{**to_wire(each), "file": where.name(each.file)} for each in listed.documents]
        )
        return
    render_listing(listed.documents, where)
    if not listed.documents and any((*filters.values(), arguments["collections"])):
        terminal.note(reason or "No documents meet all of this.")
    elif not listed.documents:
        terminal.note(
            "No documents. 'qmd up FOLDER' makes a folder searchable, 'qmd index' indexes anew."
        )
    ListingView(where, None).note_rest(len(listed.documents), listed.total, "document")


def status(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    with session().open(use_replica=True) as kb:
        reply = operation.run(kb, **arguments)
    if as_json:
        problems = reply.freshness.notices
        terminal.write_json(to_wire(reply.status) | ({"problems": problems} if problems else {}))
    else:
        render_status(reply.status, reply.freshness)


@click.group(
    "links",
    cls=Group,
    default="of",
    operations="links",
    examples=("qmd links notes/MOC.md", "qmd links backlinks MOC", "qmd links broken -c notes"),
)
def links() -> None:
    """
    List the links in a note, and where each leads.

    Embeds and web addresses are links, too. FILE is a name as 'qmd get' takes it. The commands
    list the links that lead to a note, notes without such links, and links that lead nowhere; a
    note that is named like one of them is 'qmd links of NAME'.
    """


Item = DocumentSlice | SkippedDocument


def render_document(item: DocumentSlice, output: str, *, line_numbers: bool, where: Places) -> None:
    """
    Print one document.

    The format ``md``, and ``cli`` without line numbers, print the exact text of a whole document
    to a file or pipe.
    """
    if output == "json":
        terminal.write_json(document_object(item, where))
    elif output in ("cli", "md"):
        is_whole = item.from_line == 1 and not item.more_lines
        is_exact = is_whole and not sys.stdout.isatty()
        terminal.write_text(
            item.text if is_exact and not line_numbers else _lines(item, line_numbers)
        )
    else:
        terminal.write_text(
            table([_fields(item, where, line_numbers=line_numbers)], output, _COLUMNS)
        )


def render_documents(
    items: Sequence[Item], output: str, *, line_numbers: bool, where: Places = DISPLAY_PATHS
) -> None:
    if output == "json":
        terminal.write_json([document_object(item, where) for item in items])
    elif output in ("cli", "md"):
        for position, item in enumerate(items):
            if position:
                terminal.write("\n")
            name = terminal.one_line(where.name(item.document.file))
            if output == "md":
                terminal.write(f"## {name}\n\n")
            else:
                heading = terminal.paint(f"==> {name} <==", "file")
                terminal.write(f"{where.link(heading, item.document.file)}\n")
            terminal.write_text(_text(item, line_numbers, is_ended=True))
    else:
        fields = (_fields(item, where, line_numbers=line_numbers) for item in items)
        terminal.write_text(table(fields, output, _COLUMNS))


def document_object(item: Item, where: Places) -> dict[str, Any]:
    """
    The JSON object of a document.

    ``body`` is the text without line numbers. A document that is too large has ``skipped``.
    """
    fields: dict[str, Any] = to_wire(item)
    fields["file"] = where.name(item.document.file)
    if isinstance(item, SkippedDocument):
        fields |= {"skipped": True, "reason": _too_large(item)}
    return fields


def _lines(item: DocumentSlice, line_numbers: bool) -> str:
    """The lines of a document, each with a line end."""
    if line_numbers:
        return numbered(item.text, item.from_line, item.lines)
    is_ended = item.text.endswith("\n") and item.lines == len(split_lines(item.text))
    return item.text if is_ended or not item.lines else item.text + "\n"


def _text(item: Item, line_numbers: bool, *, is_ended: bool = False) -> str:
    if isinstance(item, SkippedDocument):
        return f"[SKIPPED: {_too_large(item)}]\n"
    is_cut = bool(item.more_lines) or item.left_out is not None
    text = _lines(item, line_numbers) if line_numbers or is_cut or is_ended else item.text
    if is_cut:
        cut_off = f"{item.more_lines} more lines"
        text += f"[... {cut_off if item.left_out is None else left_out_text(item)}]\n"
    return text


def _no_lines_text(kb: KnowledgeBase, item: DocumentSlice) -> str | None:
    """How many lines a document has, where those from a later one on were asked for; else None."""
    if item.lines or item.from_line == 1:
        return None
    file = item.document.file
    count = counted(kb.get(file).lines, "line")
    return f"Nothing stands there from line {item.from_line:,} on: {file} has {count}."


def left_out_text(item: DocumentSlice) -> str:
    """What a budget left out of a document, and the command that prints it."""
    left_out = item.left_out
    if left_out is None:
        return ""
    first, last = left_out.first_line, left_out.last_line
    start = first + 1 if left_out.is_begun else first
    file = terminal.one_line(item.document.file)
    rest = f"lines {start:,} to {last:,} left out: qmd get '{file}:{start}'"
    if not left_out.is_begun:
        return rest
    end = f"the end of line {first:,}"
    if first == last:
        return f"{end} left out: raise --max-tokens"
    return f"{end} (raise --max-tokens) and {rest}"


def same_name_text(item: DocumentSlice) -> str:
    """Where other sections or blocks of the same name are, and the command that prints one."""
    place = f"{terminal.one_line(item.document.file)}:{item.same_name[0]}"
    return f"{texts.same_name(item.same_name)}: qmd get '{place}'"


def _too_large(item: SkippedDocument) -> str:
    name = terminal.one_line(item.document.file)
    return f"{name} is {terminal.readable_size(item.document.bytes)}; read it with: qmd get {name}"


_COLUMNS = Columns(
    files=("docid", "file", "flat_context"),
    csv=("docid", "file", "title", "context", "from_line", "body"),
    xml=("docid", "file", "uri", "title", "context", "skipped"),
    element=("document", "documents"),
)


def _fields(item: Item, where: Places, *, line_numbers: bool) -> dict[str, object]:
    """The fields of a document for `_COLUMNS`."""
    document, text = item.document, _text(item, line_numbers)
    excerpt = item if isinstance(item, DocumentSlice) else None  # None: it is too large
    context = None if excerpt is None else excerpt.context
    return {
        "docid": document.docid,
        "file": where.name(document.file),
        "uri": document.uri,
        "title": document.title,
        "context": context,
        "flat_context": flat(context),
        "from_line": excerpt and excerpt.from_line,
        "body": text if excerpt is None or line_numbers else excerpt.text,
        "skipped": "true" if excerpt is None else None,
        "text": text,
    }


def render_listing(documents: Sequence[DocumentInfo], where: Places) -> None:
    sizes = [terminal.readable_size(document.bytes) for document in documents]
    width = max(map(len, sizes), default=0)
    headings = terminal.group_headings([document.group for document in documents])
    for document, size in zip(documents, sizes, strict=True):
        terminal.write("".join(next(headings)))
        facts = f"{document.docid}  {size:>{width}}  {clock.minute(document.modified)}"
        name = where.link(
            terminal.paint(where.fitting_name(document.file, 2), "file"), document.file
        )
        terminal.write(
            terminal.table_row(
                terminal.paint(facts, "dim"), name, terminal.one_line(document.title)
            )
            + "\n"
        )

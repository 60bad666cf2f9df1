"""Prints documents and listings of them: ``qmd get``, ``multi-get``, ``ls`` and ``status``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from qmd.cli.command import Group
from qmd.cli.listings import ListingView
from qmd.cli.places import places
from qmd.cli.render_documents import (
    left_out_text,
    render_document,
    render_documents,
    render_listing,
    same_name_text,
)
from qmd.cli.render_reports import count, render_status
from qmd.cli.session import session
from qmd.cli.terminal import note, write_json
from qmd.errors import NoMatchError
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.operations import Operation


def get(
    operation: Operation, arguments: Mapping[str, Any], *, output: str, full_path: bool
) -> None:
    numbered = arguments["line_numbers"]
    with session().open() as kb:
        excerpt = operation.run(kb, **{**arguments, "line_numbers": numbered and output == "cli"})
        where = places(kb.collections, full_path=full_path)
    render_document(excerpt, output, line_numbers=numbered and output == "cli", where=where)
    if excerpt.left_out is not None:
        note(f"… {left_out_text(excerpt)}")
    elif excerpt.more_lines and output == "cli":
        note(f"… {count(excerpt.more_lines, 'more line')}")
    if excerpt.same_name and output == "cli":
        note(f"… {same_name_text(excerpt)}")


def multi_get(
    operation: Operation, arguments: Mapping[str, Any], *, output: str, full_path: bool
) -> None:
    numbered = arguments["line_numbers"] and output == "cli"
    with session().open() as kb:
        reply = operation.run(kb, **{**arguments, "line_numbers": numbered})
        where = places(kb.collections, full_path=full_path)
    render_documents(reply.items, output, line_numbers=numbered, where=where)
    if reply.next_file is not None:
        raise_what = "--max-tokens" if "max_tokens" in arguments else "--max-total-bytes"
        note(
            f"{count(reply.more, 'more document')} left out, the first is {reply.next_file}: "
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
        write_json([{**to_wire(each), "file": where.name(each.file)} for each in listed.documents])
        return
    render_listing(listed.documents, where)
    if not listed.documents and any((*filters.values(), arguments["collections"])):
        note(reason or "No documents meet all of this.")
    elif not listed.documents:
        note("No documents. 'qmd up FOLDER' makes a folder searchable, 'qmd index' indexes anew.")
    ListingView(where, None).note_rest(len(listed.documents), listed.total, "document")


def status(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    with session().open(use_replica=True) as kb:
        reply = operation.run(kb, **arguments)
    if as_json:
        write_json(reply.status)
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

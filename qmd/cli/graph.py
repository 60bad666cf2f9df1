"""``qmd links`` with its commands, ``tags``, ``recent`` and ``similar``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd.cli import complete
from qmd.cli.command import Group, command
from qmd.cli.commands import below
from qmd.cli.listings import ListingOptions, ListingView, limit_options, listing_options
from qmd.cli.session import session
from qmd.cli.terminal import beside, note, one_line, paint, table_row, use_color, write
from qmd.system import clock
from qmd.values.search import shown_relevance

if TYPE_CHECKING:
    from qmd.values.graph import NoteLink, RecentChanges, TagTree

F = TypeVar("F", bound=Callable[..., Any])


def _collection(function: F) -> F:
    return click.option(
        "-c",
        "--collection",
        metavar="NAME",
        help="Only documents of this collection.",
        shell_complete=complete.collections,
    )(function)


@click.group(
    "links",
    cls=Group,
    default="of",
    **below("links"),
    examples=("qmd links notes/MOC.md", "qmd links backlinks MOC", "qmd links broken -c notes"),
)
def links() -> None:
    """
    List the links in a note, and where each leads.

    Embeds and web addresses are links, too. FILE is a name as 'qmd get' takes it. The commands
    list the links that lead to a note, notes without such links, and links that lead nowhere; a
    note that is named like one of them is 'qmd links of NAME'.
    """


@command("of", pages=True, examples=("qmd links of notes/MOC.md", "qmd links of broken --json"))
@click.argument("file", shell_complete=complete.documents)
@limit_options(100)
@listing_options()
def links_of(file: str, limit: int | None, options: ListingOptions) -> None:
    """
    List the links in a note: the same as 'qmd links FILE'.

    For a note that is named like one of the other commands.
    """
    with session().open() as kb:
        view = options.view(kb)
        listed = view.fit(kb.links(file, limit=limit), "links")
    if options.as_json:
        view.write_json(listed)
        return
    color = use_color(sys.stdout)
    for link in listed.links:
        place = paint(f"{link.line:>5}", "line", color)
        place = view.where.link(place, listed.file, link.line)
        text = f"{place}  {one_line(link.target)}"
        write(beside(text, _destination(link, view, color), 0) + "\n")
    view.note_none_or_rest(
        len(listed.links), listed.total, "link", none=f"{listed.file} has no links."
    )


links.add_command(links_of)


def _destination(link: NoteLink, view: ListingView, color: bool) -> str:
    if link.state == "web":
        return ""
    if link.state == "nothing":
        return paint("→ nothing", "warning", color)
    note_ = paint(" (no such section)", "warning", color)
    return (
        f"→ {view.link(link.file or '', color)}{note_ if link.state == 'section missing' else ''}"
    )


@command(
    "backlinks",
    pages=True,
    examples=("qmd links backlinks notes/MOC.md", "qmd links backlinks MOC -n 20"),
)
@click.argument("file", shell_complete=complete.documents)
@limit_options(100)
@listing_options()
def backlinks(file: str, limit: int | None, options: ListingOptions) -> None:
    """
    List the links in other notes that lead to a note.

    Each comes with its line. FILE is a name as 'qmd get' takes it.
    """
    with session().open() as kb:
        view = options.view(kb)
        listed = view.fit(kb.backlinks(file, limit=limit), "links")
    if options.as_json:
        view.write_json(listed)
        return
    color = use_color(sys.stdout)
    for link in listed.links:
        place = view.link(link.file, color, line=link.line)
        write(table_row("", place, one_line(link.text)) + "\n")
    view.note_none_or_rest(
        len(listed.links), listed.total, "link", none=f"No other note links to {listed.file}."
    )


@command("orphans", pages=True, examples=("qmd links orphans", "qmd links orphans -c notes --json"))
@_collection
@limit_options(100)
@listing_options()
def orphans(collection: str | None, limit: int | None, options: ListingOptions) -> None:
    """
    List the documents to which no other document links.

    Embeds count as links; links of a document to itself do not. Photos are left out.
    """
    with session().open() as kb:
        view = options.view(kb)
        listed = view.fit(kb.orphans(collection=collection, limit=limit), "documents")
    if options.as_json:
        view.write_json(listed)
        return
    color = use_color(sys.stdout)
    for orphan in listed.documents:
        document = orphan.document
        write(table_row("", view.link(document.file, color), one_line(document.title)) + "\n")
    view.note_none_or_rest(
        len(listed.documents),
        listed.total,
        "document",
        none="Every document is linked from another.",
    )


@command("broken", pages=True, examples=("qmd links broken", "qmd links broken -c notes --json"))
@_collection
@limit_options(100)
@listing_options()
def broken(collection: str | None, limit: int | None, options: ListingOptions) -> None:
    """
    List the links that lead nowhere, with the nearest existing name.

    A link to a heading or block that its note lacks is one of them; a web address is not.
    """
    with session().open() as kb:
        view = options.view(kb)
        listed = view.fit(kb.broken_links(collection=collection, limit=limit), "links")
    if options.as_json:
        view.write_json(listed)
        return
    color = use_color(sys.stdout)
    for link in listed.links:
        place = view.link(link.file, color, line=link.line)
        nearest = ""
        if link.nearest is not None:
            words = "no such section in" if link.missing == "section" else "did you mean"
            nearest = paint(f"({words} {one_line(link.nearest)})", "dim", color)
        text = f"{one_line(link.target)}  {nearest}".rstrip()
        write(beside(place, text, 0) + "\n")
    view.note_none_or_rest(
        len(listed.links), listed.total, "link", none="Every link leads somewhere."
    )


@command(
    "similar", pages=True, examples=("qmd similar notes/plan.md", "qmd similar plan -n 5 --json")
)
@click.argument("file", shell_complete=complete.documents)
@_collection
@limit_options(10)
@listing_options()
def similar(file: str, collection: str | None, limit: int | None, options: ListingOptions) -> None:
    """
    List the documents most similar to one, by their vectors.

    It needs the vectors that 'qmd embed' makes. "linked" stands at documents that link to FILE or
    that FILE links to; the others may deserve a link.
    """
    with session().open() as kb:
        view = options.view(kb)
        listed = view.fit(kb.similar(file, collection=collection, limit=limit), "documents")
    if options.as_json:
        view.write_json(listed)
        return
    color = use_color(sys.stdout)
    for document in listed.documents:
        score = paint(f"{shown_relevance(document.similarity):>4}", "score", color)
        linked = "linked" if document.linked else "      "
        place = view.link(document.file, color, line=document.line)
        facts = f"{score}  {paint(linked, 'dim', color)}"
        write(table_row(facts, place, one_line(document.title)) + "\n")
    if listed.left_out:
        view.note_rest(len(listed.documents), len(listed.documents) + listed.left_out, "document")
    elif not listed.documents:
        note("No other document has vectors.")


@command("tags", pages=True, examples=("qmd tags", "qmd tags work/", "qmd tags -c notes -n 20"))
@click.argument("prefix", metavar="[PREFIX/]", default="", shell_complete=complete.tags)
@_collection
@limit_options(100)
@listing_options(has_files=False)
def tags(prefix: str, collection: str | None, limit: int | None, options: ListingOptions) -> None:
    """
    Show the tags as a tree, with their numbers of documents.

    The number counts the documents with the tag or a tag below it. PREFIX/ shows one tag with
    those below it.
    """
    with session().open() as kb:
        view = options.view(kb)
        tree = view.fit(kb.tags(prefix, collection=collection, limit=limit), "tags")
    if options.as_json:
        view.write_json(tree)
    elif not tree.tags:
        near = f" Did you mean: {', '.join(tree.nearest)}" if tree.nearest else ""
        note(one_line(f"No tag {prefix}.{near}") if prefix else "No document has a tag.")
    else:
        _write_tags(tree, view)


def _write_tags(tree: TagTree, view: ListingView) -> None:
    color = use_color(sys.stdout)
    width = max(len(f"{tag.total:,}") for tag in tree.tags)
    for tag in tree.tags:
        name = tag.name if tag.depth else f"#{tag.tag}"
        count = paint(f"{tag.total:>{width},}", "dim", color)
        write(f"{count}  {'  ' * tag.depth}{paint(one_line(name), 'file', color)}\n")
    view.note_rest(len(tree.tags), tree.total, "tag")


@command(
    "recent",
    pages=True,
    examples=("qmd recent", "qmd recent --since 7d", "qmd recent --since 2026-03-01"),
)
@click.option("--since", metavar="WHEN", help="Since 7d, yesterday, 2026-11 or another date.")
@_collection
@limit_options(20)
@listing_options()
def recent(
    since: str | None, collection: str | None, limit: int | None, options: ListingOptions
) -> None:
    """
    List what changed last, and who wrote it: a tool or the disk.

    The time is that of the file. "disk" stands for every program but qmd's own tools.
    """
    with session().open() as kb:
        view = options.view(kb)
        changes = view.fit(kb.recent(since=since, collection=collection, limit=limit), "changes")
    if options.as_json:
        view.write_json(changes)
    elif not changes.changes:
        note("Nothing changed in this time." if since else "There are no documents.")
    else:
        _write_recent(changes, view)


def _write_recent(recent: RecentChanges, view: ListingView) -> None:
    color = use_color(sys.stdout)
    width = max(len(change.by) for change in recent.changes)
    for change in recent.changes:
        facts = f"{clock.minute(change.modified)}  {change.by:<{width}}"
        name = view.link(change.file, color)
        facts = paint(one_line(facts), "dim", color)
        write(table_row(facts, name, one_line(change.title)) + "\n")
    view.note_rest(len(recent.changes), recent.total, "document")

"""``qmd tags`` and ``qmd recent`` show the graph of documents."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, paint, use_color, write, write_json
from qmd.values.graph import MAX_LISTED

if TYPE_CHECKING:
    from qmd.values.graph import RecentChanges, TagTree

F = TypeVar("F", bound=Callable[..., Any])


def _collection(function: F) -> F:
    return click.option(
        "-c", "--collection", metavar="NAME", help="Only documents of this collection."
    )(function)


def _limit(default: int) -> Callable[[F], F]:
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(1, MAX_LISTED),
        default=default,
        show_default=True,
        metavar="N",
        help="Show at most N.",
    )


@command("tags", examples=("qmd tags", "qmd tags work/", "qmd tags -c notes -n 20"))
@click.argument("prefix", metavar="[PREFIX/]", default="")
@_collection
@_limit(100)
@json_option
def tags(prefix: str, collection: str | None, limit: int, as_json: bool) -> None:
    """
    Show the tags as a tree, with their numbers of documents.

    The number counts the documents with the tag or a tag below it. PREFIX/ shows one tag with
    those below it.
    """
    with session().open() as kb:
        tree = kb.tags(prefix, collection=collection, limit=limit)
    if as_json:
        write_json(tree)
    elif not tree.tags:
        note(f"No tag {prefix}." if prefix else "No document has a tag.")
    else:
        _write_tags(tree)


def _write_tags(tree: TagTree) -> None:
    color = use_color(sys.stdout)
    width = max(len(f"{tag.total:,}") for tag in tree.tags)
    for tag in tree.tags:
        name = tag.name if tag.depth else f"#{tag.tag}"
        count = paint(f"{tag.total:>{width},}", "dim", color)
        write(f"{count}  {'  ' * tag.depth}{paint(one_line(name), 'file', color)}\n")
    _note_rest(len(tree.tags), tree.total, "tag")


@command(
    "recent", examples=("qmd recent", "qmd recent --since 7d", "qmd recent --since 2026-03-01")
)
@click.option("--since", metavar="SPAN", help="Since 7d, 12h, 2w, or a date.")
@_collection
@_limit(20)
@json_option
def recent(since: str | None, collection: str | None, limit: int, as_json: bool) -> None:
    """
    List what changed last, and who wrote it: a tool or the disk.

    The time is that of the file. "disk" stands for every program but qmd's own tools.
    """
    with session().open() as kb:
        changes = kb.recent(since=since, collection=collection, limit=limit)
    if as_json:
        write_json(changes)
    elif not changes.changes:
        note("Nothing changed in this time." if since else "There are no documents.")
    else:
        _write_recent(changes)


def _write_recent(recent: RecentChanges) -> None:
    color = use_color(sys.stdout)
    width = max(len(change.by) for change in recent.changes)
    for change in recent.changes:
        facts = f"{change.modified[:16].replace('T', ' ')}  {change.by:<{width}}"
        name = paint(one_line(change.file), "file", color)
        write(f"{paint(one_line(facts), 'dim', color)}  {name}  {one_line(change.title)}\n")
    _note_rest(len(recent.changes), recent.total, "document")


def _note_rest(shown: int, total: int, noun: str) -> None:
    if total > shown:
        rest = total - shown
        note(f"… {rest:,} more {noun}{'' if rest == 1 else 's'}: raise the limit with -n")

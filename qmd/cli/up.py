"""``qmd up``: the one command for a newcomer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmd.cli.collections import refuse_missing
from qmd.cli.command import command
from qmd.cli.indexing import embed_and_report, fail_if_incomplete, index_and_report
from qmd.cli.session import session
from qmd.cli.terminal import one_line, write

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

_WORD = re.compile("[\u4e00-\u9fff]{2,4}|[^\\W\\d_]{4,}")


@command("up", examples=("qmd up ~/notes", "qmd up ~/notes ~/work/docs", "qmd up"))
@click.argument("paths", nargs=-1, metavar="[PATH]...")
def up(paths: tuple[str, ...]) -> None:
    """
    Make folders searchable: add, index, embed, show how to search.

    Each PATH becomes a collection if it is none yet; without one all collections are brought
    up to date. By words everything is found before the vectors are made. Ctrl-C loses
    nothing: the next 'qmd up' goes on.
    """
    from qmd.cli.render_reports import render_status

    for path in paths:
        refuse_missing(path)
    with session().open(create=bool(paths), write=True) as kb:
        names = [_collection_at(kb, path) for path in paths]
        report = index_and_report(kb, names)
        _show_how(kb, names)
        embed_and_report(kb, names, wanted=None)
        write("\n")
        render_status(kb.status())
    fail_if_incomplete(report)


def _collection_at(kb: KnowledgeBase, path: str) -> str:
    """The collection of this very directory, added if there is none."""
    resolved = Path(path).expanduser().resolve()
    for collection in kb.collections():
        if Path(collection.path) == resolved:
            return collection.name
    added = kb.add_collection(path)
    write(f"Added collection '{one_line(added.name)}': {one_line(added.path)}\n")
    return added.name


def _show_how(kb: KnowledgeBase, names: Sequence[str]) -> None:
    """An example that finds something: a word of the collection's own titles."""
    for document in kb.documents(names[0] if names else ""):
        word = _WORD.search(document.title)
        if word is not None:
            write(f"Search it now:  qmd search {word[0]}\n")
            return
    write('Search it now:  qmd search "some words"\n')

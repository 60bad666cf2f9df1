"""``qmd posts`` lists, reads and searches an archive of posts, with the texts of the MCP tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from qmd.cli.command import Group
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.cli.terminal import note, write_json, write_text
from qmd.errors import DatabaseBusyError, QmdError, ReadOnlyError
from qmd.files.posts import folder
from qmd.operations.definition import Replied
from qmd.operations.posts import PostAnswer, error_in_words
from qmd.operations.texts import MCP
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.operations import Operation


@click.group(
    "posts",
    cls=Group,
    operations="posts",
    examples=(
        "qmd posts authors --posts-dir ~/afdian",
        "qmd posts search 数据库 --author q9adg",
        "QMD_POSTS_DIR=~/afdian qmd posts list q9adg",
    ),
)
@setting_option("posts_dir")
def posts() -> None:
    """
    List, read and search an archive of posts: AUTHOR/ALBUM/POST.md.

    The archive becomes a collection, if it is not part of one. Its posts are found at once,
    also those that have changed since the last 'qmd index'.
    """


def run(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    with _archive() as kb:
        value = operation.run(kb, **arguments)
    assert operation.tool is not None and operation.tool.reply is not None
    text, *problems = operation.tool.reply(Replied(value, arguments), MCP).blocks
    if isinstance(value, PostAnswer) and value.matching and not value.post:
        value = {"matches": to_wire(value.matching.posts)}
    elif isinstance(value, PostAnswer):
        value = value.post
    if as_json:
        write_json(value)
    else:
        write_text(text.text if text.text.endswith("\n") else text.text + "\n")
    for problem in problems:
        note(problem.text, style="warning")


@contextmanager
def _archive() -> Iterator[KnowledgeBase]:
    """
    Open the archive of posts, and make it a collection if the database can be written.

    Raises:
        QmdError: Any error of the block too; the message is that of the MCP tools.
    """
    try:
        folder.require(session().settings.posts_dir)  # first, or an empty database is left behind
        with _opened() as kb:
            try:
                added = kb.posts.adopt()
            except (ReadOnlyError, DatabaseBusyError):
                added = None
            yield kb
    except QmdError as error:
        raise error_in_words(error) from error.__cause__
    if added is not None:  # printed last, so that an error has stderr for itself
        note(
            f"Added collection '{added.name}': {added.path}. "
            f"For 'qmd search' run: qmd index -c {added.name}"
        )


def _opened() -> KnowledgeBase:
    """Open the knowledge base for writing, or for reading if the database cannot be written."""
    try:
        return session().open(create=True)
    except ReadOnlyError:
        return session().open()

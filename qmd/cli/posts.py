"""``qmd posts`` lists, reads and searches an archive of posts, with the texts of the MCP tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import Group, QueryWord, command, json_option
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.cli.terminal import note, write_json, write_text
from qmd.errors import DatabaseBusyError, InputError, QmdError, ReadOnlyError
from qmd.files.posts import folder
from qmd.operations import posts as posts_texts
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.files.posts.archive import PostArchive
    from qmd.kb import KnowledgeBase


@click.group(
    "posts",
    cls=Group,
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


@command("authors", examples=("qmd posts authors", "qmd posts authors --json"))
@setting_option("posts_dir")
@json_option
def authors(as_json: bool) -> None:
    """List the authors: the folders of the archive."""

    with _archive() as archive:
        names = archive.authors()
    if as_json:
        write_json(names)
    else:
        _print(posts_texts.authors(names))


@command("list", pages=True, examples=("qmd posts list q9adg", "qmd posts list q9adg --json"))
@click.argument("author", shell_complete=complete.authors)
@setting_option("posts_dir")
@json_option
def list_(author: str, as_json: bool) -> None:
    """List an author's posts: motions, then each album."""

    with _archive() as archive:
        listed = archive.posts(author)
    if as_json:
        write_json(listed)
    else:
        _print(posts_texts.posts(listed))
    _warn(posts_texts.unread(listed))


@command(
    "read",
    pages=True,
    examples=(
        "qmd posts read q9adg/motions/2020-12-16_18_04_49_论温柔.md",
        "qmd posts read --author q9adg --title 温柔",
    ),
)
@click.argument("path", required=False)
@click.option(
    "--author", help="Whose post, together with --title.", shell_complete=complete.authors
)
@click.option("--title", help="A part of its title, whatever the letter case.")
@setting_option("posts_dir")
@json_option
def read(path: str | None, author: str | None, title: str | None, as_json: bool) -> None:
    """
    Print a post, by its path or by author and title.

    PATH is as 'qmd posts list' shows it. Where several titles fit, they are listed.
    """

    with _archive() as archive:
        if not path:
            path = _only_match(archive, author, title, as_json)
        post = archive.read(path) if path else None
    if post is None:
        return
    if as_json:
        write_json(post)
    else:
        _print(posts_texts.post(post))


def _only_match(
    archive: PostArchive, author: str | None, title: str | None, as_json: bool
) -> str | None:
    """
    The path of the one post with this author and title.

    If there are several or none, print them as a list and return None.

    Raises:
        InputError: The author or the title is missing.
    """
    if not author or not title:
        raise InputError(
            posts_texts.NO_POST,
            hint="qmd posts read PATH, or --author and --title.",
        )
    matching = archive.matching(author, title)
    _warn(posts_texts.unread(matching))
    if len(matching.posts) == 1:
        return matching.posts[0].path
    if as_json:
        write_json({"matches": to_wire(matching.posts)})
    else:
        _print(posts_texts.matches(title, matching.posts))
    return None


@command(
    "search",
    pages=True,
    examples=(
        "qmd posts search 温柔",
        "qmd posts search 'C++' --author q9adg -n 100",
        "qmd posts search 温柔 --posts-dir ~/afdian --json",
    ),
)
@click.argument("query", nargs=-1, required=True, type=QueryWord())
@click.option("--author", help="Only the posts of this author.", shell_complete=complete.authors)
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N",
    help="Show at most N hits.",
)  # fmt: skip
@setting_option("posts_dir")
@json_option
def search(query: tuple[str, ...], author: str | None, limit: int, as_json: bool) -> None:
    """
    Find the lines that hold a text, whatever its letter case.

    A hit is a line; hits are ordered by author, path and line. To search the archive by words
    and by meaning, use 'qmd search' and 'qmd query'.
    """

    with _archive() as archive:
        result = archive.search(" ".join(query), author=author, limit=limit)
    if as_json:
        write_json(result)
    else:
        _print(posts_texts.hits(result))
    _warn(posts_texts.unread(result))


@contextmanager
def _archive() -> Iterator[PostArchive]:
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
            yield kb.posts
    except QmdError as error:
        raise posts_texts.error_in_words(error) from error.__cause__
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


def _print(text: str) -> None:
    write_text(text if text.endswith("\n") else text + "\n")


def _warn(problem: str | None) -> None:
    if problem is not None:
        note(problem, style="warning")


for _command in (authors, list_, read, search):
    posts.add_command(_command)

"""``qmd server push`` sends folders of this machine to the server of a team."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from qmd import errors, ingest
from qmd.cli import complete
from qmd.cli.command import command, json_option, mask_option
from qmd.cli.indexing import refuse_missing
from qmd.cli.render_reports import SHOWN
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, progress_bar, readable_size, write, write_json
from qmd.transfer import push as transfer
from qmd.transfer.push import FolderPush, PushSummary
from qmd.values import Collection
from qmd.values.text import counted


@command(
    "push",
    examples=(
        "qmd server push https://qmd.example.org ~/notes --name alice",
        "qmd server push https://qmd.example.org ~/notes --watch",
        "qmd server push https://qmd.example.org      # all collections of this machine",
    ),
)
@click.argument("url")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", shell_complete=complete.folders)
@click.option("--name", help="The name of the collection there.  [default: the directory's]")
@mask_option("Which files to push")
@click.option("--ignore", multiple=True, metavar="GLOB", help="Leave these out; repeatable.")
@click.option("--owner", help="Whose folders these are, for people.  [default: USER@HOST]")
@click.option("--watch", is_flag=True, help="Go on, and push each change, until Ctrl-C.")
@click.option("--checksum", is_flag=True, help="Compare contents, not sizes and times.")
@click.option(
    "--allow-plain-http", is_flag=True, help="Send the token unencrypted to another machine."
)
@json_option
def push(
    url: str,
    folders: tuple[str, ...],
    name: str | None,
    mask: str,
    ignore: tuple[str, ...],
    owner: str | None,
    watch: bool,
    checksum: bool,
    allow_plain_http: bool,
    as_json: bool,
) -> None:
    """
    Send folders to a server, which makes a collection of each.

    Only what differs is sent: a file's hash first, its content if the server lacks it. Files that
    are gone here are deleted there. The server must have been started with --push-folder; its
    token is read from QMD_PUSH_TOKEN. An interrupted push goes on where it was.
    """
    token = os.environ.get("QMD_PUSH_TOKEN", "").strip() or None
    server = transfer.PushServer(url, token, allow_plain_http=allow_plain_http)
    owner = owner or _this_person()
    chosen = _given_folders(folders, name, mask, ignore, owner) or _collections(name, owner)
    session().interrupted = "What was sent is stored; the next 'qmd server push' goes on."
    pushes = [transfer.FolderPush(server, each, checksum=checksum) for each in chosen]
    pushed, problems = _push_all(pushes)
    summaries = [summary for _, summary in pushed]
    _show(summaries, as_json=as_json)
    if problems and not (watch and pushed):
        others = "The other folders were pushed." if pushed else "No folder was pushed."
        raise errors.QmdError("\n".join(problems), hint=others)
    if watch:
        for problem in problems:
            note(problem, style="warning")
        _follow([each for each, _ in pushed], summaries, as_json=as_json)
    if any(summary.refused for summary in summaries):
        raise click.exceptions.Exit(1)


def _show(summaries: Sequence[PushSummary], *, as_json: bool) -> None:
    if as_json:
        write_json(summaries)
        return
    for summary in summaries:
        _render(summary)


def _push_all(
    pushes: Sequence[FolderPush],
) -> tuple[list[tuple[FolderPush, PushSummary]], list[str]]:
    """
    Push each folder; one that the server refuses, or that cannot be read, stops no other.

    Returns:
        What was pushed; and a sentence on each folder that was not.

    Raises:
        QmdError: The only folder was not pushed, or the server takes nothing.
    """
    pushed: list[tuple[FolderPush, PushSummary]] = []
    problems = []
    with progress_bar() as progress:
        for each in pushes:
            try:
                pushed.append((each, each.run(progress or (lambda tick: None))))
            except (
                errors.ConflictError,
                errors.InputError,
                errors.NotFoundError,
                errors.WritesForbiddenError,
            ) as error:
                if len(pushes) == 1:
                    raise
                problems.append(f"{each.folder.name}: {error} {error.hint or ''}".rstrip())
    return pushed, problems


def _given_folders(
    folders: Sequence[str], name: str | None, mask: str, ignore: tuple[str, ...], owner: str
) -> list[Collection]:
    if name is not None and len(folders) > 1:
        raise errors.InputError("--name is for one folder.", hint="Push the folders one by one.")
    chosen = []
    for folder in folders:
        refuse_missing(folder)
        checked = ingest.new_collection.new_collection(folder, name, mask, ignore)
        chosen.append(Collection(0, *checked, mask, ignore, 0, None, None, owner=owner))
    return chosen


def _collections(name: str | None, owner: str) -> list[Collection]:
    """The collections of this machine, with their names, masks and ignore patterns."""
    if name is not None:
        raise errors.InputError(
            "--name needs a folder.", hint="qmd server push URL FOLDER --name NAME"
        )
    with session().open() as kb:
        collections = kb.collections()
    if not collections:
        raise errors.InputError(
            "There is no collection here.", hint="Name a folder: qmd server push URL FOLDER"
        )
    ordered = sorted(collections, key=lambda each: each.name)
    return [replace(each, owner=owner) for each in ordered]


def _this_person() -> str:
    try:
        person = getpass.getuser()
    except (OSError, KeyError):
        person = "somebody"
    return f"{person}@{socket.gethostname()}"


def _follow(
    pushes: Sequence[FolderPush], summaries: Sequence[PushSummary], *, as_json: bool
) -> None:
    """Push each change. Which files are not pushed is said again where it differs from before."""
    reported = {summary.collection: summary.refused for summary in summaries}
    if not as_json:
        note("Watching for changes. Ctrl-C ends.")
    for summary in transfer.follow(pushes, lambda text: note(text, style="warning")):
        is_news = summary.refused != reported[summary.collection]
        reported[summary.collection] = summary.refused
        if summary.stored or summary.deleted or is_news:
            if as_json:
                write_json(summary)
            else:
                _render(summary, with_refused=is_news)
            sys.stdout.flush()


def _render(summary: PushSummary, *, with_refused: bool = True) -> None:
    write(
        f"Pushed '{one_line(summary.collection)}': {summary.stored} stored"
        f" · {summary.deleted} deleted · {summary.unchanged} unchanged"
        f" · {readable_size(summary.sent_bytes)} sent\n"
    )
    not_pushed = summary.refused if with_refused else []
    for refused in not_pushed[:SHOWN]:
        note(f"  not pushed: {one_line(refused.path)}: {one_line(refused.reason)}", style="warning")
    if len(not_pushed) > SHOWN:
        note(f"  and {counted(len(not_pushed) - SHOWN, 'file')} more; --json lists all")
    if summary.waiting:
        note(f"  {counted(len(summary.waiting), 'file')} changed meanwhile; push again")

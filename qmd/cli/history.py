"""``qmd history``, ``undo`` and ``restore``: what tools write, and taking it back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option, setting_option
from qmd.cli.listings import limit_options
from qmd.cli.runs import index_and_report
from qmd.cli.session import session
from qmd.cli.terminal import fitting_path, note, one_line, write, write_json, write_text
from qmd.operations import edit_texts
from qmd.system import clock
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd import KnowledgeBase
    from qmd.values import Collection, Revision
    from qmd.values.writing import FileChange


@command(
    "history",
    pages=True,
    examples=("qmd history", "qmd history notes/plan.md", "qmd history plan --show 418209"),
)
@click.argument("path", required=False, shell_complete=complete.documents_or_files)
@click.option("--show", type=int, metavar="N", help="Print what the file held before change N.")
@limit_options()
@json_option
def history(path: str | None, show: int | None, limit: int | None, as_json: bool) -> None:
    """
    List what qmd's tools changed last, or what they did to one file.

    The newest comes first: number, time, tool and session, and the files; of one file also how many
    bytes it had before. 'qmd undo' and 'qmd restore' take the numbers. PATH is a path on the disk,
    collection/path or qmd://…; the file itself may be gone. Any other name that 'qmd get' takes
    will do, too. For each file, 20 changes and 10 MiB are kept.
    """
    if path is None:
        if show is not None:
            raise click.UsageError("--show needs PATH.")
        _list_changes(None, limit, as_json=as_json)
        return
    with session().open() as kb:
        if show is not None:
            _show(kb.revisions.content(path, show))
            return
        revisions = kb.revisions.history(path)[:limit]
    if as_json:
        write_json(revisions)
    elif not revisions:
        note(f"No earlier content of {path} is kept.")
    for revision in () if as_json else revisions:
        done = f"{edit_texts.DONE[revision.action]:<7}  {revision.bytes:>9,} bytes"
        write_text(f"{_head(revision)}  {done}  {_origin(revision)}".rstrip() + "\n")
        if revision.moved_from is not None:
            write_text(f"{'':8}from {revision.moved_from}\n")


@command(
    "restore",
    examples=("qmd restore notes/plan.md", "qmd restore notes/plan.md --change 418209"),
    destroys=True,
)
@click.argument("path", shell_complete=complete.documents_or_files)
@click.option(
    "--change", type=int, metavar="N", help="As before this change; its number is in 'qmd history'."
)
@click.option("--revision", type=int, hidden=True)  # its name before changes had the one number
@setting_option("write_roots")
@json_option
def restore(path: str, change: int | None, revision: int | None, as_json: bool) -> None:
    """
    Restore the content of a file that a tool replaced.

    Without --change it is the newest earlier content that differs from the file. The present
    content is kept in turn, so restoring twice undoes it.
    """
    with session().open(write=True) as kb:
        restored = kb.revisions.restore(path, revision if change is None else change)
    if as_json:
        write_json({**to_wire(restored.revision), "path": str(restored.path)})
        return
    number = restored.revision.number
    write(f"Restored {one_line(str(restored.path))} as it was before change {number}\n")
    if restored.problem is not None:
        note(f"Not searchable yet: {restored.problem}", style="warning")


@command(
    "undo",
    examples=("qmd undo", "qmd undo --redo", "qmd undo 418209", "qmd undo --session cli-1a2b3c4d"),
    destroys=True,
)
@click.argument("change", type=int, required=False)
@click.option("--redo", is_flag=True, help="Take the last undo back; again for the one before.")
@click.option("--session", "session_name", metavar="ID", help="Undo all changes of this session.")
@click.option("--list", "is_list", is_flag=True, help="List the latest changes, as 'qmd history'.")
@setting_option("write_roots")
@json_option
@click.pass_context
def undo(
    ctx: click.Context,
    change: int | None,
    redo: bool,
    session_name: str | None,
    is_list: bool,
    as_json: bool,
) -> None:
    """
    Undo the last change that a tool made, or change number CHANGE.

    A collection that was removed since comes back, with its contexts. What was undone already is
    passed over: each further 'qmd undo' goes back by one change, as in an editor, and --redo goes
    forward until something else is changed. Files get their earlier content, place or existence
    again. A change is left alone if one of its files was changed since; what was changed before it
    can be undone by its number.
    """
    if (change is not None) + (session_name is not None) + redo > 1:
        raise click.UsageError("CHANGE, --redo and --session exclude each other.")
    if is_list:
        _list_changes(session_name, 20, as_json=as_json)
        return
    with session().open(write=True) as kb:
        if redo:
            reply = kb.undo.redo_last()
        elif change is not None:
            reply = kb.undo.undo_change(change)
        elif session_name is not None:
            reply = kb.undo.undo_session(session_name)
        else:
            last = kb.undo.next_change()
            restored = kb.restore_removed(since=last.created if last else None)
            if restored is not None:
                _report_restored(kb, restored, as_json=as_json)
                return
            reply = kb.undo.undo_last()
    if as_json:
        write_json(reply)
    else:
        by_number = "qmd undo {number} ('qmd undo --list' lists all)"
        text = edit_texts.undone(reply, redo="qmd undo --redo", by_number=by_number)
        write_text(text + "\n")
    if reply.refused:
        ctx.exit(1)


def _report_restored(kb: KnowledgeBase, collection: Collection, *, as_json: bool) -> None:
    """Index a collection that an undo has added again, and say so."""
    if as_json:
        kb.index([collection.name])
        write_json({"restored": collection.name, "path": collection.path})
        return
    write(f"Undid: removed the collection '{one_line(collection.name)}'; its contexts are back\n")
    index_and_report(kb, [collection.name])


def _list_changes(session_name: str | None, limit: int | None, *, as_json: bool) -> None:
    with session().open() as kb:
        changes = kb.undo.changes(session_name, limit=limit)
        if as_json:
            write_json(changes)
        elif not changes:
            note("No changes are kept.")
        for change in () if as_json else changes:
            state = ""
            if change.redone_by is not None:
                state = f"  redone by {change.redone_by}"
            elif change.undone_by is not None:
                state = f"  undone by {change.undone_by}"
            if not change.is_kept:
                state += "  too old to be undone"
            write_text(f"{_head(change)}  {change.tool}  {change.session}{state}\n")
            for revision in change.files:
                done = f"{'':8}{edit_texts.DONE[revision.action]:<7}  "
                old = revision.moved_from
                if old is not None:
                    write_text(f"{done}{one_line(kb.file_name(Path(old)))}\n")
                    done = f"{'':14}to  "
                name = one_line(kb.file_name(Path(revision.path)))
                write(f"{done}{fitting_path(name, len(done))}\n")


def _head(row: Revision | FileChange) -> str:
    """The number and the local time of a change."""
    return f"{row.number:>6}  {clock.minute(row.created)}"


def _origin(revision: Revision) -> str:
    return f"{revision.tool}  {revision.session}".rstrip()


def _show(content: bytes) -> None:
    if sys.stdout.isatty():
        write_text(content.decode(errors="replace"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)

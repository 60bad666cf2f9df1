"""``qmd history``, ``undo``, ``rm``, ``mv`` and so on: what tools write, and taking it back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.cli.terminal import note, one_line, write, write_json, write_text
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.values import Revision


@command(
    "history",
    pages=True,
    examples=("qmd history notes/plan.md", "qmd history ~/notes/plan.md --show 12"),
)
@click.argument("path", shell_complete=complete.documents_or_files)
@click.option("--show", type=int, metavar="N", help="Print what revision N holds.")
@json_option
def history(path: str, show: int | None, as_json: bool) -> None:
    """
    List what qmd's tools did to a file, and what it held before.

    The newest comes first: number, time, bytes before, what was done, by which tool in which
    session. PATH is a path on the disk, collection/path or qmd://…; the file itself may be gone.
    Any other name that 'qmd get' takes will do, too. For each file, 20 revisions and 10 MiB are
    kept.
    """
    with session().open() as kb:
        if show is not None:
            _show(kb.revisions.content(path, show))
            return
        revisions = kb.revisions.history(path)
    if as_json:
        write_json(revisions)
    elif not revisions:
        note(f"No earlier content of {path} is kept.")
    else:
        rows = (
            f"{revision.number:>6}  {revision.created[:19]}Z  {revision.bytes:>10,}"
            f"  {revision.action:<6}  {one_line(_origin(revision))}\n"
            for revision in revisions
        )
        write("".join(rows))


@command(
    "restore",
    examples=("qmd restore notes/plan.md", "qmd restore notes/plan.md --revision 12"),
    destroys=True,
)
@click.argument("path", shell_complete=complete.documents_or_files)
@click.option(
    "--revision", type=int, metavar="N", help="The revision's number, from 'qmd history'."
)
@setting_option("write_roots")
@json_option
def restore(path: str, revision: int | None, as_json: bool) -> None:
    """
    Restore the content of a file that a tool replaced.

    Without --revision it is the newest revision that differs from the file. The present content
    becomes a revision, so restoring twice undoes it.
    """
    with session().open(write=True) as kb:
        restored = kb.revisions.restore(path, revision)
    if as_json:
        write_json({**to_wire(restored.revision), "path": str(restored.path)})
        return
    write(f"Restored {one_line(str(restored.path))} as of revision {restored.revision.number}\n")
    if restored.problem is not None:
        note(f"Not searchable yet: {restored.problem}", style="warning")


@command(
    "undo",
    examples=("qmd undo", "qmd undo --list", "qmd undo 12", "qmd undo --session cli-1a2b3c4d"),
    destroys=True,
)
@click.argument("change", type=int, required=False)
@click.option("--session", "session_name", metavar="ID", help="Undo all changes of this session.")
@click.option("--list", "is_list", is_flag=True, help="List the latest changes instead.")
@setting_option("write_roots")
@json_option
@click.pass_context
def undo(
    ctx: click.Context,
    change: int | None,
    session_name: str | None,
    is_list: bool,
    as_json: bool,
) -> None:
    """
    Undo the last write of qmd's tools, or change number CHANGE.

    Files get their earlier content, place or existence again. A change is left alone if one of its
    files was changed since. Undoing an undo restores what it undid.
    """
    if change is not None and session_name is not None:
        raise click.UsageError("CHANGE and --session exclude each other.")
    if is_list:
        _list_changes(session_name, as_json=as_json)
        return
    with session().open(write=True) as kb:
        if change is not None:
            reply = kb.undo.undo_change(change)
        elif session_name is not None:
            reply = kb.undo.undo_session(session_name)
        else:
            reply = kb.undo.undo_last()
    if as_json:
        write_json(reply)
    else:
        from qmd.tools import edit_texts

        write_text(edit_texts.undone(reply) + "\n")
    if reply.refused:
        ctx.exit(1)


def _list_changes(session_name: str | None, *, as_json: bool) -> None:
    with session().open() as kb:
        changes = kb.undo.changes(session_name)
    if as_json:
        write_json(changes)
    elif not changes:
        note("No changes are kept.")
    for change in () if as_json else changes:
        state = "" if change.undone_by is None else f"  undone by {change.undone_by}"
        if not change.is_kept:
            state += "  too old to be undone"
        write(
            f"{change.number:>6}  {change.created[:19]}Z  {one_line(change.tool)}"
            f"  {one_line(change.session)}{state}\n"
        )
        for revision in change.files:
            origin = "" if revision.moved_from is None else f"{revision.moved_from} → "
            write(f"        {revision.action:<6}  {one_line(origin + revision.path)}\n")


@command("rm", examples=("qmd rm notes/old.md", "qmd rm 'Old plan' && qmd undo"), destroys=True)
@click.argument("name", shell_complete=complete.documents)
@click.option("--preview", is_flag=True, help="Show what would go, and delete nothing.")
@setting_option("write_roots")
@json_option
def rm(name: str, preview: bool, as_json: bool) -> None:
    """
    Delete a note; its content stays in the history.

    NAME is that of the note, its path or its docid. 'qmd undo' brings it back.
    """
    with session().open(write=True) as kb:
        deleted = kb.delete_note(name, preview=preview)
    if as_json:
        write_json(deleted)
        return
    from qmd.tools import edit_texts

    write_text(edit_texts.deleted(deleted) + "\n")


@command(
    "mv",
    examples=(
        "qmd mv notes/plan.md 'Plan 2026'",
        "qmd mv 'Old plan' archive/ --preview",
    ),
)
@click.argument("name", shell_complete=complete.documents)
@click.argument("new_path", shell_complete=complete.documents)
@click.option("--preview", is_flag=True, help="Show what would change, and write nothing.")
@click.option(
    "--rewrite-links/--no-rewrite-links",
    default=True,
    help="Rewrite the links that would lose the note, or only list them. Default: rewrite.",
)
@setting_option("write_roots")
@json_option
def mv(name: str, new_path: str, preview: bool, rewrite_links: bool, as_json: bool) -> None:
    """
    Move or rename a note, and rewrite the links to it.

    NAME is that of the note, its path or its docid. A NEW_PATH without / renames the note in its
    folder; another begins with a collection, or at the root of the note's collection. A folder
    keeps the name of the note. 'qmd undo' takes the move back, with all rewritten links.
    """
    with session().open(write=True) as kb:
        moved = kb.move_note(name, new_path, rewrite_links=rewrite_links, preview=preview)
    if as_json:
        write_json(moved)
        return
    from qmd.tools import edit_texts

    write_text(edit_texts.moved(moved) + "\n")


def _origin(revision: Revision) -> str:
    """The tool and the session; of a move also the earlier path."""
    moved = "" if revision.moved_from is None else f"  from {revision.moved_from}"
    return f"{revision.tool}  {revision.session}".rstrip() + moved


def _show(content: bytes) -> None:
    if sys.stdout.isatty():
        write_text(content.decode(errors="replace"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)

"""``qmd history`` and ``qmd restore`` show and bring back earlier contents of files."""

from __future__ import annotations

import sys

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.cli.terminal import note, one_line, write, write_json, write_text
from qmd.values.wire import to_wire


@command(
    "history",
    examples=("qmd history notes/plan.md", "qmd history ~/notes/plan.md --show 12"),
)
@click.argument("path")
@click.option("--show", type=int, metavar="N", help="Print what revision N holds.")
@json_option
def history(path: str, show: int | None, as_json: bool) -> None:
    """
    List what a file held before qmd's tools changed it.

    The newest comes first. PATH is a path on the disk, collection/path or qmd://…; the file
    itself may be gone. Any other name that 'qmd get' takes will do, too. For each file, 20
    revisions and 10 MiB are kept.
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
            f"  {one_line(revision.tool)}\n"
            for revision in revisions
        )
        write("".join(rows))


@command(
    "restore",
    examples=("qmd restore notes/plan.md", "qmd restore notes/plan.md --revision 12"),
)
@click.argument("path")
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


def _show(content: bytes) -> None:
    if sys.stdout.isatty():
        write_text(content.decode(errors="replace"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)

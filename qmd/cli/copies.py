"""``qmd db`` copies, replaces or moves the database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import qmd
from qmd.cli import complete
from qmd.cli.command import Group, command
from qmd.cli.commands import below
from qmd.cli.imports import render_not_taken
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import count
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, write
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.values.exports import CopyReport, ExportReport


@click.group("db", cls=Group, **below("db"), examples=("qmd db backup ~/backups/notes.sqlite",))
def db() -> None:
    """Back up, restore, rescue, clean up or move the database."""


def _render_backup(copy: dict[str, Any]) -> None:
    write(f"Wrote {one_line(copy['file'])} ({copy['bytes']:,} bytes)\n")


@command(
    "backup",
    render=_render_backup,
    examples=("qmd db backup ~/backups/notes.sqlite", "qmd db backup --force notes.bak"),
)
@click.argument("file", shell_complete=complete.files)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def backup(file: str, force: bool) -> dict[str, Any]:
    """
    Write a consistent copy of the database to a file.

    It may run at any time: servers and 'qmd index' go on writing meanwhile.
    """
    with session().open() as kb, progress_bar() as progress:
        size = kb.backup(file, force=force, progress=progress)
    return {"file": str(Path(file).expanduser().absolute()), "bytes": size}


def _render_export(report: ExportReport) -> None:
    write(f"Wrote {one_line(report.target)} ({report.bytes:,} bytes)\n")
    write(
        f"  {count(report.collections, 'collection')} · {count(report.contexts, 'context')}"
        f" · {count(report.revisions, 'revision')} · {count(report.chats, 'conversation')}"
        + (" · config.toml\n" if report.settings else "\n")
    )
    if report.damaged:
        lost = count(report.damaged, "earlier content")
        note(f"{lost} cannot be read any more.", style="warning")


@command(
    "export",
    render=_render_export,
    examples=("qmd db export ~/qmd-notes.zip", "qmd db export ~/qmd-notes"),
)
@click.argument("target", metavar="FOLDER|FILE.zip", shell_complete=complete.files)
@click.option("--force", is_flag=True, help="Replace an export that is there.")
def export(target: str, force: bool) -> ExportReport:
    """
    Write what only the database holds to a folder or an archive.

    These are collections, contexts, the history of what tools wrote with the earlier contents,
    conversations, and config.toml, as text files. 'qmd import qmd' reads them. Notes
    are files of yours, and vectors are made again; 'qmd db backup' copies the whole database.
    """
    config_file = session().settings.config_file
    settings = config_file.read_bytes() if config_file.is_file() else None
    with session().open() as kb:
        return kb.export(target, settings=settings, force=force)


def _render_copy(report: CopyReport) -> None:
    write(f"Copied to {one_line(report.target)}\n")
    write(
        f"  {count(report.collections, 'collection')} · {count(report.documents, 'document')} new,"
        f" {report.unchanged:,} unchanged · {count(report.vectors, 'vector')}\n"
        f"  {count(report.revisions, 'revision')} · {count(report.conversations, 'conversation')}\n"
    )
    render_not_taken(report.not_taken)


@command(
    "migrate-to",
    render=_render_copy,
    examples=(
        "qmd db migrate-to postgresql://qmd:secret@db.example.org/qmd",
        "qmd --db postgresql://qmd:secret@db.example.org/qmd db migrate-to notes.sqlite",
    ),
)
@click.argument("target", metavar="URL|FILE")
def migrate_to(target: str) -> CopyReport:
    """
    Copy the knowledge base into PostgreSQL, or into a file.

    Collections, contexts, documents, vectors, history and conversations are copied; this database
    stays as it is. An interrupted copy goes on where it was. Tokens and the audit log stay here.
    """
    session().interrupted = "What was copied stays; the same command goes on."
    with session().open() as kb, progress_bar() as progress:
        return kb.copy_to(target, progress=progress)


def _render_restored(restored: dict[str, str | None]) -> None:
    write(f"Restored {one_line(str(restored['database']))}\n")
    if restored["kept"] is not None:
        write(f"The old one is {one_line(restored['kept'])}\n")
    index = f"qmd index{session().database_option}"
    write(f"Run '{index}' to take in what has changed on the disk since.\n")


@command(
    "restore",
    render=_render_restored,
    examples=("qmd db restore ~/backups/notes.sqlite",),
    destroys=True,
)
@click.argument("file", shell_complete=complete.files)
def restore_db(file: str) -> dict[str, str | None]:
    """
    Put a backup in the place of the database.

    The backup is checked first. The old database is kept beside it as FILE.bak. Stop servers,
    'qmd watch' and MCP clients first: a database that a program has open is not replaced.
    """
    database = session().settings.db
    kept = qmd.KnowledgeBase.restore(database, file)
    return {"database": str(database), "kept": None if kept is None else str(kept)}


def _render_rescue(saved: dict[str, Any]) -> None:
    write(
        f"Saved {count(saved['collections'], 'collection')}, {count(saved['contexts'], 'context')},"
        f" {count(saved['revisions'], 'earlier content')} and {count(saved['vectors'], 'vector')}\n"
    )
    if saved["lost"]:
        lost = ", ".join(f"{rows:,} of {table}" for table, rows in saved["lost"].items())
        write(f"Not readable any more: {lost}\n")
    write(f"The damaged file is {one_line(str(saved['kept']))}\n")
    option = session().database_option
    write(f"Run 'qmd index{option}', then 'qmd embed{option}', to make the rest anew.\n")


@command(
    "rescue",
    render=_render_rescue,
    examples=("qmd db rescue", "qmd db rescue --db ~/notes.sqlite"),
    destroys=True,
)
def rescue() -> dict[str, Any]:
    """
    Copy what can be read of a damaged database into a new one.

    Collections, contexts, earlier contents of files ('qmd history') and vectors are copied, row
    by row; what is damaged is left out and counted. The damaged file is kept beside it as
    FILE.bak. Then 'qmd index' indexes your files again. Stop servers, 'qmd watch' and MCP
    clients first.
    """
    database = session().settings.db
    saved = qmd.KnowledgeBase.rescue(database)
    kept = None if saved.kept is None else str(saved.kept)
    return {"database": str(database), "kept": kept, **to_wire(saved)}

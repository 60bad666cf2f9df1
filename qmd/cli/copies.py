"""``qmd db`` copies, replaces or moves the database."""

from __future__ import annotations

from pathlib import Path

import click

import qmd
from qmd.cli import complete
from qmd.cli.command import Group, command, json_option
from qmd.cli.commands import below
from qmd.cli.imports import render_not_taken
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import count
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, write, write_json
from qmd.values.wire import to_wire


@click.group("db", cls=Group, **below("db"), examples=("qmd db backup ~/backups/notes.sqlite",))
def db() -> None:
    """Back up, restore, rescue, clean up or move the database."""


@command(
    "backup",
    examples=("qmd db backup ~/backups/notes.sqlite", "qmd db backup --force notes.bak"),
)
@click.argument("file", shell_complete=complete.files)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@json_option
def backup(file: str, force: bool, as_json: bool) -> None:
    """
    Write a consistent copy of the database to a file.

    It may run at any time: servers and 'qmd index' go on writing meanwhile.
    """
    with session().open() as kb, progress_bar() as progress:
        size = kb.backup(file, force=force, progress=progress)
    target = str(Path(file).expanduser().absolute())
    if as_json:
        write_json({"file": target, "bytes": size})
    else:
        write(f"Wrote {one_line(target)} ({size:,} bytes)\n")


@command("export", examples=("qmd db export ~/qmd-notes.zip", "qmd db export ~/qmd-notes"))
@click.argument("target", metavar="FOLDER|FILE.zip", shell_complete=complete.files)
@click.option("--force", is_flag=True, help="Replace an export that is there.")
@json_option
def export(target: str, force: bool, as_json: bool) -> None:
    """
    Write what only the database holds to a folder or an archive.

    These are collections, contexts, the history of what tools wrote with the earlier contents,
    conversations, and config.toml, as text files. 'qmd import qmd' reads them. Notes
    are files of yours, and vectors are made again; 'qmd db backup' copies the whole database.
    """
    config_file = session().settings.config_file
    settings = config_file.read_bytes() if config_file.is_file() else None
    with session().open() as kb:
        report = kb.export(target, settings=settings, force=force)
    if as_json:
        write_json(report)
        return
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
    "migrate-to",
    examples=(
        "qmd db migrate-to postgresql://qmd:secret@db.example.org/qmd",
        "qmd --db postgresql://qmd:secret@db.example.org/qmd db migrate-to notes.sqlite",
    ),
)
@click.argument("target", metavar="URL|FILE")
@json_option
def migrate_to(target: str, as_json: bool) -> None:
    """
    Copy the knowledge base into PostgreSQL, or into a file.

    Collections, contexts, documents, vectors, history and conversations are copied; this database
    stays as it is. An interrupted copy goes on where it was. Tokens and the audit log stay here.
    """

    session().interrupted = "What was copied stays; the same command goes on."
    with session().open() as kb, progress_bar() as progress:
        report = kb.copy_to(target, progress=progress)
    if as_json:
        write_json(report)
        return
    write(f"Copied to {one_line(report.target)}\n")
    write(
        f"  {count(report.collections, 'collection')} · {count(report.documents, 'document')} new,"
        f" {report.unchanged:,} unchanged · {count(report.vectors, 'vector')}\n"
        f"  {count(report.revisions, 'revision')} · {count(report.conversations, 'conversation')}\n"
    )
    render_not_taken(report.not_taken)


@command("restore", examples=("qmd db restore ~/backups/notes.sqlite",), destroys=True)
@click.argument("file", shell_complete=complete.files)
@json_option
def restore_db(file: str, as_json: bool) -> None:
    """
    Put a backup in the place of the database.

    The backup is checked first. The old database is kept beside it as FILE.bak. Stop servers,
    'qmd watch' and MCP clients first: a database that a program has open is not replaced.
    """
    database = session().settings.db
    kept = qmd.KnowledgeBase.restore(database, file)
    if as_json:
        write_json({"database": str(database), "kept": None if kept is None else str(kept)})
        return
    write(f"Restored {one_line(str(database))}\n")
    if kept is not None:
        write(f"The old one is {one_line(str(kept))}\n")
    index = f"qmd index{session().database_option}"
    write(f"Run '{index}' to take in what has changed on the disk since.\n")


@command("rescue", examples=("qmd db rescue", "qmd db rescue --db ~/notes.sqlite"), destroys=True)
@json_option
def rescue(as_json: bool) -> None:
    """
    Copy what can be read of a damaged database into a new one.

    Collections, contexts, earlier contents of files ('qmd history') and vectors are copied, row
    by row; what is damaged is left out and counted. The damaged file is kept beside it as
    FILE.bak. Then 'qmd index' indexes your files again. Stop servers, 'qmd watch' and MCP
    clients first.
    """
    database = session().settings.db
    saved = qmd.KnowledgeBase.rescue(database)
    if as_json:
        write_json(
            {
                "database": str(database),
                "kept": None if saved.kept is None else str(saved.kept),
                **to_wire(saved),
            }
        )
        return

    write(
        f"Saved {count(saved.collections, 'collection')}, {count(saved.contexts, 'context')},"
        f" {count(saved.revisions, 'earlier content')} and {count(saved.vectors, 'vector')}\n"
    )
    if saved.lost:
        lost = ", ".join(f"{rows:,} of {table}" for table, rows in saved.lost.items())
        write(f"Not readable any more: {lost}\n")
    write(f"The damaged file is {one_line(str(saved.kept))}\n")
    option = session().database_option
    write(f"Run 'qmd index{option}', then 'qmd embed{option}', to make the rest anew.\n")

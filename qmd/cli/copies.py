"""``qmd backup`` and ``qmd restore-db``: the database file as a whole."""

from __future__ import annotations

from pathlib import Path

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.terminal import one_line, write, write_json


@command("backup", examples=("qmd backup ~/backups/notes.sqlite", "qmd backup --force notes.bak"))
@click.argument("file")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@json_option
def backup(file: str, force: bool, as_json: bool) -> None:
    """
    Write a consistent copy of the database to a file.

    It may run at any time: servers and 'qmd index' go on writing meanwhile.
    """
    with session().open() as kb:
        size = kb.backup(file, force=force)
    where = str(Path(file).expanduser().absolute())
    if as_json:
        write_json({"file": where, "bytes": size})
    else:
        write(f"Wrote {one_line(where)} ({size:,} bytes)\n")


@command("restore-db", examples=("qmd restore-db ~/backups/notes.sqlite",))
@click.argument("file")
@json_option
def restore_db(file: str, as_json: bool) -> None:
    """
    Put a backup in the place of the database.

    The backup is checked first. The old database is kept beside it as FILE.bak. End servers,
    'qmd watch' and MCP clients before: a database that a program has open is not replaced.
    """
    from qmd.kb import KnowledgeBase

    database = session().settings.db
    kept = KnowledgeBase.restore(database, file)
    if as_json:
        write_json({"database": str(database), "kept": None if kept is None else str(kept)})
        return
    write(f"Restored {one_line(str(database))}\n")
    if kept is not None:
        write(f"The old one is {one_line(str(kept))}\n")
    write("Run 'qmd index' to take in what has changed on the disk since.\n")

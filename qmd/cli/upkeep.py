"""``qmd doctor`` and ``config`` say how things are; ``qmd db`` copies or replaces a database."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import qmd
from qmd import cli, libraries, operations
from qmd.cli import complete
from qmd.cli.command import Group, command
from qmd.cli.commands import below
from qmd.cli.formats import places
from qmd.cli.imports import render_not_taken
from qmd.cli.open import chosen_editor
from qmd.cli.render_reports import render_checks
from qmd.cli.session import session
from qmd.cli.terminal import hanging, note, one_line, progress_bar, write, write_json
from qmd.config import SETTINGS
from qmd.errors import MigrationRequiredError
from qmd.operations.definition import Replied
from qmd.system.editors import check_editor
from qmd.values.text import counted
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.operations import Operation
    from qmd.values import Check
    from qmd.values.transfer import CopyReport, ExportReport


def _is_broken(checks: Sequence[Check]) -> bool:
    return any(check.status == "error" for check in checks)


@command("doctor", render=render_checks, fails=_is_broken, examples=("qmd doctor",))
def doctor() -> list[Check]:
    """
    Check the database and its engine, the model and the editor.

    The exit code is 1 if something is broken.
    """
    with session().open() as kb, progress_bar() as progress:
        return [*kb.doctor(progress=progress), check_editor(chosen_editor())]


def plugins(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    """List the installed plugins; a person may look for one before there is a database."""
    value = operations.plugins.listed(session().settings.plugins)
    if as_json:
        write_json(to_wire(value))
        return
    view = cli.listings.ListingView(places(list, full_path=False), None)
    cli.listings.write_rows(operation.rows(value), view)
    if not value.plugins:
        note(operation.sentence(operation.when_empty, Replied(value, arguments)))


def _render_settings(shown: dict[str, Any]) -> None:
    remark = "" if Path(shown["config_file"]).exists() else " (not there)"
    write(f"# {one_line(shown['config_file'])}{remark}\n")
    for name, setting in shown["settings"].items():
        value, source = setting["value"], setting["source"]
        line = f"# {name} is not set" if value is None else f"{name} = {_as_toml(name, value)}"
        origin = "" if value is None else f" ({'the' if source == 'default' else 'from'} {source})"
        remark = hanging(one_line(f"{setting['description']}{origin}"), 4)
        write(f"{one_line(line)}\n  # {remark}\n".replace("\n    ", "\n  # "))


@command(
    "config",
    render=_render_settings,
    pages=True,
    examples=("qmd config", "QMD_DB=/tmp/try.sqlite qmd config --json"),
    extra_argument='Settings are written by hand, as in: editor = "vscode". The first line of'
    " 'qmd config' names the file.",
)
def config() -> dict[str, Any]:
    """
    Show every setting and where it came from.

    A value comes from an option, else from the environment (QMD_DB, QMD_MODEL, QMD_CACHE_DIR),
    else from the file config.toml, else from the default.
    """
    settings = session().settings
    return {
        "config_file": str(settings.config_file),
        "settings": {
            name: {
                "value": _json_value(getattr(settings, name)),
                "source": settings.sources[name],
                "env": setting.variable,
                "description": setting.description,
            }
            for name, setting in SETTINGS.items()
        },
    }


def _json_value(value: object) -> str | list[str] | None:
    """A value for JSON; no paths count as unset. A password in a URL is masked."""
    if isinstance(value, tuple):
        return [str(path) for path in value] or None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return None if value is None else re.sub(r"(\w://)[^/]*@", r"\1***@", str(value))


def _as_toml(name: str, value: str | list[str]) -> str:
    """A value as it stands in config.toml."""
    if SETTINGS[name].kind in ("switch", "seconds", "count"):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


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
    try:
        with session().open() as kb, progress_bar() as progress:
            size = kb.backup(file, force=force, progress=progress)
    except MigrationRequiredError:  # the copy is a way back to the version that made it
        size = qmd.KnowledgeBase.backup_older(session().settings.db, file, force=force)
    return {"file": str(Path(file).expanduser().absolute()), "bytes": size}


def _render_export(report: ExportReport) -> None:
    write(f"Wrote {one_line(report.target)} ({report.bytes:,} bytes)\n")
    write(
        f"  {counted(report.collections, 'collection')} · {counted(report.contexts, 'context')}"
        f" · {counted(report.revisions, 'revision')} · {counted(report.chats, 'conversation')}"
        + (" · config.toml\n" if report.settings else "\n")
    )
    if report.damaged:
        lost = counted(report.damaged, "earlier content")
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
        f"  {counted(report.collections, 'collection')}"
        f" · {counted(report.documents, 'document')} new, {report.unchanged:,} unchanged"
        f" · {counted(report.vectors, 'vector')}\n  {counted(report.revisions, 'revision')}"
        f" · {counted(report.conversations, 'conversation')}\n"
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


def _render_restored(restored: dict[str, Any]) -> None:
    write(f"Restored {one_line(str(restored['database']))}\n")
    if restored["kept"] is not None:
        kept = one_line(restored["kept"])
        write(f"The old one is {kept}\n")
        undo = f"qmd undo --db {libraries.shlex.quote(kept)}"
        write(f"Changes that qmd made since the backup can be undone only there: {undo}\n")
    if restored["tokens"]:
        names = one_line(", ".join(restored["tokens"]))
        note(
            f"Valid are the tokens of the backup, those that were revoked since, too: {names}."
            " Revoke one with 'qmd server token revoke NAME'.",
            style="warning",
        )
    index = f"qmd index{session().database_option}"
    if restored["older"]:
        write(f"It is of an earlier version, which can use it; '{index}' brings it up to date.\n")
        return
    write(f"Run '{index}' to take in what has changed on the disk since.\n")


@command(
    "restore",
    render=_render_restored,
    examples=("qmd db restore ~/backups/notes.sqlite",),
    destroys=True,
)
@click.argument("file", shell_complete=complete.files)
def restore_db(file: str) -> dict[str, Any]:
    """
    Put a backup in the place of the database.

    The backup is checked first. The old database is kept beside it as FILE.bak. Stop servers,
    'qmd watch' and MCP clients first: a database that a program has open is not replaced.
    """
    database = session().settings.db
    kept = qmd.KnowledgeBase.restore(database, file)
    tokens, is_older = list[str](), False
    try:
        with qmd.KnowledgeBase.open(database, read_only=True) as kb:
            tokens = [token.name for token in kb.tokens()]
    except MigrationRequiredError:
        is_older = True
    return {
        "database": str(database),
        "kept": None if kept is None else str(kept),
        "tokens": tokens,
        "older": is_older,
    }


def _render_rescue(saved: dict[str, Any]) -> None:
    write(
        f"Saved {counted(saved['collections'], 'collection')},"
        f" {counted(saved['contexts'], 'context')},"
        f" {counted(saved['revisions'], 'earlier content')}"
        f" and {counted(saved['vectors'], 'vector')}\n"
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

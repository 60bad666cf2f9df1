"""``qmd setup`` and ``qmd mcp install`` add qmd to the configuration of AI clients."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, paint, use_color, write, write_json
from qmd.errors import ConflictError, InputError, QmdError
from qmd.system import installation, running

if TYPE_CHECKING:
    from qmd.clients.install import SettingsChange
    from qmd.clients.table import Client, Entry

#: The ids of `qmd.clients.table`; a test compares them. "cherry-studio" has no file.
CLIENT_IDS = (
    "claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "zed", "codex", "gemini",
    "cherry-studio",
)  # fmt: skip


@command("setup", examples=("qmd setup", "qmd setup --json"))
@json_option
def setup(as_json: bool) -> None:
    """
    Find the AI clients of this machine, and add qmd to them.

    On a terminal each client that is installed and does not have qmd yet is asked about, with
    the change as a diff. Elsewhere the clients are listed, and nothing is changed.
    """
    from qmd.clients import install
    from qmd.clients.table import CLIENTS

    home = Path.home()
    rows = []
    for client in CLIENTS:
        try:
            has_qmd: bool | None = install.entry(client, home, "qmd") is not None
        except InputError as error:
            has_qmd = None
            note(f"qmd: {error.with_hint}", style="warning")
        rows.append((client, client.is_installed(home), has_qmd))
    if as_json:
        write_json(
            [
                {"client": client.id, "name": client.name, "file": str(client.file(home)),
                 "installed": is_installed, "has_qmd": has_qmd}
                for client, is_installed, has_qmd in rows
            ]
        )  # fmt: skip
        return
    for client, is_installed, has_qmd in rows:
        state = "has qmd" if has_qmd else "not found" if not is_installed else "without qmd"
        write(f"{client.id:<15}  {state:<11}  {one_line(str(client.file(home)))}\n")
    missing = [client for client, is_there, has_qmd in rows if is_there and has_qmd is False]
    if not missing:
        write("\nqmd doctor tries the entries.\n")
    elif not (sys.stdin.isatty() and sys.stdout.isatty()):
        write(f"\nAdd qmd to one:  qmd mcp install {missing[0].id}\n")
    else:
        entry = _program_entry_args()
        for client in missing:
            write("\n")
            _add(client, home, "qmd", client.program_entry(*entry), asks=True)


@command(
    "install",
    examples=(
        "qmd mcp install claude-code",
        "qmd mcp install cursor --http",
        "qmd mcp install zed --print",
        "qmd mcp install vscode --undo",
    ),
)
@click.argument("client_id", type=click.Choice(CLIENT_IDS), metavar="CLIENT")
@click.option("--name", default="qmd", show_default=True, help="The name of the entry.")
@click.option(
    "--http",
    "over_http",
    is_flag=True,
    help="Name the address of the server that runs; else the client starts qmd.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the entry; change nothing.")
@click.option("--dry-run", is_flag=True, help="Show the change; change nothing.")
@click.option("--undo", is_flag=True, help="Take the entry out again.")
@click.option("--yes", is_flag=True, help="Do not ask.")  # fmt: skip
def install_(
    client_id: str,
    name: str,
    over_http: bool,
    only_print: bool,
    dry_run: bool,
    undo: bool,
    yes: bool,
) -> None:
    """
    Add qmd to an AI client's configuration.

    CLIENT is one of claude-desktop, claude-code, cursor, vscode, windsurf, zed, codex, gemini
    and cherry-studio. The entry is tried first: what it names must answer as qmd. You see the
    change as a diff and are asked; comments, order and layout of the file stay, and the earlier
    file is kept beside it as FILE.before-qmd.
    """
    from qmd.clients.table import CLIENTS

    home = Path.home()
    client = next((each for each in CLIENTS if each.id == client_id), None)
    if client is None or only_print:
        _print_entry(client, name, over_http)
        return
    if undo:
        _take_out(client, home, name, asks=not yes, dry_run=dry_run)
        return
    entry = _address_entry(client) if over_http else client.program_entry(*_program_entry_args())
    _add(client, home, name, entry, asks=not yes, dry_run=dry_run)


def _program_entry_args() -> tuple[str, list[str]]:
    """
    The program and the arguments of an entry, by full paths.

    Raises:
        InputError: qmd runs from a cache, where it will not stay.
    """
    if installation.current().manager == "uvx":
        raise InputError(
            "This qmd runs from the cache of uvx, where it will not stay.",
            hint="Install it where it stays, as the README says, and run this again.",
        )
    program, *first = installation.program()
    settings = session().settings
    database = [] if settings.sources["db"] == "default" else ["--db", str(settings.db)]
    return program, [*first, *database, "mcp"]


def _address_entry(client: Client) -> Entry:
    server = running.find(session().settings.db)
    if server is None:
        raise InputError(
            "No server of this database runs.", hint="Start one: qmd up, or qmd service install"
        )
    try:
        return client.address_entry(f"{server.url}/mcp", server.token)
    except ValueError as error:
        raise InputError(f"{error}.", hint="Leave out --http: it starts qmd itself.") from error


def _print_entry(client: Client | None, name: str, over_http: bool) -> None:
    from qmd.clients import toml_text
    from qmd.clients.table import BY_HAND, CLIENTS

    shape = client or next(each for each in CLIENTS if each.id == "cursor")
    entry = _address_entry(shape) if over_http else shape.program_entry(*_program_entry_args())
    if client is None:
        note(f"{', '.join(BY_HAND.values())}: import this as JSON in Settings, MCP servers.")
    if shape.format == "toml":
        write(toml_text.with_member("", (shape.key, name), entry))
    else:
        write(json.dumps({shape.key: {name: entry}}, ensure_ascii=False, indent=2) + "\n")


def _add(
    client: Client, home: Path, name: str, entry: Entry, *, asks: bool, dry_run: bool = False
) -> None:
    """
    Add an entry that was tried.

    Raises:
        InputError: The file cannot be changed.
        QmdError: What the entry names does not answer.
    """
    from qmd.clients import install
    from qmd.system.handshake import HandshakeError, over_http, over_stdio

    change = install.plan(client, home, name, entry)
    if not change.diff():
        write(f"{client.name} has this entry already: {one_line(str(change.file))}\n")
        return
    command = entry.get("command")
    try:
        if isinstance(command, str):
            args = entry["args"]
            assert isinstance(args, list)
            shown = shlex.join([command, *args])
            info = over_stdio([command, *args])
        else:
            server = running.find(session().settings.db)
            assert server is not None
            shown = f"{server.url}/mcp"
            headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
            info = over_http(shown, headers)
    except HandshakeError as error:
        raise QmdError(f"'{one_line(shown)}' {error}.", hint="qmd doctor says more.") from error
    if not _agreed(change, f"Add qmd to {client.name}?", asks=asks, dry_run=dry_run):
        return
    install.make(change)
    kept = f"; the earlier file: {change.backup.name}" if change.backup.exists() else ""
    write(f"Added: {one_line(str(change.file))}{kept}\n")
    write(f"Tried: {one_line(shown)} answers as {one_line(info.name)} {one_line(info.version)}\n")
    write(f"Restart {client.name} to use it.  Undo: qmd mcp install {client.id} --undo\n")


def _take_out(client: Client, home: Path, name: str, *, asks: bool, dry_run: bool) -> None:
    from qmd.clients import install

    change = install.plan_undo(client, home, name)
    if not _agreed(change, f"Take qmd out of {client.name}?", asks=asks, dry_run=dry_run):
        return
    install.make(change)
    install.forget_backup(change)
    write(f"Taken out: {one_line(str(change.file))}\n")


def _agreed(change: SettingsChange, question: str, *, asks: bool, dry_run: bool) -> bool:
    """
    Show a change, and ask whether to make it.

    Raises:
        ConflictError: There is nobody to ask.
    """
    color = use_color(sys.stdout)
    for line in change.diff():
        style = {"+": "ok", "-": "warning"}.get(line[:1], "dim")
        write(paint(one_line(line), style, color) + "\n")
    if dry_run:
        return False
    if not asks:
        return True
    if not sys.stdin.isatty():
        raise ConflictError("Nobody can be asked here.", hint="Add --yes to make this change.")
    return click.confirm(question, default=False, err=True)

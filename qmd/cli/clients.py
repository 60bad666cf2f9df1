"""``qmd setup`` and ``qmd mcp install`` add qmd to the configuration of AI clients."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from qmd import system
from qmd.cli.command import command, json_option
from qmd.cli.daemon import environment_of_settings, typed_options
from qmd.cli.serve import mcp_options
from qmd.cli.session import session
from qmd.cli.terminal import beside, confirmed, note, one_line, paint, write, write_json
from qmd.clients import install, texts
from qmd.clients.install import BY_HAND, CLIENTS, HOOKS, Client, Entry, SettingsChange
from qmd.errors import ConflictError, InputError, QmdError
from qmd.system import installation, running
from qmd.system.user_dirs import is_missing

CLIENT_IDS = tuple(client.id for client in (*CLIENTS, *BY_HAND))


def _entry_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Clients take other signs neither in names of servers nor in those of their tools."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise click.BadParameter("take letters, digits, - and _, up to 32.", ctx, param)
    return value


@command("setup", examples=("qmd setup", "qmd setup --print", "qmd setup --json"))
@click.option("--print", "only_print", is_flag=True, help="Show all changes; change nothing.")
@json_option
def setup(only_print: bool, as_json: bool) -> None:
    """
    Find the AI clients of this machine, and add qmd to them.

    On a terminal each client that is installed and does not have qmd yet is asked about, with
    the change as a diff. Elsewhere the clients are listed, and nothing is changed. A file that
    cannot be changed is named, and the others go on.
    """
    home = Path.home()
    rows = _clients(home)
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
        state = _state(is_installed, has_qmd)
        facts = f"{client.id:<15}  {state}"
        write(beside(f"{facts:<28}", one_line(str(client.file(home))), 0) + "\n")
    missing = [client for client, is_there, has_qmd in rows if is_there and not has_qmd]
    if not any(is_there or has_qmd for _, is_there, has_qmd in rows):
        write("\nNo client is here.  An entry for one:  qmd mcp install CLIENT --print\n")
    elif not missing:
        write("\nqmd doctor tries the entries.\n")
    elif not only_print and not (sys.stdin.isatty() and sys.stdout.isatty()):
        write(f"\nAdd qmd to one:  qmd mcp install {missing[0].id}\n")
        write("See all changes: qmd setup --print\n")
    else:
        _offer(missing, home, only_print=only_print)


def _offer(clients: Sequence[Client], home: Path, *, only_print: bool) -> None:
    """Add qmd to clients, or show the changes; a file that cannot be changed stops no other."""
    program = _program_and_settings()
    refused = []
    for client in clients:
        entry = client.program_entry(*program)
        write(f"\n{client.name}\n")
        try:
            if only_print:
                _show(install.plan(client, home, "qmd", entry))
            else:
                _add(client, home, "qmd", entry, asks=True)
        except (InputError, ConflictError) as error:
            refused.append(client)
            note(f"qmd: {error}", style="warning")
            if only_print:
                write("The entry, to be added by hand:\n")
                _print_entry(client, "qmd", entry)
            else:
                note(f"hint: Add the entry by hand: qmd mcp install {client.id} --print")
    if refused:
        names = ", ".join(client.name for client in refused)
        write(f"\nNot changed: {names}\n")


def _clients(home: Path) -> list[tuple[Client, bool, bool | None]]:
    """Each client, whether it is installed, and whether it has qmd; None if nobody can tell."""
    rows = []
    for client in CLIENTS:
        try:
            has_qmd: bool | None = install.entry(client, home, "qmd") is not None
        except InputError as error:
            has_qmd = None
            note(f"qmd: {error}", style="warning")
        rows.append((client, client.is_installed(home), has_qmd))
    return rows


def _state(is_installed: bool, has_qmd: bool | None) -> str:
    """What `qmd setup` says of a client; ``has_qmd`` is None if its file cannot be read."""
    if has_qmd is None:
        return "unreadable"
    return "has qmd" if has_qmd else "without qmd" if is_installed else "not found"


@command(
    "install",
    examples=(
        "qmd mcp install claude-code",
        "qmd mcp install cursor --http",
        "qmd mcp install zed --print",
        "qmd mcp install vscode --undo",
        "qmd mcp install claude-code --hooks",
    ),
)
@click.argument("client_id", type=click.Choice(CLIENT_IDS), metavar="CLIENT")
@click.option(
    "--name", default="qmd", show_default=True, callback=_entry_name, help="The name of the entry."
)
@click.option(
    "--http",
    "over_http",
    is_flag=True,
    help="Name the address of the server that runs; else the client starts qmd.",
)
@click.option(
    "--hooks",
    is_flag=True,
    help="Make a note of each session when it ends, instead of adding tools: claude-code, codex.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the entry; change nothing.")
@click.option("--dry-run", is_flag=True, help="Show the change; change nothing.")
@click.option("--undo", is_flag=True, help="Take the entry out again.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@mcp_options
@click.pass_context
def install_(
    ctx: click.Context,
    /,
    client_id: str,
    name: str,
    over_http: bool,
    hooks: bool,
    only_print: bool,
    dry_run: bool,
    undo: bool,
    yes: bool,
    **tool_options: Any,
) -> None:
    """
    Add qmd to an AI client's configuration.

    CLIENT is one of claude-desktop, claude-code, cursor, vscode, windsurf, zed, codex, gemini
    and cherry-studio. The entry is tried first: what it names must answer as qmd. You see the
    change as a diff and are asked; comments, order and layout of the file stay, and the earlier
    file is kept beside it as FILE.before-qmd. Options of the tools, and settings given as options
    or variables, become part of the entry.
    """
    home = Path.home()
    client = next(each for each in (*CLIENTS, *BY_HAND) if each.id == client_id)
    arguments = typed_options(ctx, tool_options)
    if hooks:
        if over_http or arguments:
            raise click.UsageError("A hook takes no options of the tools, and no address.", ctx)
        _hook(client, home, asks=not yes, dry_run=dry_run or only_print, undo=undo)
        return
    if undo and client in BY_HAND:
        raise InputError(f"{client.name} keeps its entries itself: delete it in its settings.")
    if undo:
        _take_out(client, home, name, asks=not yes, dry_run=dry_run)
        return
    if not over_http:
        entry = client.program_entry(*_program_and_settings(arguments))
    elif arguments:
        raise click.UsageError(f"{arguments[0]} is for the server: start it with this option.", ctx)
    else:
        entry = _address_entry(client)
    if only_print or client in BY_HAND:
        _print_entry(client, name, entry)
    else:
        _add(client, home, name, entry, asks=not yes, dry_run=dry_run)


def _hook(client: Client, home: Path, *, asks: bool, dry_run: bool, undo: bool) -> None:
    """Have a client give each session that ends to qmd, or no more."""
    with_hooks = {each.id: each for each in HOOKS}
    if client.id not in with_hooks:
        raise InputError(
            f"{client.name} has no hooks that qmd knows.",
            hint=f"These have: {', '.join(with_hooks)}",
        )
    client = with_hooks[client.id]
    command = None
    if not undo:
        program, words, _ = _program_and_settings((), command=install.hook_command(client).split())
        command = shlex.join([program, *words])
    change = install.plan_hook(client, home, command)
    if not change.diff():
        write(f"{client.name} has this hook already: {one_line(str(change.file))}\n")
        return
    question = f"Take the hook out of {client.name}?" if undo else "Keep sessions as notes?"
    if not _agreed(change, question, asks=asks, dry_run=dry_run):
        return
    install.make(change)
    if undo:
        install.forget_backup(change)
        write(f"Taken out: {one_line(str(change.file))}\n")
        return
    write(f"Added: {one_line(str(change.file))}\n")
    if client.id == "codex":
        write("Codex asks before it runs a new hook: type /hooks in Codex, and trust it.\n")
    write(
        f"Sessions become notes when they end.  Undo: qmd mcp install {client.id} --hooks --undo\n"
    )


def _program_and_settings(
    arguments: Sequence[str] = (), *, command: Sequence[str] = ("mcp",)
) -> tuple[str, list[str], dict[str, str]]:
    """
    The program, the arguments and the variables of an entry, by full paths.

    Args:
        arguments: What comes after the command.
        command: The words of the command.

    Raises:
        InputError: qmd runs from a cache, where it will not stay.
    """
    if installation.current().manager == "uvx":
        raise InputError(
            "This qmd runs from the cache of uvx, where it will not stay.",
            hint="Install it where it stays, as the README says, and run this again.",
        )
    program, *first = installation.program()
    here = session()
    database = [] if here.settings.sources["db"] == "default" else here.database_arguments()
    words = [*first, *database, *command, *arguments]
    return program, words, environment_of_settings(here)


def _address_entry(client: Client) -> Entry:
    server = running.find(session().settings.db)
    if server is None:
        raise InputError(
            "No server of this database runs.",
            hint="Start one: qmd up, or qmd server service install",
        )
    try:
        return client.address_entry(f"{server.url}/mcp", server.token)
    except ValueError as error:
        raise InputError(f"{error}.", hint="Leave out --http: it starts qmd itself.") from error


def _print_entry(client: Client, name: str, entry: Entry) -> None:
    if client in BY_HAND:
        note(f"{client.name}: import this as JSON in Settings, MCP servers.")
    if client.format == "toml":
        write(texts.with_table("", (client.key, name), entry))
    else:
        write(json.dumps({client.key: {name: entry}}, ensure_ascii=False, indent=2) + "\n")


def _add(
    client: Client, home: Path, name: str, entry: Entry, *, asks: bool, dry_run: bool = False
) -> None:
    """
    Add an entry that was tried.

    Raises:
        InputError: The file cannot be changed.
        QmdError: What the entry names does not answer.
    """
    has_database = not is_missing(session().settings.db)
    change = install.plan(client, home, name, entry)
    if not change.diff():
        write(f"{client.name} has this entry already: {one_line(str(change.file))}\n")
        return
    command = entry.get("command")
    try:
        if isinstance(command, str):
            args, env = entry["args"], entry.get("env")
            assert isinstance(args, list)
            shown = shlex.join([command, *args])
            info = system.handshake.over_stdio(
                [command, *args], env if isinstance(env, dict) else None
            )
        else:
            server = running.find(session().settings.db)
            assert server is not None
            shown = f"{server.url}/mcp"
            headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
            info = system.handshake.over_http(shown, headers)
    except system.handshake.HandshakeError as error:
        raise QmdError(f"'{one_line(shown)}' {error}.", hint="qmd doctor says more.") from error
    if not _agreed(change, f"Add qmd to {client.name}?", asks=asks, dry_run=dry_run):
        return
    install.make(change)
    kept = f"; the earlier file: {change.backup.name}" if change.backup.exists() else ""
    write(f"Added: {one_line(str(change.file))}{kept}\n")
    write(f"Tried: {one_line(shown)} answers as {one_line(info.name)} {one_line(info.version)}\n")
    named = "" if name == "qmd" else f" --name {name}"
    write(f"Restart {client.name} to use it.  Undo: qmd mcp install {client.id}{named} --undo\n")
    if not has_database:
        note("Nothing is indexed yet: qmd up FOLDER")


def _take_out(client: Client, home: Path, name: str, *, asks: bool, dry_run: bool) -> None:
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
    _show(change)
    if dry_run:
        return False
    if not asks:
        return True
    if not sys.stdin.isatty():
        raise ConflictError("Nobody can be asked here.", hint="Add --yes to make this change.")
    return confirmed(question, default=False)


def _show(change: SettingsChange) -> None:
    """Print a change as a diff."""
    for line in change.diff():
        style = {"+": "ok", "-": "warning"}.get(line[:1], "dim")
        write(paint(one_line(line), style) + "\n")

"""``qmd server service`` has the system run the server: at login, and again when it fails."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from qmd import __version__
from qmd.cli.command import Group, json_option
from qmd.cli.daemon import environment_of_settings, refuse_second_server, typed_server
from qmd.cli.serve import USUAL, address_options, conduct_options, mcp_options
from qmd.cli.session import Session, session
from qmd.cli.terminal import note, one_line, write, write_json, write_text
from qmd.errors import InputError, NotFoundError, QmdError
from qmd.inference.llm.settings import variables_with_keys
from qmd.system import installation, running, services
from qmd.system.log_file import log_file
from qmd.system.services import Manager, Service, Step
from qmd.system.user_dirs import user_dir

MANAGERS = ("systemd", "launchd", "windows")
_START_S = 20.0
_MASK = "***"

_manager_option = click.option(
    "--manager", "manager_name", type=click.Choice(MANAGERS),
    help="What runs the service.  [default: that of this system]",
)  # fmt: skip


@click.group(
    "service",
    cls=Group,
    examples=("qmd server service install", "qmd server service status"),
)
def service() -> None:
    """
    Run the server as a service that starts at login.

    It is a systemd user unit, a launch agent of macOS or a scheduled task of Windows.
    """


@service.subcommand(
    "install",
    usual=("--dry-run", *USUAL),
    examples=(
        "qmd server service install --dry-run",
        "qmd server service install --port 9000 --read-only",
        "QMD_TOKEN=… qmd server service install --host 0.0.0.0",
    ),
)
@click.option("--dry-run", is_flag=True, help="Print what would be written and run.")
@_manager_option
@json_option
@mcp_options
@address_options
@conduct_options
@click.pass_context
def install(
    ctx: click.Context, /, dry_run: bool, manager_name: str | None, as_json: bool, **options: Any
) -> None:
    """
    Start the server now, at each login, and again when it fails.

    The options of the server that you give are kept, with full paths. Settings in QMD_* variables
    and a token are kept with them, in a file that only you can read; settings in config.toml are
    read at each start. Installing again replaces the options.
    """
    manager = _manager(manager_name)
    planned = _service(ctx, options)
    if dry_run:
        _print_plan(manager, planned, as_json=as_json)
        return
    _refuse_foreign(manager_name)
    file = manager.file(planned.name)
    if not file.exists():
        refuse_second_server(session().settings.db, "Stop it first; the service takes its place.")
    services.install(manager, planned)
    server = running.wait_for(session().settings.db, _START_S)
    url = None if server is None else server.url
    if as_json:
        write_json({"name": planned.name, "file": str(file), "url": url})
        return
    write(f"Wrote {one_line(str(file))}\n")
    if url is None:
        note(f"No answer within {_START_S:g} s: see 'qmd server service status' and"
             " 'qmd server logs'.",
             style="warning")  # fmt: skip
    else:
        write(f"The service {planned.name} serves {url} (MCP: {url}/mcp); its page: qmd open\n")
    if remark := manager.remark():
        note(remark)
    if keys := variables_with_keys(os.environ):
        note(f"Not kept: the key in {', '.join(keys)}. A service takes it from llm_key_file.")


@service.subcommand("uninstall", examples=("qmd server service uninstall",), destroys=True)
@click.option("--dry-run", is_flag=True, help="Print what would be run and deleted.")
@_manager_option
@json_option
def uninstall(dry_run: bool, manager_name: str | None, as_json: bool) -> None:
    """Stop the service and remove it; the database and the log stay."""
    manager, name = _manager(manager_name), service_name(session())
    file = manager.file(name)
    if dry_run:
        before, after = manager.uninstall_steps(name), manager.steps_after_uninstall()
        if as_json:
            steps = [list(step.command) for step in (*before, *after)]
            write_json({"delete": str(file), "run": steps})
            return
        lines = [*map(_shown, before), f"# delete {file}", *map(_shown, after)]
        write("".join(f"{one_line(line)}\n" for line in lines))
        return
    _refuse_foreign(manager_name)
    if not file.exists():
        raise NotFoundError(
            f"There is no service {name}: {file} is missing.",
            hint="'qmd server service status' says what there is.",
        )
    services.uninstall(manager, name)
    if as_json:
        write_json({"name": name, "deleted": str(file)})
    else:
        write(f"Removed the service {name}: {one_line(str(file))}\n")


def _render_status(state: dict[str, Any]) -> None:
    place = "not installed: qmd server service install"
    write(f"service: {state['name']}, {one_line(state['file']) if state['file'] else place}\n")
    write(f"{state['manager']}: {'runs' if state['active'] else 'does not run'}\n")
    if state["url"] is None:
        write("server:  none answers; what was logged: qmd server logs\n")
        return
    write(f"server:  {state['url']}, process {state['pid']}, version {state['version']}\n")
    if state["active"] and state["version"] != __version__:
        note(f"This is version {__version__}: 'qmd server service install' restarts the service.")


@service.subcommand(
    "status",
    render=_render_status,
    fails=lambda state: not state["active"],
    examples=("qmd server service status", "qmd server service status --json"),
)
def status() -> dict[str, Any]:
    """
    Say whether the service of this database is installed and runs.

    The exit code is 1 if it does not run.
    """
    manager, name = _manager(None), service_name(session())
    file = manager.file(name)
    is_installed = file.exists()
    server = running.answering(session().settings.db)
    return {
        "name": name,
        "manager": manager.name,
        "file": str(file) if is_installed else None,
        "active": is_installed and services.is_active(manager, name),
        "url": None if server is None else server.url,
        "pid": None if server is None else server.pid,
        "version": None if server is None else server.version,
    }


def service_name(here: Session) -> str:
    """``qmd`` for the default database, else a name made from the database's."""
    database = here.settings.db
    if not isinstance(database, Path):
        name = re.sub(r"[^A-Za-z0-9]+", "-", database.name).strip("-") or "database"
        return f"qmd-{name}-{hashlib.sha256(str(database).encode()).hexdigest()[:4]}"
    if database == user_dir("data") / "index.sqlite":
        return "qmd"
    stem = re.sub(r"[^A-Za-z0-9]+", "-", database.stem).strip("-") or "database"
    if database.parent == user_dir("data"):
        return f"qmd-{stem}"
    return f"qmd-{stem}-{hashlib.sha256(os.fsencode(database)).hexdigest()[:4]}"


def _manager(name: str | None) -> Manager:
    return services.MANAGERS[name or services.manager_of_system()]()


def _refuse_foreign(name: str | None) -> None:
    if name not in (None, services.manager_of_system()):
        raise InputError(f"This system has no {name}.", hint="Add --dry-run to see the file.")


def _service(ctx: click.Context, options: Collection[str]) -> Service:
    """
    The service that serves the database of this session.

    Args:
        options: The names of the server's options.

    Raises:
        QmdError: qmd would not be there at the next login.
    """
    if installation.current().manager == "uvx":
        raise QmdError(
            "uvx keeps this qmd only for a while, so no service can start it.",
            hint="Install it for good first, as the README says.",
        )
    here = session()
    arguments, secret = typed_server(ctx, options)
    name = service_name(here)
    database = here.settings.db
    return Service(
        name=name,
        description=f"qmd: search in {database}",
        command=(
            *installation.program(), *here.database_arguments(), *arguments,
        ),
        environment=environment_of_settings(here) | secret,
        folder=log_file().parent,
        log=log_file().with_name(f"{name}.err"),
    )  # fmt: skip


def _print_plan(manager: Manager, planned: Service, *, as_json: bool) -> None:
    """Print the file and the commands, without the token."""
    content = manager.content(_masked(planned))
    text = content.decode("utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8")
    steps = manager.install_steps(planned.name)
    file = manager.file(planned.name)
    if as_json:
        write_json(
            {
                "name": planned.name,
                "manager": manager.name,
                "write": str(file),
                "content": text,
                "run": [list(step.command) for step in steps],
            }
        )
        return
    write(f"# {one_line(str(file))}\n\n")
    write_text(text.replace("\r\n", "\n"))
    write("\n" + "".join(f"{one_line(_shown(each))}\n" for each in steps))


def _masked(planned: Service) -> Service:
    environment = dict(planned.environment)
    if "QMD_TOKEN" in environment:
        environment["QMD_TOKEN"] = _MASK
    return dataclasses.replace(planned, environment=environment)


def _shown(step: Step) -> str:
    """A step as a person types it."""
    line = subprocess.list2cmdline if sys.platform == "win32" else shlex.join
    return line(step.command) + ("  # may fail" if step.may_fail else "")

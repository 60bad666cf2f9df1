"""``qmd mcp --daemon`` starts a server in the background, and ``qmd server stop`` ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.terminal import one_line, write, write_json
from qmd.errors import ConflictError, NotFoundError, QmdError
from qmd.system import running
from qmd.values.location import ServerDatabase

if TYPE_CHECKING:
    from qmd.system.running import RunningServer
    from qmd.values.location import DatabaseLocation

_START_S = 30.0  # the longest wait until a new server answers
_END_S = 20.0  # a server answers the requests in progress first
_STEP_S = 0.05


def start_in_background(ctx: click.Context) -> None:
    """
    Start a server with the options of ``ctx``, and return when it answers.

    Raises:
        ConflictError: A server of this database runs already.
        QmdError: The server ended, or does not answer in time.
    """
    from qmd.cli.typed_options import typed_server_options, typed_setting_options
    from qmd.system import installation

    here = session()
    database = here.settings.db
    server = _find(database)
    if server is not None:
        raise ConflictError(
            f"A server of this database runs already: {server.url} (process {server.pid}).",
            hint="'qmd server stop' ends it.",
        )
    environment: dict[str, str] = dict(os.environ)
    arguments = [*typed_server_options(ctx), *typed_setting_options(here)]
    token = ctx.params["token"]
    if token == "auto":  # noqa: S105 - the option's word for a generated token
        arguments += ["--token", "auto"]
    elif token:
        environment["QMD_TOKEN"] = token  # everybody may read the arguments of a process
    chosen: list[str] = []
    if isinstance(database, ServerDatabase):
        environment["QMD_DB"] = database.url  # it may hold a password
    else:
        chosen = ["--db", str(database)]
    program = [*installation.program(), *chosen, "server", "--transport", "http"]
    process = subprocess.Popen(
        [*program, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # the log file has it, too
        **_detached(),
    )
    server = _wait_for(process, database)
    write(f"Serving at {server.url} (MCP: {server.url}/mcp), process {server.pid}\n")
    write("Its log: qmd server logs    End it: qmd server stop\n")


def _detached() -> dict[str, Any]:
    """The options of a process that outlives the terminal."""
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS
        return {"creationflags": flags}
    return {"start_new_session": True}


def _wait_for(process: subprocess.Popen[bytes], database: DatabaseLocation) -> RunningServer:
    end = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < end:
        server = _find(database)
        if server is not None:
            return server
        time.sleep(_STEP_S)
    if process.poll() is None:
        process.terminate()
        raise QmdError(
            f"The server did not answer within {_START_S:g} s.", hint="See 'qmd server logs'."
        )
    raise QmdError(
        _last_error(process.pid) or "The server cannot start.",
        hint="For more run it in the foreground: qmd server --transport http",
    )


def _last_error(pid: int) -> str:
    """What a process wrote into the log last; "" for nothing."""
    from qmd.system.log_file import LogReader, log_file

    reader = LogReader(log_file())
    message = ""
    for line in reader.lines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a record that was cut
        if isinstance(entry, dict) and entry.get("pid") == pid:
            message = str(entry.get("message", ""))
    reader.close()
    return message


def _find(database: DatabaseLocation) -> RunningServer | None:
    server = running.find(database)
    return server if server is not None and running.answers(server) else None


@command("stop", examples=("qmd server stop", "qmd --index work server stop"))
@json_option
def stop(as_json: bool) -> None:
    """
    End the server of this database, however it was started.

    The requests in progress are answered first. MCP clients that start 'qmd mcp' themselves have
    servers of their own, which end with them.
    """
    database = session().settings.db
    server = _find(database)
    if server is None:
        raise NotFoundError(
            f"No server over HTTP runs for {database}.",
            hint="'qmd mcp --http --daemon' starts one. For another database, add --index or --db.",
        )
    if not running.wrote_its_entry(database, server):
        raise QmdError(
            f"Process {server.pid} did not write {running.file_for(database)}; it was not ended.",
            hint="If it is a server of qmd, end it where it was started.",
        )
    try:
        os.kill(server.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError as error:
        raise QmdError(
            f"The server at {server.url} belongs to another user.", hint="That user can end it."
        ) from error
    end = time.monotonic() + _END_S
    while running.is_alive(server.pid) and time.monotonic() < end:
        time.sleep(_STEP_S)
    if running.is_alive(server.pid):
        raise QmdError(
            f"Process {server.pid} has not ended within {_END_S:g} s.",
            hint="See 'qmd server logs'.",
        )
    if as_json:
        write_json({"stopped": server.url, "pid": server.pid, "command": server.command})
    else:
        what = f"'{server.command}', process" if server.command else "process"
        write(one_line(f"Stopped the server at {server.url} ({what} {server.pid})") + "\n")

"""Starts a server in the background with the options that were typed, ends it, shows its log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from qmd.cli.command import command
from qmd.cli.session import Session, lasting_name, session
from qmd.cli.terminal import escape_json, note, one_line, paint, write
from qmd.config import SETTINGS, Setting
from qmd.errors import ConfigError, ConflictError, NotFoundError, QmdError
from qmd.system import clock, installation, running
from qmd.system.log_file import LogReader, files_of_log, log_file
from qmd.system.temporary import temporary_beside
from qmd.system.user_dirs import moved_directories
from qmd.values.location import DatabaseLocation, ServerDatabase

_START_S = 30.0  # the longest wait until a new server answers
_END_S = 20.0  # a server answers the requests in progress first
_STEP_S = 0.05


def start_in_background(ctx: click.Context) -> None:
    """
    Start a server with the options of ``ctx``, and return when it answers.

    Raises:
        ConflictError: A server of this database runs already.
        ConfigError: Its address cannot be kept beside the database.
        QmdError: The server ended, or does not answer in time.
    """
    database = session().settings.db
    refuse_second_server(database, "'qmd server stop' ends it.")
    _require_room_for(running.file_for(database))
    arguments, secret = typed_server(ctx)
    environment = os.environ | secret
    chosen: list[str] = []
    if isinstance(database, ServerDatabase):
        environment["QMD_DB"] = database.url  # it may hold a password
    else:
        chosen = ["--db", str(database)]
    process = subprocess.Popen(
        [*installation.program(), *chosen, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # the log file has it, too
        **_detached(),
    )
    server = running.wait_for(database, _START_S, goes_on=lambda: process.poll() is None)
    if server is None:
        raise _failure(process)
    write(f"Serving at {server.url} (MCP: {server.url}/mcp), process {server.pid}\n")
    write("Its log: qmd server logs    End it: qmd server stop\n")


def refuse_second_server(database: DatabaseLocation, hint: str) -> None:
    """Raises ConflictError: A server of this database runs already."""
    server = running.answering(database)
    if server is not None:
        raise ConflictError(
            f"A server of this database runs already: {server.url} (process {server.pid}).",
            hint=hint,
        )


def _require_room_for(file: Path) -> None:
    """Raises ConfigError: The address of a server cannot be written into a file."""
    # A server there would serve, and neither this command nor 'qmd server stop' could find it.
    directory = file.parent
    if not directory.exists():
        return  # it will be made
    foreground = "Run it in the foreground (qmd server --transport http), which needs no such file"
    if not os.access(directory, os.W_OK):
        raise ConfigError(
            f"The address of the server cannot be kept beside the database: {directory} is not "
            "writable.",
            hint=f"{foreground}; or make the directory writable.",
        )
    trial = temporary_beside(file)
    try:
        trial.write_bytes(b" " * 4096)
    except OSError as error:
        raise ConfigError(
            f"The address of the server cannot be kept beside the database: {directory}: "
            f"{error.strerror}.",
            hint=f"{foreground}; or free some space.",
        ) from error
    finally:
        trial.unlink(missing_ok=True)


def _detached() -> dict[str, Any]:
    """The options of a process that outlives the terminal."""
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS
        return {"creationflags": flags}
    return {"start_new_session": True}


def _failure(process: subprocess.Popen[bytes]) -> QmdError:
    """Why a server that was started does not answer; it is ended, if it still runs."""
    if process.poll() is None:
        process.terminate()
        return QmdError(
            f"The server did not answer within {_START_S:g} s.", hint="See 'qmd server logs'."
        )
    return QmdError(
        _last_error(process.pid) or "The server cannot start.",
        hint="For more run it in the foreground: qmd server --transport http",
    )


def _last_error(pid: int) -> str:
    """What a process wrote into the log last; "" for nothing."""
    reader = LogReader(log_file())
    entries = [entry for line in reader.lines() if (entry := _entry(line)) and entry["pid"] == pid]
    reader.close()
    return str(entries[-1]["message"]) if entries else ""


def _render_stopped(stopped: dict[str, Any]) -> None:
    what = f"'{stopped['command']}', process" if stopped["command"] else "process"
    write(one_line(f"Stopped the server at {stopped['stopped']} ({what} {stopped['pid']})") + "\n")


@command(
    "stop",
    render=_render_stopped,
    examples=("qmd server stop", "qmd --index work server stop"),
)
def stop() -> dict[str, Any]:
    """
    End the server of this database, however it was started.

    The requests in progress are answered first. MCP clients that start 'qmd mcp' themselves have
    servers of their own, which end with them.
    """
    database = session().settings.db
    server = running.answering(database)
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
    return {"stopped": server.url, "pid": server.pid, "command": server.command}


#: What a server without a terminal sets itself: it serves HTTP and logs as text.
_FIXED = {"transport", "only_http", "daemon", "log_format", "token", "db", "index"}


def typed_server(
    ctx: click.Context, names: Collection[str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """
    The command line, without the program, of a server over HTTP with the options that were typed.

    The variables that it needs besides have its token: everybody may read the arguments of a
    process. ``names`` is as in `typed_options`.
    """
    words = ["server", "--transport", "http", *typed_options(ctx, names)]
    token = ctx.params["token"]
    if token == "auto":  # noqa: S105 - the option's word for a generated token
        return [*words, "--token", "auto"], {}
    return words, {"QMD_TOKEN": token} if token else {}


def typed_options(ctx: click.Context, names: Collection[str] | None = None) -> list[str]:
    """
    The options that were typed, as a server that starts later takes them: with full paths.

    ``names``: of those that set no setting only these; None for all.
    """
    words: list[str] = []
    for param in ctx.command.params:
        name, option = str(param.name), param.opts[-1]
        is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        is_setting = name in SETTINGS
        if not is_typed or name in _FIXED or not (is_setting or names is None or name in names):
            continue
        value = _lasting(session(), SETTINGS[name]) if is_setting else ctx.params[name]
        if value is True:
            words.append(option)
        elif isinstance(value, tuple) and param.multiple:
            words += [word for each in value for word in (option, str(each))]
        else:
            words += [option, ",".join(value) if isinstance(value, tuple) else str(value)]
    return words


def environment_of_settings(here: Session) -> dict[str, str]:
    """
    The variables from which this process took its settings and directories.

    A program that another one starts later may not have them. The full path of the database is
    left to an option.
    """
    environment = moved_directories()
    for name, setting in SETTINGS.items():
        if here.settings.sources[name] != setting.variable or name == "db":
            continue
        if setting.kind == "paths":
            environment[setting.variable] = os.pathsep.join(_lasting(here, setting))
        elif setting.is_path:
            environment[setting.variable] = _lasting(here, setting)
        else:
            environment[setting.variable] = os.environ[setting.variable]
    return environment


def _lasting(here: Session, setting: Setting) -> Any:
    """The value of a setting, with full paths. Raises InputError: A URL holds a password."""
    value = getattr(here.settings, setting.name)
    if setting.kind == "database":
        return lasting_name(value)
    if setting.is_list:
        return tuple(map(str, value))
    # Path.resolve follows links, which stay, as in the settings.
    return os.path.abspath(value) if setting.is_path else value  # noqa: PTH100


LEVELS = ("info", "warning", "error")
_STYLES = {"warning": "warning", "error": "error", "critical": "error"}
_SHOWN = {"time", "level", "logger", "message", "pid", "database", "trace"}
_PAUSE_S = 0.25


@command(
    "logs",
    examples=(
        "qmd server logs -f",
        "qmd server logs -n 1000 --level warning",
        "qmd server logs --json",
    ),
)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    metavar="N",
    help="The last N entries.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with new entries, until Ctrl-C.")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="Only entries of this level or above.",
)
@click.option("--all", "all_databases", is_flag=True, help="Those of all databases.")
@click.option("--path", "only_path", is_flag=True, help="Print the name of the file, and no more.")
@click.option("--json", "as_json", is_flag=True, help="Print each entry as a line of JSON.")
def logs(
    lines: int, follow: bool, level: str, all_databases: bool, only_path: bool, as_json: bool
) -> None:  # fmt: skip
    """
    Print what the servers of this database have logged.

    'qmd up', 'qmd server' and 'qmd mcp' write when they start and stop, warnings and errors; with
    --access-log also each request. No entry has the text of a query or a note, or a token.
    """
    path = log_file()
    if only_path:
        write(f"{one_line(str(path))}\n")
        return
    database = None if all_databases else str(session().settings.db)
    view = _View(database, LEVELS.index(level), as_json)
    session().interrupted = "The log goes on."
    last = deque[str](maxlen=min(lines, sys.maxsize))
    reader = LogReader(path)
    for each in files_of_log(path)[:-1]:
        last.extend(view.texts(LogReader(each).lines()))
    last.extend(view.texts(reader.lines()))
    for text in last:
        write(text)
    if not last and not follow:
        where = "of this database (all: --all)" if database and path.exists() else f"at {path}"
        note(f"No entry {where}.")
    while follow:
        sys.stdout.flush()
        time.sleep(_PAUSE_S)
        for text in view.texts(reader.lines()):
            write(text)


class _View:
    """
    Which entries are printed, and how.

    Args:
        database: Only those of this one; None for all.
        level: The position in `LEVELS` of the lowest level.
    """

    def __init__(self, database: str | None, level: int, as_json: bool) -> None:
        self._database = database
        self._level = level
        self._as_json = as_json

    def texts(self, lines: Iterator[str]) -> Iterator[str]:
        """The entries to print; a line that is no entry is left out."""
        for line in lines:
            entry = _entry(line)
            if entry is None or not self._is_shown(entry):
                continue
            if self._as_json:
                yield escape_json(json.dumps(entry, ensure_ascii=False)) + "\n"
            else:
                yield self._text(entry)

    def _is_shown(self, entry: dict[str, Any]) -> bool:
        level = str(entry["level"])
        position = LEVELS.index(level) if level in LEVELS else len(LEVELS)
        return position >= self._level and self._database in (None, entry.get("database"))

    def _text(self, entry: dict[str, Any]) -> str:
        level = str(entry["level"])
        style = _STYLES.get(level)
        marked = level if style is None else paint(level, style)
        time_and_pid = paint(f"{_local(entry['time'])} {entry.get('pid', '')}", "dim")
        fields = "".join(f" {name}={value}" for name, value in entry.items() if name not in _SHOWN)
        text = f"{time_and_pid} {marked} {one_line(str(entry['message']) + fields)}\n"
        trace = entry.get("trace")
        if isinstance(trace, list):
            text += "".join(f"    {one_line(str(each))}\n" for each in trace)
        return text


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    has_all = isinstance(entry, dict) and {"time", "level", "message"} <= entry.keys()
    return entry if has_all else None


def _local(at: object) -> str:
    try:
        return clock.parse(str(at)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return one_line(str(at))

"""
Find the server that runs for a database, and send requests to it.

The server writes the file ``<database>.server.json``, with mode 0600 because it has the token. The
command line and other processes read it to reach that server. The file is a hint and no lock: a
killed server leaves it behind, which shows by the process id or by a missing answer. A file that
another user may have written is ignored, because it could direct questions to a server of that
user.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from qmd import system
from qmd.system.user_dirs import file_beside

if TYPE_CHECKING:
    from qmd.values.location import DatabaseLocation

SUFFIX = ".server.json"

#: The clients that a server answers: those with the token, those of the same user, or all local.
Audience = Literal["token", "user", "everyone"]

_MAX_BYTES = 65536
_MAX_REPLY_BYTES = 256 << 20  # documents may be large
_CONNECT_S = 1.0  # a server on this machine accepts a connection at once
_HEALTH_S = 5.0  # the server may be busy
_STEP_S = 0.05  # between two looks


@dataclass(frozen=True, slots=True)
class RunningServer:
    """
    A server that was running when it wrote the file.

    Args:
        url: Without a slash at the end.
        started: When the process started, in clock ticks since the machine started; None if the
            system does not say.
        command: What was typed to start it, such as ``qmd up``; "" from an earlier version.
    """

    url: str
    pid: int
    token: str | None = field(repr=False)
    version: str
    guard: Audience = "everyone"
    started: int | None = field(default=None, compare=False)
    command: str = field(default="", compare=False)


def file_for(database: DatabaseLocation) -> Path:
    """The file that names the server of this database on this machine."""
    return file_beside(database, SUFFIX)


def find(database: DatabaseLocation) -> RunningServer | None:
    """The server of this database, if the process exists. This sends no request to the server."""
    server = _read(file_for(database))
    if server is None or not is_alive(server.pid):
        return None
    # By now another program may have the process id, and another user the port.
    return None if server.started not in (None, _start_ticks(server.pid)) else server


def announce(database: DatabaseLocation, server: RunningServer) -> bool:
    """Write the file. Keep it and return False if another server wrote it and still answers."""
    other = find(database)
    if other is not None and other.pid != server.pid and answers(other):
        return False
    entry = {**asdict(server), "started": _start_ticks(server.pid)}
    with system.temporary.private_file(file_for(database)) as file:  # no reader sees half of it
        file.write(json.dumps(entry).encode())
    return True


def withdraw(database: DatabaseLocation, pid: int) -> None:
    """Remove the file, if the process ``pid`` wrote it."""
    server = _read(file_for(database))
    if server is not None and server.pid == pid:
        file_for(database).unlink(missing_ok=True)


def call(
    server: RunningServer, path: str, body: object, *, timeout_s: float
) -> tuple[int, Any, str]:
    """
    POST JSON to the server, or GET if there is none.

    Returns the status, the JSON of the reply, and the code of the error; "" if it names none.

    Raises:
        OSError: No server answers there, or not in time.
        ValueError: The reply is not that of a qmd server.
    """
    return _request(server, path, None if body is None else json.dumps(body).encode(), timeout_s)


def answers(server: RunningServer) -> bool:
    """
    Whether a qmd server answers, healthy or not.

    The process id alone does not show that, because another program may have it by now.
    """
    try:
        _, reply, _ = _request(server, "/health", None, _HEALTH_S)
    except (OSError, ValueError):
        return False
    return isinstance(reply, dict) and "status" in reply


def answering(database: DatabaseLocation) -> RunningServer | None:
    """The server of this database, if it answers."""
    server = find(database)
    return server if server is not None and answers(server) else None


def wait_for(
    database: DatabaseLocation, within_s: float, *, goes_on: Callable[[], bool] = lambda: True
) -> RunningServer | None:
    """
    The server of this database as soon as it answers; None if none does within this time.

    ``goes_on``: whether to wait any longer.
    """
    end = time.monotonic() + within_s
    while goes_on() and time.monotonic() < end:
        if server := answering(database):
            return server
        time.sleep(_STEP_S)
    return None


def _request(
    server: RunningServer, path: str, body: bytes | None, timeout_s: float
) -> tuple[int, Any, str]:
    # Imported late: most commands find no server, and http.client takes 10 ms.
    headers = {} if body is None else {"Content-Type": "application/json"}
    if server.token is not None:
        headers["Authorization"] = f"Bearer {server.token}"
    try:
        with system.http_client.request(
            server.url + path,
            limit=system.http_client.TimeLimit(timeout_s, timeout_s),
            body=body,
            headers=headers,
            connect_s=_CONNECT_S,
            use_proxy=False,
        ) as reply:
            value = json.loads(reply.read(_MAX_REPLY_BYTES))
            return reply.status, value, reply.headers.get("qmd-error", "")
    except RecursionError as error:  # brackets by the thousand
        raise ValueError(f"Not an answer of qmd: {error}") from error
    except system.http_client.TimeLimitError as error:
        raise TimeoutError(f"No answer from {server.url} within {timeout_s:g} s") from error
    except (system.http_client.NotHttpError, system.http_client.UnreadableReplyError) as error:
        raise ValueError(f"Not an answer of qmd: {error}") from error
    except system.http_client.HttpError as error:
        raise ConnectionError(f"No answer from {server.url}: {error}") from error


def is_alive(pid: int) -> bool:
    """Whether there is a process with this id."""
    if pid <= 0:
        return False
    if sys.platform == "win32":  # os.kill would end the process
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x1000, False, pid)
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process belongs to another user
        return True
    return True


def wrote_its_entry(database: DatabaseLocation, server: RunningServer) -> bool:
    """
    Whether the process of a server is the one that wrote the file, as far as the system says.

    Whoever can write the file could name a process of somebody else in it, or one of another
    machine, if the file was copied from there.
    """
    if sys.platform != "linux":
        return True
    try:
        writer = file_for(database).stat(follow_symlinks=False).st_uid
        owner = Path(f"/proc/{server.pid}").stat().st_uid
    except OSError:
        return False
    return server.started is not None and writer == owner


def this_process() -> str:
    """A name of this process that no other process of this machine had or will have."""
    return f"{os.getpid()}.{_start_ticks(os.getpid()) or 0}"


def runs(process: str) -> bool:
    """Whether a process that `this_process` named is still there."""
    number, _, started = process.partition(".")
    if not number.isdecimal() or not is_alive(int(number)):
        return False
    return started in ("", "0", str(_start_ticks(int(number)) or 0))


def _start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (proc_pid_stat(5), field 22)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
        return int(status.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _read(path: Path) -> RunningServer | None:
    try:
        entry = json.loads(_content(path))
        url, pid, token, version = (entry[name] for name in ("url", "pid", "token", "version"))
        guard = entry.get(
            "guard", "everyone" if token is None else "token"
        )  # version 1.0.0 wrote none
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(url, str) or type(pid) is not int or not isinstance(version, str):
        return None
    if not url.startswith("http://") or not (token is None or isinstance(token, str)):
        return None
    started = entry.get("started")
    if guard not in get_args(Audience) or not (started is None or type(started) is int):
        return None
    command = entry.get("command")
    command = command if isinstance(command, str) else ""
    return RunningServer(url, pid, token, version, guard, started, command)


def _content(path: Path) -> bytes:
    """Read the file. Raises OSError, also if another user may have written the file."""
    # Follow no link, and do not wait for the writer of a pipe.
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(f"not a regular file: {path}")
        if sys.platform != "win32":
            # Root may work on the database of another user, who could change it anyway.
            database = Path(str(path).removesuffix(SUFFIX))
            trusted = {os.geteuid(), 0, database.stat().st_uid if database.exists() else 0}
            if status.st_uid not in trusted or status.st_mode & 0o022:
                raise PermissionError(f"another user may have written it: {path}")
        return file.read(_MAX_BYTES)

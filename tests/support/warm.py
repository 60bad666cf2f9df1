"""
The command ``qmd``, or code of a test, as a fork of a process that has imported ``qmd``.

A server starts with a second of CPU, nearly all of it for imports, and the tests start hundreds.
What starts here is a process like any other, with streams, an environment and signals of its own.
Tests marked ``cold`` start the command itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import inspect
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NoReturn

import coverage

import qmd
from qmd.__main__ import run
from qmd.system import telemetry
from qmd.tools import toolsets
from tests.support.new_database import new_databases

#: The commands of which there are forks.
QMD = ([sys.executable, "-m", "qmd"], [str(Path(sys.executable).with_name("qmd"))])
#: What comes before code; arguments may follow it.
CODE = [sys.executable, "-c"]
#: Variables that change nothing once Python has started; with any other the command is started.
_HARMLESS = {"PYTHONUTF8", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
REPOSITORY = Path(__file__).parents[2]
_MOST_BYTES = 100_000
WAIT_S = 60
"""For a process on a busy machine; nothing ever waits for it to pass."""


class Process:
    """What the tests use of `subprocess.Popen`, for a fork of the warm process."""

    def __init__(
        self, args: Sequence[str], pid: int, end: int, pipes: Sequence[int | None], *, text: bool
    ) -> None:
        streams: list[IO[Any] | None] = [
            None if pipe is None else os.fdopen(pipe, *((mode,) if text else (f"{mode}b", buffer)))
            for pipe, mode, buffer in zip(pipes, "wrr", (0, -1, -1), strict=True)
        ]
        self.args = args
        self.pid = pid
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self._end = open(end, "rb")  # noqa: SIM115

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self._end], [], [], 0)[0]:
            with self._end:
                self.returncode = int(self._end.read())
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._end], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and is about to say so
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, data: Any = None, *, timeout: float | None = None) -> tuple[Any, Any]:
        """All that it writes to its pipes until it ends, given ``data`` to read."""
        with self, ThreadPoolExecutor(3) as streams:
            if self.stdin is not None:
                streams.submit(self._feed, data)
            said = [
                None if stream is None or stream.closed else streams.submit(stream.read)
                for stream in (self.stdout, self.stderr)
            ]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            out, err = (each and each.result() for each in said)
        return out, err

    def _feed(self, data: Any) -> None:
        assert self.stdin is not None
        with contextlib.suppress(BrokenPipeError), self.stdin:
            if data:
                self.stdin.write(data)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


class WarmProcess:
    """One for each process of pytest; it ends with it. `is_on`: see the marker ``cold``."""

    def __init__(self) -> None:
        self.is_on = True
        self._channel: socket.socket | None = None
        self._lock = threading.Lock()

    def popen(
        self,
        command: Sequence[str],
        *,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        start_new_session: bool = False,
        text: bool = False,
    ) -> subprocess.Popen[Any] | Process:
        """As `subprocess.Popen`; a fork where the command is ``qmd`` or code, on Linux."""
        environment = dict(os.environ if env is None else env)
        words = next((len(each) for each in (*QMD, CODE) if list(command[: len(each)]) == each), 0)
        is_harmless = _HARMLESS.issuperset(name for name in environment if name[:6] == "PYTHON")
        if not (self.is_on and words and is_harmless and sys.platform == "linux"):
            return subprocess.Popen(
                command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, cwd=cwd,
                start_new_session=start_new_session, text=text,
            )  # fmt: skip
        ours: list[int | None] = []
        theirs: list[int] = []
        for number, stream in enumerate((stdin, stdout, stderr)):
            if stream == subprocess.PIPE:
                read, write = os.pipe()
                ours.append(read if number else write)
                theirs.append(write if number else read)
                continue
            ours.append(None)
            if stream == subprocess.DEVNULL:
                theirs.append(os.open(os.devnull, os.O_RDWR))
            else:
                shared = number if stream is None else stream
                theirs.append(os.dup(shared if isinstance(shared, int) else shared.fileno()))
        end, tell = os.pipe()
        request = {
            "args": command[words:],
            "is_code": list(command[:words]) == CODE,
            "env": environment,
            "cwd": str(cwd or Path.cwd()),
            "start_new_session": start_new_session,
            "databases": new_databases.directory if new_databases.is_on else "",
        }
        with self._lock:
            channel = self._started()
            socket.send_fds(channel, [json.dumps(request).encode()], [*theirs, tell])
            pid = int(channel.recv(100))
        for descriptor in (*theirs, tell):
            os.close(descriptor)
        return Process(command, pid, end, ours, text=text)

    def run(
        self, command: Sequence[str], *, data: Any = None, timeout: float = WAIT_S, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """What a process writes that reads ``data``; ``options`` as of `popen`."""
        pipe = subprocess.PIPE
        process = self.popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options)
        try:
            out, err = process.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(command, process.wait(), out, err)

    def close(self) -> None:
        """End it."""
        if self._channel is not None:
            self._channel.close()
            self._process.wait(60)
            self._channel = None

    def _started(self) -> socket.socket:
        if self._channel is None:
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            environment = {**os.environ, "PYTHONUTF8": "1"}
            environment.pop("COVERAGE_PROCESS_CONFIG", None)
            with theirs:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        f"from tests.support import warm; warm.serve({theirs.fileno()})",
                    ],
                    cwd=REPOSITORY,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
        return self._channel


def import_all() -> None:
    """All modules of qmd, besides those that do something, or need what is not installed here."""
    for module in pkgutil.walk_packages(qmd.__path__, "qmd."):
        if module.name not in ("qmd.__main__", "qmd.llm_plugin"):
            importlib.import_module(module.name)


def serve(number: int) -> None:
    """The warm process: a fork for each request until nobody can send one."""
    import_all()
    importlib.import_module("anyio._backends._asyncio")  # which anyio imports for its first loop
    toolsets.select()  # their schemas are made once
    inspect.stack()  # coverage asks for it when it begins, and then it looks at all modules
    gc.freeze()
    # The descriptor of each process: its number, and the pipe that waits for its exit code.
    running: dict[int, tuple[int, int]] = {}
    with socket.socket(fileno=number) as channel:
        ready = select.poll()
        ready.register(channel, select.POLLIN)
        while True:
            for descriptor, _ in ready.poll():
                if descriptor in running:
                    ready.unregister(descriptor)
                    _tell_end(*running.pop(descriptor))
                    os.close(descriptor)
                    continue
                data, descriptors, _, _ = socket.recv_fds(channel, _MOST_BYTES, 4)
                if not data:
                    return
                *streams, tell = descriptors
                pid = os.fork()
                if pid == 0:
                    _become(json.loads(data), streams)
                channel.send(b"%d" % pid)
                for stream in streams:
                    os.close(stream)
                process = os.pidfd_open(pid)
                running[process] = pid, tell
                ready.register(process, select.POLLIN)


def _tell_end(pid: int, tell: int) -> None:
    """Write the exit code to the pipe, if anybody still reads it."""
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError), open(tell, "wb") as end:
        end.write(b"%d" % os.waitstatus_to_exitcode(status))


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(streams) + 100)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    if request["start_new_session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    telemetry.switch_off()  # as when qmd is imported
    os.chdir(request["cwd"])
    sys.argv = ["qmd", *request["args"]]
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        coverage.process_startup()
    if request["databases"]:
        new_databases.start(Path(request["databases"]))
    try:
        if request["is_code"]:
            _run_code(*request["args"])
        run()  # ends the process
    finally:
        os._exit(1)


def _run_code(code: str, *args: str) -> NoReturn:
    """As ``python -c`` does, to the end of the process."""
    sys.argv = ["-c", *args]
    main = sys.modules["__main__"] = ModuleType("__main__")
    status: Any = 0
    try:
        exec(compile(code, "<string>", "exec"), vars(main))
    except SystemExit as error:
        status = error.code or 0
    except BaseException:  # noqa: BLE001 - as Python itself
        traceback.print_exc()
        status = 1
    if not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


warm = WarmProcess()

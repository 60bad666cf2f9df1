"""
exiftool, kept running as one process that answers one request after the other.

It reads its arguments line by line, so a line break in one would begin the next. Nothing that a
photo or a client contains is sent as it is: values are HTML character references (which exiftool
decodes), so they consist of letters, digits, ``&``, ``#`` and ``;``; it gets copies of photos, with
names that we choose.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from qmd.errors import ExifToolError

HINT = (
    "Install exiftool: apt-get install libimage-exiftool-perl (Debian, Ubuntu), "
    "brew install exiftool (macOS), winget install OliverBetz.ExifTool (Windows); "
    "or name it in QMD_EXIFTOOL."
)
TIMEOUT_S = 5.0
_MAX_OUTPUT = 64 * 1024 * 1024

# exiftool goes on waiting when its input ends. This shell script notices when we are killed
# (`read` returns), and then kills exiftool and whatever a script in its place has started.
_GUARD = 'read -r line; kill -9 "-$1" 2>/dev/null; rm -f "$2"/*; rmdir "$2"'


def escape(value: str) -> str:
    """A value as an argument, which holds nothing but letters, digits and ``&#;``."""
    return "".join(
        char if char.isascii() and char.isalnum() else f"&#{ord(char)};" for char in value
    )


class ExifTool:
    """
    One exiftool process, started on the first request and again after it died or was killed.

    Thread-safe: one request at a time, the others wait.
    """

    def __init__(self, command: str | Path | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        """
        Args:
            command: Where exiftool is; None for the one on PATH.
            timeout_s: For one photo, from the first request to the last.
        """
        self._command = None if command is None else str(command)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._process: _ExifToolProcess | None = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """
        The process for the requests of one photo; they have ``timeout_s`` together.

        Raises:
            ExifToolError: It is not installed, died, or was not in time (and then is killed).
        """
        with self._lock:
            try:
                yield Turn(self._running(), time.monotonic() + self._timeout_s)
            except BaseException as error:
                # The rest of this answer must not be taken for the next one.
                if not isinstance(error, ExifToolError) or error.cause in ("ended", "timeout"):
                    self._stop()
                raise
            finally:
                if self._process is not None:
                    self._process.tidy()

    def version(self) -> str:
        """The program's version. Raises ExifToolError: It is not installed or does not answer."""
        with self.turn() as turn:
            return turn.version()

    def close(self) -> None:
        """End the process. May be called twice; the next request starts another."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _running(self) -> _ExifToolProcess:
        if self._process is not None and not self._process.is_running():
            self._stop()
        if self._process is None:
            self._process = _ExifToolProcess(self._program())
        return self._process

    def _program(self) -> str:
        """Raises ExifToolError: There is none."""
        program = shutil.which("exiftool" if self._command is None else self._command)
        if program is None:
            what = "exiftool is not installed"
            if self._command is not None:
                what = f"there is no program {self._command} (QMD_EXIFTOOL)"
            raise ExifToolError("missing", what, hint=HINT)
        return program


class Turn:
    """Requests for one photo. Files are in a directory of exiftool's own, and go with the turn."""

    def __init__(self, process: _ExifToolProcess, deadline: float) -> None:
        self._process = process
        self._deadline = deadline
        self.directory = process.directory

    def version(self) -> str:
        out, _ = self._process.ask(["-ver"], self._deadline)
        return out.decode("ascii", "replace").strip()

    def put(self, name: str, data: bytes) -> None:
        """
        Give exiftool a file.

        Args:
            name: One in which it can misread nothing: no line break, no ``%``, no blank in front.
                Its suffix says the format.

        Raises:
            ExifToolError: It cannot be made.
        """
        begun = time.monotonic()
        try:
            (self.directory / name).write_bytes(data)
        except OSError as error:
            reason = f"no temporary file can be made: {error.strerror or error}"
            raise ExifToolError("refused", reason) from error
        self._deadline += time.monotonic() - begun  # it is exiftool's time, not the disk's

    def get(self, name: str) -> bytes:
        """A file that exiftool has written. Raises ExifToolError: It cannot be read."""
        try:
            return (self.directory / name).read_bytes()
        except OSError as error:
            reason = f"the changed copy cannot be read: {error.strerror or error}"
            raise ExifToolError("refused", reason) from error

    def read(self, name: str, tags: Sequence[str]) -> bytes:
        """
        Tags of a photo as exiftool's RDF/XML.

        Raises:
            ExifToolError: It cannot be read.
        """
        out, problems = self._process.ask(["-X", "-a", *tags, name], self._deadline)
        if b"<rdf:Description" not in out:
            raise ExifToolError("refused", _reason(problems) or "exiftool gave no metadata")
        return out

    def write(self, name: str, arguments: Sequence[str], new: str) -> None:
        """
        Write a changed copy of a photo.

        Args:
            arguments: Assignments like ``-XMP-dc:Title=`` with an `escape`-d value after.
            new: The name of the copy, which does not exist yet.

        Raises:
            ExifToolError: There is no such copy, or not a whole one.
        """
        _, problems = self._process.ask(["-E", *arguments, "-o", new, name], self._deadline)
        copy = self.directory / new
        if "Error" in problems or not copy.exists():
            copy.unlink(missing_ok=True)
            raise ExifToolError("refused", _reason(problems) or "exiftool wrote no file")


class _ExifToolProcess:
    """The pipes of one exiftool, threads that empty them, and the directory that it works in."""

    def __init__(self, command: str) -> None:
        try:
            self.directory = Path(tempfile.mkdtemp(prefix="qmd-exiftool-"))
        except OSError as error:
            reason = f"no temporary directory can be made: {error.strerror or error}"
            raise ExifToolError("refused", reason) from error
        # -config "": the user's configuration file is a program that would run here.
        arguments = ["-config", "", "-stay_open", "True", "-@", "-", "-common_args"]
        arguments += ["-charset", "UTF8", "-charset", "filename=UTF8"]
        try:
            self._child = subprocess.Popen(
                [Path(command).absolute(), *arguments],
                cwd=self.directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # a group of its own, which no Ctrl-C at a terminal ends
                # What the photo hides must not be readable for a moment.
                umask=-1 if sys.platform == "win32" else 0o077,
            )
        except OSError as error:
            self.directory.rmdir()
            reason = f"{command} does not start: {error.strerror or error}"
            raise ExifToolError("missing", reason, hint=HINT) from error
        self._guard: subprocess.Popen[bytes] | None = None
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                self._guard = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD, "sh", str(self._child.pid), str(self.directory)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        assert self._child.stdout is not None and self._child.stderr is not None
        self._out = _Pipe(self._child.stdout)
        self._err = _Pipe(self._child.stderr)

    def is_running(self) -> bool:
        # What tidies the temporary directory may take ours away from a server that lives long.
        return self._child.poll() is None and self.directory.is_dir()

    def ask(self, arguments: Sequence[str], deadline: float) -> tuple[bytes, str]:
        """
        What exiftool says to these arguments, on its standard output and error.

        Raises:
            ExifToolError: It ended, or ``deadline`` has passed.
        """
        # Not to be guessed: what a photo says is part of the answer.
        number = str(10**17 + secrets.randbelow(9 * 10**17))
        request = [*arguments, "-echo4", f"{{end{number}}}", f"-execute{number}"]
        assert not any("\n" in each for each in request)
        data = "".join(f"{each}\n" for each in request).encode()
        threading.Thread(target=self._send, args=(data,), daemon=True).start()
        try:
            out = self._out.until(f"{{ready{number}}}".encode(), deadline)
            problems = self._err.until(f"{{end{number}}}".encode(), deadline)
        except queue.Empty:
            raise ExifToolError("timeout", "exiftool took too long and was stopped") from None
        except EOFError:
            raise ExifToolError("ended", "exiftool ended unexpectedly") from None
        return out, problems.decode("utf-8", "replace")

    def tidy(self) -> None:
        """Remove the files of a turn."""
        for file in self.directory.glob("*"):
            file.unlink(missing_ok=True)

    def _send(self, data: bytes) -> None:
        # On a thread: a program that reads nothing would hold us here for ever.
        assert self._child.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the end of the pipes says the same
            view = memoryview(data)
            while view:
                view = view[self._child.stdin.write(view) :]

    def stop(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()
            assert self._guard.stdin is not None
            self._guard.stdin.close()
        # Once it is waited for, its number may be another's.
        if sys.platform != "win32" and self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class _Pipe:
    """What a program writes, read while it runs."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._blocks: queue.Queue[bytes] = queue.Queue()
        self._rest = b""
        threading.Thread(target=self._empty, args=(stream.fileno(),), daemon=True).start()

    def _empty(self, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            while block := os.read(descriptor, 65536):
                self._blocks.put(block)
        self._blocks.put(b"")

    def until(self, mark: bytes, deadline: float) -> bytes:
        """All up to the mark. Raises queue.Empty after the deadline, EOFError."""
        output = bytearray(self._rest)
        searched = 0
        while (place := output.find(mark, searched)) < 0:
            searched = max(0, len(output) - len(mark))
            block = self._blocks.get(timeout=max(0.0, deadline - time.monotonic()))
            if not block or len(output) > _MAX_OUTPUT:
                raise EOFError
            output += block
        self._rest = bytes(output[place + len(mark) :]).lstrip(b"\r\n")
        return bytes(output[:place])


def _reason(problems: str) -> str:
    """The first error in exiftool's output, without the names of our temporary files."""
    lines = [line.strip() for line in problems.splitlines() if line.strip()]
    chosen = [line for line in lines if line.startswith("Error")] or lines
    if not chosen:
        return ""
    text = chosen[0].partition(" - ")[0]
    return text.removeprefix("Error:").removeprefix("Warning:").strip()

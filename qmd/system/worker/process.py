"""Start one worker process, send it jobs and receive its results: the parent's side."""

from __future__ import annotations

import contextlib
import marshal
import mmap
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

from qmd import libraries
from qmd.system.worker import child
from qmd.system.worker.jobs import Job, JobAnswer, JobFailure, JobResult

#: A process without work for this many seconds ends, which frees its memory.
IDLE_S = 60.0
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_COUNT_BYTES = 8
#: Writing to a full pipe is tried again after this many seconds, or when a result is received.
_FULL_S = 0.005
_CREATE_NO_WINDOW = 0x08000000
#: How libraries end a process that gets no more memory: pdfium does not come back to say so. Who
#: ends it for another reason mostly writes it to stderr.
_GIVEN_UP = (-signal.SIGABRT, -signal.SIGTRAP) if sys.platform == "linux" else ()
_WITHOUT_MEMORY = re.compile(rb"memory|alloc", re.IGNORECASE)
#: Characters of its last words that are told.
_LAST_WORDS = 150
#: Seconds that the process may take to end after its last answer.
_EXIT_S = 1.0
_PYTHON_NAMES = ("python", "pypy")


class StartError(Exception):
    """No worker process can be started here; the text is a sentence for people."""


class WorkerProcess:
    """
    One child and the thread that receives its results. Not thread-safe.

    The child's answers are plain values, because `marshal` makes no others here. But the child is
    no security boundary: it has the rights of its parent, and a hostile file that took it over (by
    an error in the interpreter's C code) could do all that the parent can. The purpose of the
    process is that it can be ended.
    """

    def __init__(self, function: str, idle_s: float = IDLE_S) -> None:
        """Raises StartError. Returns before the child is ready."""
        self._results: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unsent = bytearray()
        self._pipes = threading.Lock()
        self._are_closed = False
        self._received = 0
        self.is_ready = False
        self._begun: mmap.mmap | None = None
        self._lifeline = self._last_words = -1
        self._words = b""
        begun = lifeline = words = -1
        try:
            if sys.platform != "win32":
                begun = _file_in_memory()
                self._begun = mmap.mmap(begun, _COUNT_BYTES)
                lifeline, self._lifeline = os.pipe()
                self._last_words, words = os.pipe()
                # Nobody reads it before the process ends: what does not fit is lost.
                os.set_blocking(self._last_words, False)
                os.set_blocking(words, False)
            self._process = subprocess.Popen(
                [*_command(function, idle_s), str(begun), str(lifeline)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words if words >= 0 else subprocess.DEVNULL,
                bufsize=0,
                pass_fds=[descriptor for descriptor in (begun, lifeline) if descriptor >= 0],
                cwd=os.path.abspath(os.sep),  # noqa: PTH100 - not a directory of the user
                # Ctrl-C at a terminal does not reach a separate session.
                start_new_session=True,
                creationflags=_CREATE_NO_WINDOW if sys.platform == "win32" else 0,
            )
        except (OSError, ValueError) as error:
            for descriptor in (self._lifeline, self._last_words):
                if descriptor >= 0:
                    os.close(descriptor)
            raise StartError(f"{sys.executable} does not start: {error}.") from error
        finally:
            for descriptor in (begun, lifeline, words):
                if descriptor >= 0:
                    os.close(descriptor)
        assert self._process.stdin is not None
        self._sink = self._process.stdin.fileno()
        if sys.platform != "win32":
            os.set_blocking(self._sink, False)
        self._widen_pipes()
        self._thread = threading.Thread(target=self._listen, name="qmd-worker", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the system allows no more threads
            self._process.kill()
            self._process.wait()
            self._close_pipes()
            raise StartError(f"{error}.") from error

    def _widen_pipes(self) -> None:
        """Enlarge the buffer for answers. If that is not possible, reading takes longer."""
        if sys.platform == "linux":
            import fcntl

            assert self._process.stdout is not None
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._process.stdout.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    def send(self, job: Job) -> None:
        """Queue a job; `result` sends it. Raises ValueError if the argument is no plain value."""
        body = marshal.dumps((*job.budget, job.argument))
        self._unsent += child.frame(body)

    def _flush(self) -> None:
        """Send what the pipe takes now. Do not wait, because the child may never read again."""
        with self._pipes:
            while self._unsent and not self._are_closed:
                try:
                    sent = os.write(self._sink, self._unsent)
                except OSError:  # the pipe is full, or the process has ended, as `result` will find
                    return
                del self._unsent[:sent]

    def result(self, timeout_s: float) -> JobResult | None:
        """
        Wait for the next result.

        Returns:
            None if there is no result in time, or only the message that the process is ready.

        Raises:
            EOFError: The process has ended.
        """
        deadline = monotonic() + timeout_s
        while True:
            self._flush()
            wait_s = max(0.0, deadline - monotonic())
            try:
                body = self._results.get(timeout=min(wait_s, _FULL_S) if self._unsent else wait_s)
                break
            except queue.Empty:
                if monotonic() >= deadline:
                    return None
        if body is None:
            raise EOFError
        if body == child.READY:
            self.is_ready = True
            return None
        self._received += 1
        is_answer, value = marshal.loads(body)  # noqa: S302 - see above
        return JobAnswer(value) if is_answer else JobFailure("error", value)

    @property
    def in_work(self) -> int:
        """The index of the latest begun job among those without a result; below 0 if none is."""
        if self._begun is None:  # without the count, each result is sent before the next job begins
            return 0
        return int.from_bytes(self._begun[:], "little") - self._received - 1

    def death(self) -> JobFailure:
        """Find out why the process ended. Call this after `result` has raised EOFError."""
        self._thread.join()
        code = self._process.returncode
        if code == child.OUT_OF_MEMORY:
            return JobFailure("memory", "")
        if sys.platform != "win32" and code == -signal.SIGPROF:
            return JobFailure("cpu", "")
        words = self._words
        if code in _GIVEN_UP and (not words or _WITHOUT_MEMORY.search(words)):
            return JobFailure("memory", "")
        if code >= 0:
            return JobFailure("crash", f"The process that read it ended with exit code {code}.")
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        reason = f"The process that read it was ended by {name}."
        last_words = " ".join(words.decode("utf-8", "replace").split())[-_LAST_WORDS:]
        if last_words:
            reason += f" Its last words: {last_words}"
        return JobFailure("crash", reason)

    def kill(self) -> None:
        """End the process without waiting: a hanging disk may delay it. May be called twice."""
        self._process.kill()

    def close(self, timeout_s: float = 1.0) -> None:
        """End the process, and wait up to ``timeout_s`` for that."""
        self.kill()
        self._thread.join(timeout_s)

    def forget(self) -> None:
        """Close the pipes in a forked process, where the child belongs to another parent."""
        self._pipes = threading.Lock()
        self._process.returncode = 0
        self._close_pipes()

    def _listen(self) -> None:
        """Receive answers on a separate thread, so that the child need not wait for the parent."""
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        received = bytearray()
        with contextlib.suppress(OSError):
            while block := os.read(source, _READ_BYTES):
                received += block
                while len(received) >= 4:
                    end = 4 + int.from_bytes(received[:4], "little")
                    if len(received) < end:
                        break
                    self._results.put(bytes(received[4:end]))
                    del received[:end]
        try:
            self._process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._last_words >= 0:
            with contextlib.suppress(OSError):
                self._words = os.read(self._last_words, _READ_BYTES)
        self._close_pipes()
        self._results.put(None)

    def _close_pipes(self) -> None:
        with self._pipes:
            if self._are_closed:
                return
            self._are_closed = True
            if self._lifeline >= 0:
                os.close(self._lifeline)
                os.close(self._last_words)
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()


def _file_in_memory() -> int:
    """Create a file without a name, and return its descriptor. Raises OSError."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("qmd-worker")
    else:
        with libraries.tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _COUNT_BYTES)
    return descriptor


def _command(function: str, idle_s: float) -> list[str]:
    """The command line, to which the caller adds the numbers of two descriptors."""
    name = os.path.basename(sys.executable or "").lower()  # noqa: PTH119
    if getattr(sys, "frozen", False) or not name.startswith(_PYTHON_NAMES):
        raise StartError("This program is no Python interpreter that could be started once more.")
    home = str(Path(__file__).absolute().parents[3])
    # Only absolute paths: a relative one depends on the working directory, which is not trusted.
    paths = [path for path in sys.path if Path(path).is_absolute()]
    if home not in paths:
        paths.insert(0, home)
    # Without Python's own messages, stderr has the last words of a library that gives up.
    code = (
        f"import sys; sys.stderr = None; sys.path[:] = {paths!a};"
        f" sys.pycache_prefix = {sys.pycache_prefix!a};"
        f" sys.dont_write_bytecode = {sys.dont_write_bytecode};"
        f" from qmd.system.worker.child import main;"
        f" main({function!a}, {idle_s}, *map(int, sys.argv[1:]))"
    )
    # -I and -S: ignore the environment and the startup files of the site.
    return [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", "-c", code]

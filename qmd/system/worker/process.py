"""A worker process as its parent sees it."""

from __future__ import annotations

import contextlib
import marshal
import mmap
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

from qmd.system.worker import child
from qmd.system.worker.jobs import Job, JobAnswer, JobFailure, JobResult

#: A process without work for so long ends, and its memory is given back.
IDLE_S = 60.0
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_COUNT_BYTES = 8
#: How soon a pipe that was full is tried again, if no result comes before.
_FULL_S = 0.005
_CREATE_NO_WINDOW = 0x08000000
#: Between the end of its answers and its own.
_LAST_S = 1.0
_PYTHON_NAMES = ("python", "pypy")


class StartError(Exception):
    """No worker process can be started here; the text is a sentence for people."""


class WorkerProcess:
    """
    One child and the thread that hears it. Not thread-safe.

    What it answers is taken for plain values and never for code: `marshal` builds nothing
    else. The child is no security boundary, though. It has the rights of its parent, and one
    that a hostile file has taken over (which takes an error in the interpreter's own C code)
    could do what the parent can. It is there to be ended.
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
        self._lifeline = -1
        begun = lifeline = -1
        try:
            if sys.platform != "win32":
                begun = _file_in_memory()
                self._begun = mmap.mmap(begun, _COUNT_BYTES)
                lifeline, self._lifeline = os.pipe()
            self._process = subprocess.Popen(
                [*_command(function, idle_s), str(begun), str(lifeline)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                pass_fds=[each for each in (begun, lifeline) if each >= 0],
                cwd=os.path.abspath(os.sep),  # noqa: PTH100 - holds no directory of the user's
                # A session of its own, which no Ctrl-C at a terminal ends.
                start_new_session=True,
                creationflags=_CREATE_NO_WINDOW if sys.platform == "win32" else 0,
            )
        except (OSError, ValueError) as error:
            if self._lifeline >= 0:
                os.close(self._lifeline)
            raise StartError(f"{sys.executable} does not start: {error}.") from error
        finally:
            for descriptor in (begun, lifeline):
                if descriptor >= 0:
                    os.close(descriptor)
        assert self._process.stdin is not None
        self._sink = self._process.stdin.fileno()
        if sys.platform != "win32":
            os.set_blocking(self._sink, False)
        self._widen_pipes()
        self._thread = threading.Thread(target=self._listen, name="qmd-worker", daemon=True)
        self._thread.start()

    def _widen_pipes(self) -> None:
        """More of it is handed over at once; without, it only takes longer."""
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
        """It goes out when the next result is asked for. Raises ValueError: no plain argument."""
        body = marshal.dumps((*job.budget, job.argument))
        self._unsent += child.frame(body)

    def _flush(self) -> None:
        """Send what the pipe takes now: waiting for it would be waiting without an end."""
        with self._pipes:
            while self._unsent and not self._are_closed:
                try:
                    sent = os.write(self._sink, self._unsent)
                except OSError:  # full, or the process has ended, which its results say
                    return
                del self._unsent[:sent]

    def result(self, timeout_s: float) -> JobResult | None:
        """
        The next one; None if there is none within the time, or only the news that it is ready.

        Raises:
            EOFError: It has ended.
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
        """Which of the jobs without a result it has begun last, from 0; below 0: none of them."""
        if self._begun is None:  # it tells each result before it begins another
            return 0
        return int.from_bytes(self._begun[:], "little") - self._received - 1

    def death(self) -> JobFailure:
        """Why it ended; `result` has said that it did."""
        self._thread.join()
        code = self._process.returncode
        if code == child.OUT_OF_MEMORY:
            return JobFailure("memory", "")
        if sys.platform != "win32" and code == -signal.SIGPROF:
            return JobFailure("cpu", "")
        if code >= 0:
            return JobFailure("crash", f"The process that read it ended with exit code {code}.")
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return JobFailure("crash", f"The process that read it was ended by {name}.")

    def kill(self) -> None:
        """End it now; does not wait for that, which a hanging disk may hold up. May repeat."""
        self._process.kill()

    def close(self, timeout_s: float = 1.0) -> None:
        """End it, and wait a moment for that."""
        self.kill()
        self._thread.join(timeout_s)

    def forget(self) -> None:
        """In a process forked off: it is the child of another, and so are the pipes."""
        self._pipes = threading.Lock()
        self._process.returncode = 0
        self._close_pipes()

    def _listen(self) -> None:
        """On a thread of its own, so that the child need not wait while the parent writes."""
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
            self._process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_pipes()
        self._results.put(None)

    def _close_pipes(self) -> None:
        with self._pipes:
            if self._are_closed:
                return
            self._are_closed = True
            if self._lifeline >= 0:
                os.close(self._lifeline)
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()


def _file_in_memory() -> int:
    """A descriptor of a file that has no name. Raises OSError."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("qmd-worker")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _COUNT_BYTES)
    return descriptor


def _command(function: str, idle_s: float) -> list[str]:
    """All but the last arguments, the numbers of two descriptors."""
    name = os.path.basename(sys.executable or "").lower()  # noqa: PTH119
    if getattr(sys, "frozen", False) or not name.startswith(_PYTHON_NAMES):
        raise StartError("This program is no Python interpreter that could be started once more.")
    home = str(Path(__file__).absolute().parents[3])
    # Only places that this process imports from: the working directory may be a stranger's.
    paths = [path for path in sys.path if Path(path).is_absolute()]
    if home not in paths:
        paths.insert(0, home)
    code = (
        f"import sys; sys.path[:] = {paths!a}; sys.pycache_prefix = {sys.pycache_prefix!a};"
        f" sys.dont_write_bytecode = {sys.dont_write_bytecode};"
        f" from qmd.system.worker.child import main;"
        f" main({function!a}, {idle_s}, *map(int, sys.argv[1:]))"
    )
    # Without what the environment or a site's startup files would add.
    return [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", "-c", code]

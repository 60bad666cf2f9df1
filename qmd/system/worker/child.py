"""
Run a worker process: read jobs from stdin, and write answers to stdout.

Jobs and answers are frames: the length of the body in four bytes, then the body, written by
`marshal`. This module imports little of the standard library, because the imports delay the first
answer.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import mmap
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from qmd import lazy
from qmd.system.worker.jobs import JobBudget, described_with_place

#: The exit code if the memory is used up. Other causes show by the signal that ended the process.
OUT_OF_MEMORY = 86
#: The child sends this empty body before the first answer, when it is ready.
READY = b""

_READ_BYTES = 1 << 16
_WRITE_BYTES = 1 << 16


def frame(body: bytes) -> bytes:
    """Put the length of a body in front of it."""
    return len(body).to_bytes(4, "little") + body


def main(name: str, idle_s: float, begun: int, lifeline: int) -> None:
    """
    Answer jobs until stdin ends, or until no job has come for ``idle_s`` seconds.

    Args:
        name: The function, as ``module:function``.
        begun: The descriptor of a file in memory for the number of jobs begun. It tells the parent
            during which job a process died. Below 0 if there is none.
        lifeline: The reading end of a pipe that closes when the parent ends. Below 0 if there is
            none.
    """
    _set_up_signals(lifeline)
    # The output of a library must not get between the answers.
    source, target = os.dup(0), os.dup(1)
    null_device = os.open(os.devnull, os.O_RDWR)
    os.dup2(null_device, 0)
    os.dup2(null_device, 1)
    function = lazy.imported(name)
    limits = _KernelLimits()
    # A parser makes many small values without cycles, so frequent collections would be wasted.
    gc.freeze()
    gc.set_threshold(50_000)
    shared_count = mmap.mmap(begun, 8) if begun >= 0 else None
    begun_jobs = 0
    # Many answers are written at once: waking the parent costs as much as parsing a small file.
    with os.fdopen(target, "wb", buffering=_WRITE_BYTES) as answers:
        answers.write(frame(READY))
        for body in _jobs(source, idle_s, answers.flush):
            begun_jobs += 1
            if shared_count is None:
                answers.flush()
            else:
                shared_count[:] = begun_jobs.to_bytes(8, "little")
            cpu_s, memory_bytes, argument = marshal.loads(body)  # noqa: S302 - from our parent
            with limits.applied(JobBudget(cpu_s, memory_bytes)):
                answer = _answer(function, argument)
            answers.write(frame(answer))
        os._exit(0)


def _answer(function: Callable[[Any], Any], argument: Any) -> bytes:
    try:
        return marshal.dumps((True, function(argument)))
    except MemoryError:
        # Other parts of this process may lack memory too, and a new process costs little.
        os._exit(OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001 - the parent reports any exception
        return marshal.dumps((False, described_with_place(error)))


def _jobs(source: int, idle_s: float, before_waiting: Callable[[], None]) -> Iterator[bytes]:
    received = bytearray()
    while True:
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "little"):
            before_waiting()
            # Windows can only wait for sockets.
            if sys.platform != "win32" and not select.select([source], [], [], idle_s)[0]:
                return
            block = os.read(source, _READ_BYTES)
            if not block:
                return
            received += block
        end = 4 + int.from_bytes(received[:4], "little")
        body = bytes(received[4:end])
        del received[:end]
        yield body


def _set_up_signals(lifeline: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    if sys.platform == "win32":
        return
    # Signal handling is inherited. These signals must end the process, even inside C code.
    fatal_signals = {signal.SIGPROF, signal.SIGIO, signal.SIGTERM}
    for fatal_signal in fatal_signals:
        signal.signal(fatal_signal, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, fatal_signals)
    if lifeline >= 0:
        import fcntl

        # Linux sends SIGIO when the other end closes, however the parent ends. (The "parent death
        # signal" is sent when the thread that started this process ends, which is too early.)
        # Other systems close stdin, which this process notices when it has no job.
        with contextlib.suppress(OSError):
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
            flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # the parent ended before this
            os._exit(0)


class _KernelLimits:
    """Lets the kernel enforce the limits of a job, as far as the system can."""

    def __init__(self) -> None:
        self._memory_bytes = 0
        self._base_bytes: int | None = None
        if sys.platform == "linux":
            import resource

            self._base_bytes = _address_space()
            self._given = resource.getrlimit(resource.RLIMIT_AS)
            # A core dump would leave a copy of the user's text on the disk.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            # If the machine runs out of memory, the kernel ends this process before its parent.
            with contextlib.suppress(OSError), Path("/proc/self/oom_score_adj").open("wb") as file:
                file.write(b"800")

    @contextlib.contextmanager
    def applied(self, budget: JobBudget) -> Iterator[None]:
        if budget.memory_bytes != self._memory_bytes:
            self._limit_memory(budget.memory_bytes)
        if sys.platform == "win32":
            yield
            return
        # The signal of the timer has no handler, so it ends the process at any point.
        signal.setitimer(signal.ITIMER_PROF, budget.cpu_s)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _limit_memory(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        if self._base_bytes is None or sys.platform != "linux":
            return
        import resource

        soft, hard = self._given
        limit = self._base_bytes + memory_bytes
        if soft != resource.RLIM_INFINITY:
            limit = min(limit, soft)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _address_space() -> int | None:
    """The size of the mapped memory in bytes; None if it is unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")

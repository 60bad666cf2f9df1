"""
The main function of a worker process, which reads jobs from stdin and writes answers to stdout.

A frame is the length of its body in four bytes, and the body written by `marshal`. Only a little
of the standard library is imported here, because the first answer waits for the start.
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
from importlib import import_module
from pathlib import Path
from typing import Any

from qmd.system.worker.jobs import JobBudget, described

#: Exit codes; the signals that end the process say the rest.
OUT_OF_MEMORY = 86
#: The child says that it is ready by an empty body, before the first answer.
READY = b""

_READ_BYTES = 1 << 16
_WRITE_BYTES = 1 << 16


def resolve(name: str) -> Callable[[Any], Any]:
    """The function that ``module:function`` names."""
    module, _, attribute = name.partition(":")
    function: Callable[[Any], Any] = getattr(import_module(module), attribute)
    return function


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "little") + body


def main(name: str, idle_s: float, begun: int, lifeline: int) -> None:
    """
    Answer jobs until stdin ends, or until no job has come for ``idle_s`` seconds.

    Args:
        name: The function, as ``module:function``.
        begun: The descriptor of a file in memory for the number of jobs begun, from which the
            parent knows during which one a process has died. Below 0: there is none.
        lifeline: The reading end of a pipe that closes when the parent ends. Below 0: there is
            none.
    """
    _heed_signals(lifeline)
    # What a library prints must not come between the answers.
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    function = resolve(name)
    limits = _KernelLimits()
    # A parser makes many small values without cycles, which are not worth looking at often.
    gc.freeze()
    gc.set_threshold(50_000)
    count = mmap.mmap(begun, 8) if begun >= 0 else None
    number = 0
    # Many answers are written at once: waking the parent costs as much as parsing a small file.
    with os.fdopen(target, "wb", buffering=_WRITE_BYTES) as answers:
        answers.write(frame(READY))
        for body in _jobs(source, idle_s, answers.flush):
            number += 1
            if count is None:
                answers.flush()
            else:
                count[:] = number.to_bytes(8, "little")
            cpu_s, memory_bytes, argument = marshal.loads(body)  # noqa: S302 - from our parent
            with limits.applied(JobBudget(cpu_s, memory_bytes)):
                answer = _answer(function, argument)
            answers.write(frame(answer))
        os._exit(0)


def _answer(function: Callable[[Any], Any], argument: Any) -> bytes:
    try:
        return marshal.dumps((True, function(argument)))
    except MemoryError:
        # What else lacks memory now is unknown, and a new process costs little.
        os._exit(OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001 - told by the parent, whatever it is
        return marshal.dumps((False, described(error)))


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


def _heed_signals(lifeline: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to heed
    if sys.platform == "win32":
        return
    # How signals are treated is inherited; these must end the process, even inside C code.
    ending = {signal.SIGPROF, signal.SIGIO, signal.SIGTERM}
    for number in ending:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
    if lifeline >= 0:
        import fcntl

        # Linux sends SIGIO when the other end closes, however the parent dies. (The "parent death
        # signal" comes when the thread ends that started us, which is too early.) Elsewhere the
        # end of stdin says it, as soon as there is no job in work.
        with contextlib.suppress(OSError):
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
            flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # it closed before that
            os._exit(0)


class _KernelLimits:
    """The limits of a job that the kernel enforces, as far as this system can."""

    def __init__(self) -> None:
        self._memory_bytes = 0
        self._base_bytes: int | None = None
        if sys.platform == "linux":
            import resource

            self._base_bytes = _address_space()
            self._given = resource.getrlimit(resource.RLIMIT_AS)
            # A core dump would leave what somebody has written lying about.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            # If memory runs out, this process is to be ended before any other of ours.
            with contextlib.suppress(OSError), Path("/proc/self/oom_score_adj").open("wb") as file:
                file.write(b"800")

    @contextlib.contextmanager
    def applied(self, budget: JobBudget) -> Iterator[None]:
        if budget.memory_bytes != self._memory_bytes:
            self._limit_memory(budget.memory_bytes)
        if sys.platform == "win32":
            yield
            return
        # Its signal has no handler, so that it ends the process whatever that is doing.
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
    """The bytes that are mapped now."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")

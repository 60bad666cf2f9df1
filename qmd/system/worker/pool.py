"""Run one function in worker processes: one process for each thread that uses it at a time."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from qmd.system.worker.child import resolve
from qmd.system.worker.jobs import MB, Job, JobAnswer, JobBudget, JobFailure, JobResult, described
from qmd.system.worker.process import IDLE_S, StartError, WorkerProcess

_log = logging.getLogger(__name__)

#: The most that is sent ahead, so that the child goes on while the parent stores a batch. (On
#: Windows, where writing to a full pipe waits, only what a waiting child takes.)
AHEAD_JOBS = 1 if sys.platform == "win32" else 256
AHEAD_BYTES = 4 * MB
#: How often ``waiting`` is called while no result comes.
TICK_S = 0.2
#: Seconds without an answer, for reads that block and systems that do not limit CPU time.
SILENCE_S = 60.0
SILENCE_FACTOR = 10.0
#: After a failure to start processes, jobs run in this process for this time.
RETRY_S = 60.0
STARTS = 2
#: A job that ends two processes is not given to a third.
TRIES = 2


@dataclass(slots=True)
class _Sent:
    job: Job
    deaths: int = 0
    failure: JobFailure | None = None


class WorkerPool:
    """
    Runs a function in worker processes. Thread-safe: each `run` uses a process alone, which is
    then kept for the next run.

    Where no process can be started, the function runs in this process, without limits, and
    `problem` says why.
    """

    def __init__(
        self, function: str, *, idle_s: float = IDLE_S, silence_s: float = SILENCE_S
    ) -> None:
        """``function`` is named ``module:function``; it takes and returns plain values."""
        self._function = function
        self._idle_s = idle_s
        self.silence_s = silence_s
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._all: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()
        self._problem: str | None = None
        self._retry_at = 0.0
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @property
    def problem(self) -> str | None:
        """Why no process could be started at the last attempt, in a sentence; else None."""
        return self._problem

    @property
    def is_running(self) -> bool:
        """Whether there is a process, working or idle."""
        return any(not process.has_ended for process in list(self._all))

    def run(
        self, jobs: Iterable[Job], waiting: Callable[[], None] = lambda: None
    ) -> Generator[JobResult, None, None]:
        """
        The result of each job, in order. Jobs are taken from the iterable ahead of their results.

        Args:
            waiting: Called again and again while nothing comes; what it raises ends the run.
        """
        run = _PoolRun(self, iter(jobs), waiting)
        try:
            yield from run
        finally:
            run.end()

    def close(self) -> None:
        """End the idle processes. A later run starts another."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()

    def warm_up(self) -> None:
        """Start a process if none runs, so that the next `run` need not wait for its start."""
        if self.is_running:
            return
        try:
            self.give_back(self.borrow())
        except StartError:  # the next run finds out, and notes the problem
            return

    def borrow(self) -> WorkerProcess:
        """Take an idle process, or start one. Raises StartError."""
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if not process.has_ended:
                    return process
            if monotonic() < self._retry_at:
                raise StartError(self._problem)
        process = WorkerProcess(self._function, self._idle_s)
        with self._lock:
            self._all.add(process)
        return process

    def give_back(self, process: WorkerProcess) -> None:
        with self._lock:
            self._idle.append(process)

    def note(self, problem: str | None) -> None:
        """Record why processes do not start, or None when one has started."""
        if problem is not None and problem != self._problem:
            _log.warning("no worker process can be started: %s", problem)
        self._problem = problem
        self._retry_at = 0.0 if problem is None else monotonic() + RETRY_S

    def run_in_this_process(self, job: Job) -> JobResult:
        """Call the function here, without limits."""
        try:
            return JobAnswer(resolve(self._function)(job.argument))
        except Exception as error:  # noqa: BLE001 - told by the caller, whatever it is
            return JobFailure("error", described(error))

    def _forget(self) -> None:
        """Start afresh in a forked process, which has none of the other threads."""
        self._lock = threading.Lock()
        for process in list(self._all):
            process.forget()
        self._idle = []
        self._all = weakref.WeakSet()


class _PoolRun:
    """The jobs of one caller that have been sent and have no result yet."""

    def __init__(
        self, workers: WorkerPool, jobs: Iterator[Job], waiting: Callable[[], None]
    ) -> None:
        self._workers = workers
        self._jobs = jobs
        self._waiting = waiting
        self._sent: deque[_Sent] = deque()
        self._sent_bytes = 0
        self._process: WorkerProcess | None = None
        self._owed: deque[_Sent] = deque()  # jobs that the current process must answer

    def __iter__(self) -> Iterator[JobResult]:
        while self._ask_ahead():
            result = self._next()
            self._sent_bytes -= self._sent.popleft().job.size
            yield result

    def end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if self._sent:  # it works on jobs whose results nobody will take
            process.close()
        else:
            self._workers.give_back(process)

    def _ask_ahead(self) -> bool:
        """Send jobs if fewer than half of the most are ahead; whether a result is to come."""
        if self._sent and (
            len(self._sent) > AHEAD_JOBS // 2 or self._sent_bytes > AHEAD_BYTES // 2
        ):
            return True
        while not self._sent or (len(self._sent) < AHEAD_JOBS and self._sent_bytes < AHEAD_BYTES):
            job = next(self._jobs, None)
            if job is None:
                break
            self._sent.append(_Sent(job))
            self._sent_bytes += job.size
            if self._process is not None:
                self._owed.append(self._sent[-1])
                self._process.send(job)
        return bool(self._sent)

    def _next(self) -> JobResult:
        """The result of the job sent first."""
        sent = self._sent[0]
        starts = 0
        while sent.failure is None:
            try:
                process = self._working()
            except StartError as error:
                self._workers.note(str(error))
                return self._without_process(sent)
            result = self._wait(process, sent.job.budget)
            if process.is_ready and self._workers.problem is not None:
                self._workers.note(None)
            if self._process is not None:
                self._owed.popleft()
                return result
            assert isinstance(result, JobFailure)
            if process.is_ready:
                self._blame(process, result)
                continue
            starts += 1
            if starts == STARTS:
                self._workers.note(f"Each ends, or hangs, before it is ready. {result.detail}")
        return sent.failure

    def _working(self) -> WorkerProcess:
        """The process, with all jobs that it must answer sent. Raises StartError."""
        if self._process is None:
            self._process = self._workers.borrow()
            self._owed = deque(sent for sent in self._sent if sent.failure is None)
            for sent in self._owed:
                self._process.send(sent.job)
        return self._process

    def _wait(self, process: WorkerProcess, budget: JobBudget) -> JobResult:
        """The next result; ``self._process`` becomes None if the process has ended."""
        patience_s = self._workers.silence_s + SILENCE_FACTOR * budget.cpu_s
        waited_s = 0.0
        try:
            while waited_s < patience_s:
                result = process.result(TICK_S)
                if result is not None:
                    return result
                waited_s += TICK_S
                self._waiting()
        except EOFError:
            self._process = None
            return process.death()
        self._process = None
        process.kill()
        return JobFailure("silence", f"Nothing came of it for {patience_s:.0f} s.")

    def _blame(self, process: WorkerProcess, death: JobFailure) -> None:
        """Record a failure for the job during which the process died."""
        blamed = self._owed[max(0, process.in_work)]
        if death.kind == "crash":
            # It may have been killed from outside, or by what an earlier job left behind.
            blamed.deaths += 1
            if blamed.deaths < TRIES:
                return
        blamed.failure = _with_budget(death, blamed.job.budget)

    def _without_process(self, sent: _Sent) -> JobResult:
        if sent.deaths:
            return JobFailure(
                "crash", "The process that read it ended, and no other could be started."
            )
        self._waiting()
        return self._workers.run_in_this_process(sent.job)


def _with_budget(death: JobFailure, budget: JobBudget) -> JobFailure:
    if death.kind == "cpu":
        return JobFailure("cpu", f"It took more than {budget.cpu_s:g} s of CPU time.")
    if death.kind == "memory":
        return JobFailure("memory", f"It took more than {budget.memory_bytes // MB} MB of memory.")
    return death

"""Run one function in worker processes, of which each thread uses one at a time."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from time import monotonic

from qmd import lazy
from qmd.records import dataclass
from qmd.system.worker.jobs import (
    MB,
    Job,
    JobAnswer,
    JobBudget,
    JobFailure,
    JobResult,
    described_with_place,
)
from qmd.system.worker.process import IDLE_S, StartError, WorkerProcess

_log = logging.getLogger(__name__)

#: The most jobs to send ahead of their results, so that the child continues while the parent stores
#: a batch: half of them, which may be all that is left when it begins, are a batch of documents.
#: On Windows, where writing to a full pipe blocks, only a waiting child gets a job.
AHEAD_JOBS = 1 if sys.platform == "win32" else 512
#: The largest sum of `Job.size` to send ahead.
AHEAD_BYTES = 4 * MB
#: Seconds between two calls of ``waiting`` while there is no result.
TICK_S = 0.2
#: A process is killed after this many seconds without an answer, plus `SILENCE_FACTOR` times the
#: budget of CPU time: its read may block, or the system may not limit CPU time.
SILENCE_S = 60.0
SILENCE_FACTOR = 10.0
#: After a failure to start processes, jobs run in this process for this many seconds.
RETRY_S = 60.0
#: After this many processes that never got ready, jobs run in this process.
STARTS = 2
#: A job that ends two processes is not given to a third.
TRIES = 2


@dataclass(slots=True)
class _SentJob:
    """A job without a result; ``deaths`` counts the processes that ended during it."""

    job: Job
    deaths: int = 0
    failure: JobFailure | None = None


class WorkerPool:
    """
    Runs a function in worker processes. Thread-safe.

    Each `run` has a process for itself, which is then kept for the next run. If no process can be
    started, the function runs in this process, without limits, and `problem` says why.
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
        Yield the result of each job, in order. Jobs are taken from the iterable ahead of time.

        Args:
            waiting: Called again and again while there is no result; an exception ends the run.
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
        except StartError:  # the next run fails too, and notes the problem
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
            return JobAnswer(lazy.imported(self._function)(job.argument))
        except Exception as error:  # noqa: BLE001 - the caller reports any exception
            return JobFailure("error", described_with_place(error))

    def _forget(self) -> None:
        """Reset the pool in a forked process, which has no other threads and no workers."""
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
        self._sent: deque[_SentJob] = deque()
        self._sent_bytes = 0
        self._process: WorkerProcess | None = None
        self._owed: deque[_SentJob] = deque()  # jobs that the current process must answer

    def __iter__(self) -> Iterator[JobResult]:
        while self._send_ahead():
            result = self._next_result()
            self._sent_bytes -= self._sent.popleft().job.size
            yield result

    def end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if self._sent:  # the results of the jobs in this process are no longer needed
            process.close()
        else:
            self._workers.give_back(process)

    def _send_ahead(self) -> bool:
        """Send more jobs if the queue is at most half full; return whether a job has no result."""
        if self._sent and (
            len(self._sent) > AHEAD_JOBS // 2 or self._sent_bytes > AHEAD_BYTES // 2
        ):
            return True
        while not self._sent or (len(self._sent) < AHEAD_JOBS and self._sent_bytes < AHEAD_BYTES):
            job = next(self._jobs, None)
            if job is None:
                break
            self._sent.append(_SentJob(job))
            self._sent_bytes += job.size
            if self._process is not None:
                self._owed.append(self._sent[-1])
                self._process.send(job)
        return bool(self._sent)

    def _next_result(self) -> JobResult:
        """Wait for the result of the earliest job without one."""
        sent = self._sent[0]
        starts = 0
        while sent.failure is None:
            try:
                process = self._ready_process()
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

    def _ready_process(self) -> WorkerProcess:
        """Borrow a process if there is none, and send it all open jobs. Raises StartError."""
        if self._process is None:
            self._process = self._workers.borrow()
            self._owed = deque(sent for sent in self._sent if sent.failure is None)
            for sent in self._owed:
                self._process.send(sent.job)
        return self._process

    def _wait(self, process: WorkerProcess, budget: JobBudget) -> JobResult:
        """Wait for the next result; set ``self._process`` to None if the process has ended."""
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
            # Something outside may have killed it, or a late effect of an earlier job.
            blamed.deaths += 1
            if blamed.deaths < TRIES:
                return
        blamed.failure = _with_budget(death, blamed.job.budget)

    def _without_process(self, sent: _SentJob) -> JobResult:
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

"""
Runs indexing and embedding in the background of a server, for the page, and knows how far they are.

Jobs run one after the other on a thread. Their progress goes to the event bus, as that of the
keeper does, so each client of ``/events`` sees it; and `Running` reads both from there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from qmd.errors import QmdError, RequestEndedError
from qmd.ingest.events import Event, EventBus
from qmd.kb import KnowledgeBase
from qmd.system import clock
from qmd.system.cancellation import Cancellation
from qmd.values import Changes, Progress

_log = logging.getLogger(__name__)

JobKind = Literal["indexing", "embedding"]
JobState = Literal["waiting", "running", "done", "failed"]

#: The most jobs that are remembered; as many may wait.
MAX_JOBS = 20

#: After so many seconds without an event, work counts as ended; a busy machine is slow.
QUIET_S = 60.0

_TICK_S = 0.25  # between two events about progress
_PATIENCE_S = 5.0  # for the end of a job that was cancelled


@dataclass(slots=True)
class ServerJob:
    """
    A run of indexing or embedding.

    Attributes:
        collections: The names of the collections; empty for all.
        ended: In seconds since 1970.
        changes: What an index run did.
        chunks: How many chunks got a vector.
        problems: Sentences.
    """

    number: int
    kind: JobKind
    collections: tuple[str, ...] = ()
    state: JobState = "waiting"
    ended: float | None = None
    changes: Changes | None = None
    chunks: int | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """
    How far some work is.

    ``left_s``: the seconds that are left if it goes on as fast as so far; None if unknown.
    """

    done: int
    total: int | None
    left_s: float | None


class Running:
    """What the events say about the work that runs now, in this process. Thread-safe."""

    def __init__(self, bus: EventBus, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        #: Kind → the time and count of the first event of the work, and those of the last.
        self._first: dict[JobKind, tuple[float, int]] = {}
        self._last: dict[JobKind, tuple[float, Event]] = {}
        self.close = bus.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.kind == "synced":  # the keeper does not tell the last step of indexing
            with self._lock:
                self._last.pop("indexing", None)
        if event.kind not in ("indexing", "embedding"):
            return
        kind: JobKind = "indexing" if event.kind == "indexing" else "embedding"
        now, done = self._now(), event.done or 0
        with self._lock:
            last = self._last.get(kind)
            if last is None or now - last[0] > QUIET_S or done < (last[1].done or 0):
                self._first[kind] = (now, done)
            self._last[kind] = (now, event)

    def pace(self, kind: JobKind) -> Pace | None:
        """How far the work of this kind is; None if none runs."""
        now = self._now()
        with self._lock:
            if kind not in self._last:
                return None
            began, done_first = self._first[kind]
            last, event = self._last[kind]
        done, total = event.done or 0, event.total
        if now - last > QUIET_S or (total is not None and done >= total):
            return None
        left_s = None
        if total is not None and done > done_first and last > began:
            left_s = (total - done) * (last - began) / (done - done_first)
            left_s = max(0.0, left_s - (now - last))
        return Pace(done, total, left_s)


class Jobs:
    """The jobs of one server. Thread-safe; `stop` ends the one that runs."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._lock = threading.Lock()
        self._jobs: deque[ServerJob] = deque(maxlen=MAX_JOBS)
        self._thread: threading.Thread | None = None
        self._cancellation = Cancellation()
        self._next_tick = 0.0
        self.running = Running(kb.events)

    def start(self, kind: JobKind, collections: tuple[str, ...] = ()) -> ServerJob:
        """Run a job as soon as no other runs; the same job is not put into the queue twice."""
        with self._lock:
            for job in self._jobs:
                if (job.kind, job.collections, job.state) == (kind, collections, "waiting"):
                    return job
            number = self._jobs[-1].number + 1 if self._jobs else 1
            job = ServerJob(number, kind, collections)
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="qmd-jobs", daemon=True)
                self._thread.start()
        return job

    def latest(self) -> list[ServerJob]:
        """The jobs that are remembered, the newest first."""
        with self._lock:
            return [replace(job) for job in reversed(self._jobs)]

    def stop(self) -> None:
        """End the running job at its next check, and start no other."""
        self._cancellation.cancel()
        thread = self._thread
        if thread is not None:
            thread.join(_PATIENCE_S)
        self.running.close()

    def _run(self) -> None:
        while True:
            with self._lock:
                waiting = [job for job in self._jobs if job.state == "waiting"]
                if not waiting or self._cancellation.is_cancelled:
                    self._thread = None
                    return
                job = waiting[0]
                job.state = "running"
            state: JobState = "failed"
            try:
                with self._cancellation.active():
                    state = self._index(job) if job.kind == "indexing" else self._embed(job)
            except RequestEndedError:
                pass
            except QmdError as error:
                job.problems = (error.with_hint,)
            except Exception as error:  # noqa: BLE001 - logged and shown
                _log.error("a job failed", exc_info=error)
                job.problems = (type(error).__name__,)
            with self._lock:
                job.state, job.ended = state, time.time()
            self._tell_end(job)

    def _tell_end(self, job: ServerJob) -> None:
        """Publish that a job has ended, after its new state can be read."""
        publish = self._kb.events.publish
        for problem in job.problems:
            publish(Event("problem", clock.now(), message=problem))
        publish(Event(job.kind, clock.now(), done=1, total=1))
        if job.kind == "indexing" and job.state == "done" and not job.collections:
            publish(Event("synced", clock.now()))

    def _index(self, job: ServerJob) -> JobState:
        report = self._kb.index(job.collections, progress=self._publish("indexing"))
        job.changes, job.problems = report.changes, report.errors
        return "failed" if report.errors else "done"

    def _embed(self, job: ServerJob) -> JobState:
        report = self._kb.embed(job.collections, progress=self._publish("embedding"))
        job.chunks = report.embedded + report.reused
        return "done"

    def _publish(self, kind: JobKind) -> Callable[[Progress], None]:
        def publish(tick: Progress) -> None:
            if self._cancellation.is_cancelled:
                raise RequestEndedError
            now = time.monotonic()
            if now >= self._next_tick or tick.done == tick.total:
                self._next_tick = now + _TICK_S
                self._kb.events.publish(Event(kind, clock.now(), done=tick.done, total=tick.total))

        return publish

"""
Runs blocking calls on a limited number of threads beside the event loop, with a time limit.

A call that takes too long, or whose client has left, is cancelled: it ends at its next check (see
`qmd.system.cancellation`). Until then it counts as running, so that clients that give up and ask
again cannot start more threads than the limit.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from starlette.requests import ClientDisconnect, Request

from qmd.system.cancellation import Cancellation

T = TypeVar("T")

#: The number of bulky calls (see `Tool.bulky`) that run at once; 60 delayed a search by 11 s.
BULKY_AT_ONCE = 2

_RETRY_S = 0.05  # between two attempts to interrupt a call that still runs


class TooBusyError(Exception):
    """``max_waiting`` calls are waiting already."""


class CallQueue:
    """
    A queue of calls for ``width`` threads, in the order of arrival.

    Args:
        width: The most calls that run at once.
        max_waiting: The most calls that wait; further calls are refused.
    """

    def __init__(self, width: int, *, max_waiting: int) -> None:
        self._width = width
        self._max_waiting = max_waiting
        self._places: RunVar[anyio.CapacityLimiter] = RunVar(f"qmd_workers_{id(self)}")
        self._running = 0
        self._idle = threading.Condition()

    async def run(self, function: Callable[[], T], *, timeout_s: float) -> T:
        """
        Run ``function()`` on a thread and return its result.

        Raises:
            TooBusyError: The queue is full.
            TimeoutError: Waiting and running took longer than ``timeout_s``.
        """
        places = limiter_of_loop(self._places, self._width)
        if not places.available_tokens and (places.statistics().tasks_waiting >= self._max_waiting):
            raise TooBusyError
        borrower = object()
        loop = asyncio.get_running_loop()
        # The side that acquires this lock releases the place: the thread, or this task if the call
        # never began.
        begun = threading.Lock()
        ended = threading.Event()
        cancellation = Cancellation()

        def release_place() -> None:
            with suppress(RuntimeError):  # the loop is closed, and the places with it
                loop.call_soon_threadsafe(places.release_on_behalf_of, borrower)

        def job() -> T | None:
            if not begun.acquire(blocking=False):
                return None  # the call was abandoned, and its result is not used
            with self._idle:
                self._running += 1
            try:
                with cancellation.active():
                    return function()
            finally:
                ended.set()
                with self._idle:
                    self._running -= 1
                    self._idle.notify_all()
                release_place()

        def cancel() -> None:
            # An interrupt ends only the SQL statement that runs at that moment, so it is repeated.
            if not ended.is_set():
                cancellation.cancel()
                loop.call_later(_RETRY_S, cancel)

        with anyio.fail_after(timeout_s):
            await _acquire(places, borrower)
            try:
                # `places` limits the threads already; anyio's usual limiter would do so again.
                result = await anyio.to_thread.run_sync(
                    job, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
                )
            except BaseException:
                if begun.acquire(blocking=False):
                    places.release_on_behalf_of(borrower)
                else:
                    cancel()
                raise
        return result  # type: ignore[return-value]  # None only for an abandoned call

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Whether all calls that run have ended within ``timeout_s``."""
        with self._idle:
            return self._idle.wait_for(lambda: self._running == 0, timeout_s)


def limiter_of_loop(places: RunVar[anyio.CapacityLimiter], width: int) -> anyio.CapacityLimiter:
    """That of this event loop: a limiter belongs to one, and a test may use several."""
    try:
        return places.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(width)
        places.set(limiter)
        return limiter


async def _acquire(places: anyio.CapacityLimiter, borrower: object) -> None:
    """Wait for a place, and for the client to read its replies, without a place meanwhile."""
    backlog = current_backlog.get()
    while True:
        await places.acquire_on_behalf_of(borrower)
        if backlog is None or backlog.may_begin():
            return
        places.release_on_behalf_of(borrower)
        await backlog.opened()


# --- work for a client that may leave -------------------------------------------------


async def while_connected(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """
    Run ``work`` and return its result. It is cancelled if the client closes the connection.

    Raises:
        ClientDisconnect: The client has closed the connection.
    """
    results: list[T] = []
    problems: list[Exception] = []

    async def run() -> None:
        try:
            results.append(await work())
        except Exception as error:  # noqa: BLE001 - raised below, as a group would wrap it
            problems.append(error)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        while (await request.receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()
    if problems:
        raise problems[0]
    if not results:
        raise ClientDisconnect
    return results[0]


# --- what waits for a client ----------------------------------------------------------
# A client may send without reading what it gets. Its requests and their replies then wait in the
# memory of the server, so the server stops reading, and begins no call, while they are too many.


#: Bytes of requests that are read and not yet answered, above which none is read.
MAX_UNANSWERED_BYTES = 16 * 1024 * 1024

#: Bytes of replies that the client has not read, above which no request is read and none begun.
MAX_UNREAD_BYTES = 16 * 1024 * 1024

_LOOK_S = 1.0  # between two looks whether the client has closed its end


class Backlog:
    """
    Counts the bytes of requests and of replies.

    The threads of the pipes and the event loop share it; `opened` belongs to the loop on which it
    was made.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._change = threading.Condition()
        self._unanswered = 0
        self._unread = 0
        self._opened = anyio.Event()

    def may_begin(self) -> bool:
        """Whether a call may begin: the client reads its replies."""
        return self._unread <= MAX_UNREAD_BYTES

    async def opened(self) -> None:
        """Return when a call may begin."""
        while not self.may_begin():
            if self._opened.is_set():
                self._opened = anyio.Event()
            await self._opened.wait()

    def read(self, size: int) -> None:
        """A request of ``size`` bytes was read."""
        self._count(unanswered=size)

    def answered(self, size: int) -> None:
        """A request of ``size`` bytes is done with."""
        self._count(unanswered=-size)

    def replied(self, size: int) -> None:
        """A reply of ``size`` bytes waits for the client."""
        self._count(unread=size)

    def sent(self, size: int) -> None:
        """The client has taken a reply of ``size`` bytes; called on the writing thread."""
        self._count(unread=-size)
        if self.may_begin():
            with suppress(RuntimeError):  # the loop is closed: the process is ending
                self._loop.call_soon_threadsafe(self._open)

    def wait_for_room(self, has_hung_up: Callable[[], bool], *, patience_s: float) -> bool:
        """
        Block the reading thread until another request may be read.

        Args:
            has_hung_up: Whether the client will send no more; that it has not read all replies
                must not keep the process alive.
            patience_s: How long to wait for room after that.

        Returns:
            False if there is no room, and the client has hung up.
        """
        with self._change:
            began = monotonic()
            while not self._change.wait_for(self._has_room, _LOOK_S):
                if has_hung_up() and monotonic() - began > patience_s:
                    return False
        return True

    def _open(self) -> None:
        self._opened.set()

    def _has_room(self) -> bool:
        return self.may_begin() and self._unanswered <= MAX_UNANSWERED_BYTES

    def _count(self, *, unanswered: int = 0, unread: int = 0) -> None:
        with self._change:
            self._unanswered += unanswered
            self._unread += unread
            self._change.notify_all()


#: That of the client whose request the current task answers; None without one.
current_backlog: ContextVar[Backlog | None] = ContextVar("qmd_backlog", default=None)

"""
How much a process holds for a client at the other end of two pipes.

A client may send without reading what it gets. Its requests and their replies then wait in the
memory of the server, so the server stops reading, and begins no call, while they are too many.
"""

from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import anyio

MAX_UNANSWERED_BYTES = 16 * 1024 * 1024
"""Bytes of requests that are read and not yet answered, above which none is read."""

MAX_UNREAD_BYTES = 16 * 1024 * 1024
"""Bytes of replies that the client has not read, above which no request is read and none begun."""

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


def has_hung_up(fd: int) -> bool:
    """Whether nobody can write into a pipe any more, even if it is not read to its end."""
    if not hasattr(select, "poll"):  # Windows
        return False
    look = select.poll()
    look.register(fd, 0)
    return any(
        event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in look.poll(0)
    )

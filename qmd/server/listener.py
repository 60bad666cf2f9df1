"""Provides a listening socket that still answers if the process has no file descriptors left."""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from contextlib import suppress
from typing import Any

from qmd.server.failures import Failure

_log = logging.getLogger(__name__)

MAX_CONNECTIONS = 512
"""Clients beyond this number get a 503."""

MIN_CONNECTIONS = 8
RESERVED_DESCRIPTORS = 48
"""The descriptors of the process's limit that are kept for the database, the watcher and files."""

QUEUE = 2048
"""The most clients that wait to be accepted; the system refuses more."""

AT_ONCE = 4
"""
The most connections to accept in one turn of the event loop. asyncio would accept all that wait
before the first of them is counted, and so use up the descriptors.
"""

_LOG_EVERY_S = 10.0
_BACK_OFF_S = 0.05

_REFUSAL = Failure(503, "Too many connections; try again later.").body()
_ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_REFUSAL), _REFUSAL)
)


def max_connections() -> int:
    """The number of connections that fit into the process's limit of descriptors."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MAX_CONNECTIONS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, limit - RESERVED_DESCRIPTORS))


class Listener(socket.socket):
    """
    A listening socket that answers a client with 503 if no descriptor is left for its connection.

    asyncio would log the failed `accept`, repeat it for every place in the queue, and set a timer
    for each repetition: 600,000 log lines in five seconds. So one descriptor is kept in reserve.
    It is closed for a moment to accept, answer and close such a connection.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._reserve = _spare_descriptor()
        self._refused = 0
        self._logged_at = float("-inf")

    def accept(self) -> tuple[socket.socket, Any]:
        """
        Accept the next client, and refuse clients as long as no descriptor is left.

        Raises:
            BlockingIOError: No client waits.
        """
        while True:
            try:
                return super().accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
            self._refuse()

    def listen(self, backlog: int = QUEUE, /) -> None:
        """Listen with a queue of `QUEUE`; ``backlog`` is ignored, as asyncio passes `AT_ONCE`."""
        super().listen(QUEUE)

    def close(self) -> None:
        super().close()
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None

    def _refuse(self) -> None:
        """
        Answer one waiting client with a 503.

        Raises:
            BlockingIOError: No client waits, or no descriptor could be freed.
        """
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
        try:
            connection, _ = super().accept()
            with connection, suppress(OSError):
                connection.setblocking(False)
                connection.send(_ANSWER)
                connection.shutdown(socket.SHUT_WR)
                # Closing a socket with unread data would reset it, and the answer would be lost.
                connection.recv(1 << 16)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):  # another thread took the reserve
                time.sleep(_BACK_OFF_S)
            raise BlockingIOError from error
        finally:
            self._reserve = _spare_descriptor()
        self._refused += 1
        now = time.monotonic()
        if now >= self._logged_at + _LOG_EVERY_S:
            _log.error(
                "The process may open no more files: %d connections were refused. "
                "'ulimit -n' raises the limit.",
                self._refused,
            )
            self._logged_at = now
            self._refused = 0


def _spare_descriptor() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None

"""Opens a socket and runs uvicorn on it; the caller handles signals and runs the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import os
import socket
import struct
import time
from collections.abc import Generator
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from qmd.errors import ConflictError, InputError
from qmd.server.failures import Failure
from qmd.server.security import CLIENT_UID
from qmd.server.streams import Streams
from qmd.system.peer import Peers

_log = logging.getLogger(__name__)

#: Seconds that a stopping server may take to finish its responses.
STOP_S = 10.0

#: Seconds that a connection may be silent before and between requests, or send a header.
REQUEST_TIMEOUT_S = 30.0

#: Seconds within which a client must take something of a response that waits for it.
READ_TIMEOUT_S = 60.0

#: Bytes of responses that all clients together leave waiting; above, the slowest are closed.
MAX_UNREAD_BYTES = 256 * 1024 * 1024

#: If no connection is free, one that has been silent for this many seconds is closed.
SILENT_S = 1.0


# --- the listening socket --------------------------------------------------------------


#: Clients beyond this number get a 503.
MAX_CONNECTIONS = 512

MIN_CONNECTIONS = 8
#: The descriptors of the process's limit that are kept for the database, the watcher and files.
RESERVED_DESCRIPTORS = 48

#: The most clients that wait to be accepted; the system refuses more.
QUEUE = 2048

#: The most connections to accept in one turn of the event loop. asyncio would accept all that wait
#: before the first of them is counted, and so use up the descriptors.
AT_ONCE = 4

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
            with connection, contextlib.suppress(OSError):
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


def listen(host: str, port: int) -> socket.socket:
    """
    Open a listening TCP socket; ``port`` 0 takes a free port.

    Raises:
        ConflictError: Another process listens on the port.
        InputError: The host is not an address of this machine, or the port is not allowed.
    """
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
        )
    except (socket.gaierror, UnicodeError) as error:
        raise InputError(
            f"Not a host to listen on: {host}", hint="Leave --host out for this machine only."
        ) from error
    # "localhost" is 127.0.0.1 to every client, and ::1 only to some.
    family, _, _, _, address = min(addresses, key=lambda entry: entry[0] != socket.AF_INET)
    # asyncio switches Nagle's algorithm off only if the protocol is given as TCP. Otherwise each
    # answer on a connection that stays open waits 40 ms for an acknowledgement.
    listener = Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # So that connections of clients that have vanished are closed.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.bind(address)
        listener.listen()  # from now on clients wait instead of being refused
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConflictError(
                f"Port {port} on {host} is in use.",
                hint="Give another one with --port; --port 0 takes any that is free.",
            ) from error
        raise InputError(
            f"Cannot listen on {host}, port {port}: {error.strerror}",
            hint="Give an address of this machine and a port above 1023.",
        ) from error
    except BaseException:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """The URL at which programs of this machine reach the server."""
    host, port = listener.getsockname()[:2]
    if host == "0.0.0.0":  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


# --- the server ------------------------------------------------------------------------


class HttpServer:
    """
    Serves an application on a listening socket until `stop`.

    Args:
        peers: Finds the user whose program opened a connection.
        stop_s: Seconds that a stopping server may take to finish its responses.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        streams: Streams,
        *,
        peers: Peers | None = None,
        stop_s: float = STOP_S,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=functools.partial(_Protocol, peers, max_connections()),  # type: ignore[arg-type]
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=AT_ONCE,  # connections accepted in one go; `Listener` sets how many may wait
            timeout_keep_alive=int(REQUEST_TIMEOUT_S),
            timeout_graceful_shutdown=max(1, round(stop_s)),
        )
        self._server = _Server(config)
        self._listener = listener
        self._streams = streams

    async def serve(self) -> None:
        """Serve until `stop`; return after the last response, or when its time is over."""
        await self._server.serve(sockets=[self._listener])

    def stop(self) -> None:
        """Accept no more connections, and finish the responses. For the event loop only."""
        self._streams.close()
        self._server.should_exit = True


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # `process` handles signals for all transports


class _Protocol(H11Protocol):
    """
    uvicorn's protocol with four additions.

    A client that sends nothing, or half a header, is disconnected after `REQUEST_TIMEOUT_S`, and
    one that does not read its response after `READ_TIMEOUT_S`, or earlier if they are many. An
    error outside the application has the same shape as others. With ``peers`` the state of a
    connection has the user id of the program that opened it.
    """

    def __init__(
        self, peers: Peers | None, connection_limit: int, *args: Any, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._peers = peers
        self._connection_limit = connection_limit
        self._unread = 0  # bytes that waited when the client was last looked at
        self._unread_since = 0.0
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._peers is not None:
            uid = self._peers.uid(transport.get_extra_info("socket"))
            self.app_state = {**self.app_state, CLIENT_UID: uid}
        if len(self.connections) > self._connection_limit and not self._make_room():
            self._answer(503, "Too many connections; try again later.")
            return
        self._expect_request()

    def _make_room(self) -> bool:
        """
        Close the connection that has been silent for longest.

        Returns:
            Whether one had been silent for `SILENT_S`, and is closed.
        """
        # Connection → the time at which its timeout would close it.
        silent: dict[_Protocol, float] = {
            connection: connection.timeout_keep_alive_task.when()
            for connection in self.connections
            if isinstance(connection, _Protocol) and connection.timeout_keep_alive_task is not None
        }
        oldest = min(silent, key=lambda connection: silent[connection], default=None)
        if oldest is None or silent[oldest] - REQUEST_TIMEOUT_S + SILENT_S > self.loop.time():
            return False
        oldest.timeout_keep_alive_handler()
        return True

    def data_received(self, data: bytes) -> None:
        deadline, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        super().data_received(data)
        if deadline is None:
            return
        in_header = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if in_header and self._is_idle():
            self.timeout_keep_alive_task = deadline  # a part of a header does not extend the time
        else:
            deadline.cancel()

    def _is_idle(self) -> bool:
        return self.timeout_keep_alive_task is None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._end_look()

    def pause_writing(self) -> None:
        """The client takes less than is sent."""
        super().pause_writing()
        self._unread_since = self.loop.time()
        self._look_later()
        self._close_slowest()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_look()

    def _look_later(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._look = self.loop.call_later(READ_TIMEOUT_S, self._look_at_client)

    def _look_at_client(self) -> None:
        if self.transport.get_write_buffer_size() >= self._unread:
            self._abort()
        else:
            self._look_later()

    def _end_look(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _abort(self) -> None:
        """Close at once; the system would keep, too, what waits for the client."""
        at_once = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):  # the client has just left
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, at_once
            )
        self.transport.abort()

    def _close_slowest(self) -> None:
        """Close the connections that have waited for longest, until the others fit the memory."""
        waiting = [
            (connection._unread_since, id(connection), connection)
            for connection in self.connections
            if isinstance(connection, _Protocol) and connection._look is not None
        ]
        total = sum(each.transport.get_write_buffer_size() for _, _, each in waiting)
        for _, _, connection in sorted(waiting):
            if total <= MAX_UNREAD_BYTES or connection is self:
                return
            total -= connection.transport.get_write_buffer_size()
            connection._abort()

    def send_400_response(self, msg: str) -> None:
        self._answer(400, msg)

    def _expect_request(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            REQUEST_TIMEOUT_S, self.timeout_keep_alive_handler
        )

    def _answer(self, status: int, detail: str) -> None:
        body = Failure(status, detail).body()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events: list[Any] = [
            h11.Response(status_code=status, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        with contextlib.suppress(h11.LocalProtocolError):
            for event in events:
                data = self.conn.send(event)
                if data is not None:
                    self.transport.write(data)
        self.transport.close()

"""
One server process: which transports it speaks, how it starts, and every way it ends.

It ends by SIGTERM or SIGINT, and by the end of stdin where a client holds the other end.
Answers that are owed over HTTP are finished first (10 seconds at most); a second signal ends
the process at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import anyio

from qmd import __version__
from qmd.errors import ConfigError, ConflictError, QmdError
from qmd.kb import KnowledgeBase
from qmd.server import stdio
from qmd.server.logs import LogFormat, log_to_stderr
from qmd.server.mcp import McpFace
from qmd.server.security import Security, security_for
from qmd.system import running
from qmd.system.peer import Peers
from qmd.tools.toolsets import select

if TYPE_CHECKING:
    from qmd.server.http import HttpServer

Transport = Literal["both", "mcp", "http"]

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 18765
AUTO_TOKEN = "auto"  # noqa: S105 - the word that asks for one

_IDLE_S = 2.0  # how long a call nobody waits for may hold up the end of the process
_END_S = 13.0  # the last resort: a stopping process that still lives is ended

_log = logging.getLogger("qmd.server")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What `qmd server` was told."""

    transport: Transport = "both"
    database: Path | None = None  # to tell whose server has the port
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)  # "auto": made at the start
    allowed_hosts: tuple[str, ...] = ()
    allow_other_users: bool = False  # of this machine, without a token
    read_only: bool = False
    toolsets: tuple[str, ...] = ()  # none: all of them
    adopt_posts: bool = False  # make the archive of posts a collection
    watch: bool = True
    log_format: LogFormat = "text"
    access_log: bool = False


Beside = Callable[[KnowledgeBase, str, threading.Event], None]
"""Runs on a thread beside the server: the knowledge base, the server's URL, and the stop."""


def serve(
    open_kb: Callable[[], KnowledgeBase], options: ServerOptions, beside: Beside | None = None
) -> int:
    """
    Serve until told to stop; returns the process's exit code (130 after SIGINT, else 0).

    With stdin and stdout among the transports, stdout belongs to the protocol from here on.
    ``open_kb`` opens the database (and creates it where there is none). The index is kept
    true to the disk meanwhile, unless ``beside`` is there to see to that.

    Raises:
        ConflictError: The port is taken, or another server of the database runs while the token
            is ours to make; and HTTP is all that was asked for.
        ConfigError: The token that was made cannot be kept beside the database.
        InputError: The host cannot be listened on, or demands a token.
        StoreError: From ``open_kb``.
    """
    over_http = options.transport != "mcp"
    over_stdio = options.transport == "mcp" or (
        options.transport == "both" and stdin_has_a_client()
    )
    quiet = not over_http or beside is not None
    log_to_stderr(options.log_format, logging.WARNING if quiet else logging.INFO)
    security = Security()
    listener = None
    peers = None
    token_is_made = over_http and options.token == AUTO_TOKEN
    if token_is_made:
        options = replace(options, token=secrets.token_urlsafe(32))
    if over_http:
        security = security_for(options.host, options.token, options.allowed_hosts)
        listener = _listen(options, alone=not over_stdio, only_server=token_is_made)
    if listener is not None and not options.allow_other_users:
        peers = Peers.open(listener.family)
    if peers is not None:
        security = replace(security, users=frozenset({0, os.geteuid()}))
    try:
        wire = stdio.claim_wire() if over_stdio else None
        kb = open_kb()
    except BaseException:
        if listener is not None:
            listener.close()
        raise
    process = _Process(kb, options, security, peers, beside, token_is_made=token_is_made)
    if options.adopt_posts and not options.read_only:
        _adopt_posts(kb)
    if beside is None and options.watch and not options.read_only:
        kb.keep()
    anyio.run(process.run, wire, listener)
    if not process.is_idle(_IDLE_S):
        # A call that its client gave up on or that a signal cut short. SQLite needs no
        # goodbye, and waiting would make the time to stop a matter of luck.
        sys.stderr.flush()
        os._exit(process.exit_code)
    kb.close()
    if process.last_resort is not None:
        process.last_resort.cancel()
    return process.exit_code


def _adopt_posts(kb: KnowledgeBase) -> None:
    try:
        added = kb.posts.adopt()
    except QmdError as error:
        _log.warning("The posts are not indexed; their tools read the files. %s", error)
        return
    if added is not None:
        fields = {"collection": added.name, "path": added.path}
        _log.info("added the posts", extra={"fields": fields})


def serve_stdio(open_kb: Callable[[], KnowledgeBase]) -> int:
    """Serve one client over stdin and stdout until it leaves; returns the exit code."""
    return serve(open_kb, ServerOptions(transport="mcp"))


def stdin_has_a_client() -> bool:
    """
    Whether stdin may carry a protocol: a pipe, a socket or a file.

    Not a terminal: reading one from the background would stop the process. Not /dev/null
    or a closed descriptor, which is what services are started with.
    """
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return not stat.S_ISCHR(mode)


def _listen(
    options: ServerOptions, *, alone: bool, only_server: bool = False
) -> socket.socket | None:
    """
    None if the port is taken and there is another transport to go on with.

    ``only_server``: no other may run for the database, since commands know the token of one.
    """
    from qmd.server.http import listen

    try:
        if only_server:
            _refuse_a_second(options)
        return listen(options.host, options.port)
    except ConflictError as error:
        if alone:
            raise _explained(error, options) from None
        _log.warning("%s MCP goes on over stdin and stdout. %s", error, error.hint)
        return None


def _refuse_a_second(options: ServerOptions) -> None:
    other = None if options.database is None else running.find(options.database)
    if other is not None and (other.started is not None or running.answers(other)):
        raise ConflictError(
            f"A server of this database listens at {other.url} already (process {other.pid}); "
            "the token of a second one would be known to nobody.",
            hint="Use that one, or stop it; or give this one a token of your own: QMD_TOKEN.",
        )


def _explained(error: ConflictError, options: ServerOptions) -> ConflictError:
    """Names the server of this very database, if it is that which has the port."""
    other = None if options.database is None else running.find(options.database)
    if other is None or urlsplit(other.url).port != options.port:
        return error
    return ConflictError(
        f"{error} The qmd server of this database listens there (process {other.pid}).",
        hint=f"Use it: {other.url}; or stop it, or give another port with --port.",
    )


class _Process:
    def __init__(
        self,
        kb: KnowledgeBase,
        options: ServerOptions,
        security: Security,
        peers: Peers | None,
        beside: Beside | None,
        *,
        token_is_made: bool,
    ) -> None:
        self.face = McpFace(kb, select(options.toolsets, read_only=options.read_only))
        self.stopped_by: signal.Signals | None = None
        self.last_resort: threading.Timer | None = None
        self._kb = kb
        self._options = options
        self._security = security
        self._peers = peers
        self._token_is_made = token_is_made
        self._beside = beside
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._stop: anyio.Event
        self._url: str | None = None

    @property
    def exit_code(self) -> int:
        return 130 if self.stopped_by is signal.SIGINT else 0

    async def run(self, wire: stdio.Wire | None, listener: socket.socket | None) -> None:
        self._stop = anyio.Event()
        with self._signals():
            try:
                http = None if listener is None else self._http(listener)
                async with anyio.create_task_group() as tasks:
                    if http is not None:
                        tasks.start_soon(self._serve_http, http)
                    if wire is not None:
                        tasks.start_soon(self._serve_stdio, wire)
                    self._start_beside()
                    await self._stop.wait()
                    self._stopping.set()
                    self._withdraw()
                    self.last_resort = _end_within(_END_S, self.exit_code)
                    self.face.subscriptions.close()
                    if http is not None:
                        http.stop()
            finally:
                self._stopping.set()
                self._withdraw()

    def is_idle(self, timeout_s: float) -> bool:
        """Whether all that worked for this process has ended, within about ``timeout_s``."""
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                return False
        return self.face.wait_until_idle(timeout_s)

    def _start_beside(self) -> None:
        beside, url = self._beside, self._url
        if beside is not None and url is not None:
            self._thread = threading.Thread(
                target=lambda: beside(self._kb, url, self._stopping), name="qmd-beside", daemon=True
            )
            self._thread.start()

    async def _serve_stdio(self, wire: stdio.Wire) -> None:
        await stdio.serve(self.face.server, wire, self._stop)
        self._stop.set()  # our client has left

    async def _serve_http(self, http: HttpServer) -> None:
        await http.serve()
        self._stop.set()

    def _http(self, listener: socket.socket) -> HttpServer:
        from qmd.server.app import Streams, build_app
        from qmd.server.http import HttpServer, url_of

        streams = Streams()
        app = build_app(
            self._kb,
            security=self._security,
            read_only=self._options.read_only,
            face=self.face,
            streams=streams,
            access_log=self._options.access_log,
        )
        self._url = url_of(listener)
        self._announce(self._url)
        return HttpServer(app, listener, streams, peers=self._peers)

    def _announce(self, url: str) -> None:
        token = self._options.token
        guard: running.Guard = "everyone" if self._security.users is None else "user"
        server = running.RunningServer(
            url, os.getpid(), token, __version__, guard if token is None else "token"
        )
        try:
            first = running.announce(self._kb.path, server)
        except OSError as error:  # a directory we may only read: nobody will find us
            if self._token_is_made:
                raise ConfigError(
                    f"The token cannot be kept beside the database: {error.strerror}",
                    hint="Give one of your own in QMD_TOKEN, or make the directory writable.",
                ) from error
            _log.warning("Other qmd processes will not find this server: %s", error.strerror)
            first = True
        fields = {"url": url, "mcp": url + "/mcp", "database": str(self._kb.path)}
        _log.info("serving", extra={"fields": fields})
        if not first:
            _log.warning("Another server runs for this database; both answer.")

    def _withdraw(self) -> None:
        if self._url is not None:
            with suppress(OSError):
                running.withdraw(self._kb.path, os.getpid())

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first SIGTERM or SIGINT stops the server, a second one ends the process."""
        loop = asyncio.get_running_loop()

        def received(number: int, frame: FrameType | None) -> None:
            if self.stopped_by is not None:
                self._withdraw()
                os._exit(128 + number)
            self.stopped_by = signal.Signals(number)
            loop.call_soon_threadsafe(self._stop.set)

        before = {each: signal.signal(each, received) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            with _woken_by_signals(loop):
                yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """
    Wake a sleeping loop at any signal, so that its handler runs.

    The system may hand a signal to any thread, but Python's handler runs in this one alone:
    asleep in its selector, it would not hear of it before the next request.
    """
    if sys.platform == "win32":  # asyncio's loop does so by itself there
        yield
        return
    heard, told = socket.socketpair()
    with heard, told:
        heard.setblocking(False)
        told.setblocking(False)
        loop.add_reader(heard, lambda: heard.recv(1024))
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(heard)


def _end_within(seconds: float, code: int) -> threading.Timer:
    """However the rest hangs, the process ends."""

    def end() -> None:
        _log.error("Still busy %d seconds after the signal to stop; ending.", seconds)
        sys.stderr.flush()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer

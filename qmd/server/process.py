"""
Runs one server process: starts the transports, handles signals and ends the process.

The process ends on SIGTERM or SIGINT, or when a client on stdin closes it. Running HTTP requests
are answered first (10 seconds at most). A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import gc
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
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

import anyio

from qmd import __version__, agent, server
from qmd.errors import ConfigError, ConflictError, InputError, QmdError
from qmd.kb import KnowledgeBase
from qmd.server.late_mcp import MCP_PATH, LateMcp
from qmd.server.logs import FILE_ONLY, LogFormat, log_to_file, log_to_stderr
from qmd.server.security import Security, security_for
from qmd.system import memory, running
from qmd.system.peer import Peers
from qmd.tools.toolsets import ToolSelection, select, select_by_database
from qmd.values.writing import Language

if TYPE_CHECKING:
    from qmd.agent.chat import Chats
    from qmd.server.http import HttpServer
    from qmd.server.stdio import Wire
    from qmd.values.location import DatabaseLocation

Transport = Literal["both", "mcp", "http"]

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 18765
AUTO_TOKEN = "auto"  # noqa: S105 - the option's word for a generated token

_IDLE_S = 2.0  # the longest that an abandoned call delays the end of the process
_END_S = 13.0  # after the signal to stop; a process that still runs then is killed
_GC_THRESHOLDS = (700, 10, 10)  # Python's defaults

_log = logging.getLogger("qmd.server")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of `qmd server`."""

    transport: Transport = "both"
    database: DatabaseLocation | None = (
        None  # for errors that name another server of the same database
    )
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)  # "auto": generated at the start
    oauth_issuer: str | None = None  # who else issues tokens (OAuth 2.1)
    oauth_resource: str | None = None  # the URL at which clients reach MCP; None for this server's
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()  # whose pages may use the server
    allow_other_users: bool = False  # without a token, serve every user of this machine
    read_only: bool = False
    toolsets: tuple[str, ...] = ()  # empty: the tools that the database calls for
    language: Language | None = None  # of the tools' descriptions; None: of their specifications
    plain_text: bool = False  # each reply over MCP is one text
    adopt_posts: bool = False  # make the archive of posts a collection
    watch: bool = True
    log_format: LogFormat = "text"
    access_log: bool = False
    log_file: Path | None = None  # where the log goes, besides stderr
    command: str = ""  # what was typed to start it
    editor: str | None = None  # the setting; its link stands on the pages of notes


#: Runs on a thread beside the server; takes the knowledge base, the URL and the stop event.
Beside = Callable[[KnowledgeBase, str, threading.Event], None]


def serve(
    open_kb: Callable[[], KnowledgeBase], options: ServerOptions, beside: Beside | None = None
) -> int:
    """
    Serve until a signal arrives or the client on stdin closes it.

    If MCP is served over stdin and stdout, no other code may write to stdout from now on.

    Args:
        open_kb: Opens or creates the database.
        beside: Runs on a thread beside the server and keeps the index up to date; None to let the
            server do that.

    Returns:
        The exit code: 130 after SIGINT, else 0.

    Raises:
        ConflictError: HTTP is the only transport, and the port is taken; or a token must be
            generated, and another server of the database runs.
        ConfigError: The generated token cannot be stored beside the database.
        InputError: The host is not an address of this machine, or it requires a token.
        StoreError: From ``open_kb``.
    """
    over_http = options.transport != "mcp"
    over_stdio = options.transport == "mcp" or (
        options.transport == "both" and stdin_has_a_client()
    )
    logs_warnings_only = not over_http or beside is not None
    log_to_stderr(options.log_format, logging.WARNING if logs_warnings_only else logging.INFO)
    if options.log_file is not None:
        log_to_file(options.log_file, options.database)
    with _logged_failure("The server cannot start."):
        port = _open_port(options, is_only_transport=not over_stdio) if over_http else None
        try:
            wire = server.stdio.claim_wire() if over_stdio else None
            kb = open_kb()
        except BaseException:
            if port is not None:
                port.listener.close()
            raise
    if wire is not None:
        fields = {"database": str(kb.location), "version": __version__}
        _log.info("serving a client on stdin", extra={"fields": fields, FILE_ONLY: True})
    process = _ServerProcess(kb, options, port, beside)
    if wire is not None:
        process.mcp.face()
    _start_indexing(kb, options, kept_by_caller=beside is not None)
    gc.set_threshold(*_GC_THRESHOLDS)  # `qmd.__main__` raised them for the start
    memory.settle()
    with _logged_failure("The server failed."):
        anyio.run(process.run, wire)
    _log.info("stopped", extra={"fields": process.reason})
    _finish(process, kb)
    return process.exit_code


@contextmanager
def _logged_failure(what: str) -> Iterator[None]:
    """Write an error of the block into the log file; the caller reports it on stderr."""
    try:
        yield
    except QmdError as error:
        _log.error("%s %s", what, error, extra={FILE_ONLY: True})
        raise
    except Exception as error:
        _log.error("%s", what, exc_info=error, extra={FILE_ONLY: True})
        raise


class _HttpPort(NamedTuple):
    """
    The port on which HTTP is served, and who may use it.

    Attributes:
        peers: Finds the user whose program opened a connection; None if any user may connect.
    """

    listener: socket.socket
    security: Security
    peers: Peers | None


def _open_port(options: ServerOptions, *, is_only_transport: bool) -> _HttpPort | None:
    """
    Listen on the port of the options; None if it is taken, and only stdin and stdout are served.

    Raises:
        ConflictError, InputError: As `serve`.
    """
    if options.oauth_issuer is not None and options.token is None:
        raise InputError(
            "With --oauth-issuer each client needs a token, and the administrator one, too.",
            hint="Set QMD_TOKEN, or give --token auto.",
        )
    token = secrets.token_urlsafe(32) if options.token == AUTO_TOKEN else options.token
    security = security_for(options.host, token, options.allowed_hosts, options.allowed_origins)
    try:
        if options.token == AUTO_TOKEN:
            _refuse_second_server(options)
        listener = server.http.listen(options.host, options.port)
    except ConflictError as error:
        if is_only_transport:
            raise _with_other_server(error, options) from None
        _log.warning("%s MCP goes on over stdin and stdout. %s", error, error.hint)
        return None
    peers = None if options.allow_other_users else Peers.open(listener.family)
    if peers is not None:
        security = replace(security, users=frozenset({0, os.geteuid()}))
    return _HttpPort(listener, security, peers)


def _start_indexing(kb: KnowledgeBase, options: ServerOptions, *, kept_by_caller: bool) -> None:
    if options.adopt_posts and not options.read_only:
        _adopt_posts(kb)
    if options.watch and not options.read_only:
        if not kept_by_caller:
            kb.keep()
    else:
        kb.follow()


def _selection(options: ServerOptions) -> ToolSelection:
    read_only, language = options.read_only, options.language
    if not options.toolsets:
        return select_by_database(read_only=read_only, language=language)
    return select(options.toolsets, read_only=read_only, language=language)


def _finish(process: _ServerProcess, kb: KnowledgeBase) -> None:
    """Close the knowledge base; if a call still runs, end the process at once instead."""
    if not process.is_idle(_IDLE_S):
        # The client gave up on that call, or a signal cut it short. SQLite needs no orderly
        # close, and waiting would make the time to stop unpredictable.
        sys.stderr.flush()
        os._exit(process.exit_code)
    kb.close()
    if process.last_resort is not None:
        process.last_resort.cancel()


def _adopt_posts(kb: KnowledgeBase) -> None:
    try:
        added = kb.posts.adopt()
    except QmdError as error:
        _log.warning("The posts are not indexed; their tools read the files. %s", error)
        return
    if added is not None:
        fields = {"collection": added.name, "path": added.path}
        _log.info("added the posts", extra={"fields": fields})


def stdin_has_a_client() -> bool:
    """
    Whether a client may be at the other end of stdin: whether it is a pipe, a socket or a file.

    A terminal does not count, because reading from it in the background would stop the process.
    /dev/null and a closed stdin do not count, because services are started with these.
    """
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return not stat.S_ISCHR(mode)


def _refuse_second_server(options: ServerOptions) -> None:
    """Commands would not know the token of the second one."""
    other = None if options.database is None else running.find(options.database)
    if other is not None and (other.started is not None or running.answers(other)):
        raise ConflictError(
            f"A server of this database listens at {other.url} already (process {other.pid}); "
            "the token of a second one would be known to nobody.",
            hint="Use that one, or stop it; or give this one a token of your own: QMD_TOKEN.",
        )


def _with_other_server(error: ConflictError, options: ServerOptions) -> ConflictError:
    """The error for a taken port. If a server of the database has the port, it names the server."""
    other = None if options.database is None else running.find(options.database)
    if other is None or urlsplit(other.url).port != options.port:
        return error
    return ConflictError(
        f"{error} The qmd server of this database listens there (process {other.pid}).",
        hint=f"Use it: {other.url}; or stop it, or give another port with --port.",
    )


class _ServerProcess:
    """The transports of one server, from their start to their end."""

    def __init__(
        self,
        kb: KnowledgeBase,
        options: ServerOptions,
        port: _HttpPort | None,
        beside: Beside | None,
    ) -> None:
        self.mcp = LateMcp(kb, _selection(options), plain_text=options.plain_text)
        self.stopped_by: signal.Signals | None = None
        self.last_resort: threading.Timer | None = None
        self._kb = kb
        self._options = options
        self._port = port
        self._beside = beside
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._stop: anyio.Event
        self._url: str | None = None
        self._chats: Chats | None = None

    @property
    def exit_code(self) -> int:
        return 130 if self.stopped_by is signal.SIGINT else 0

    @property
    def reason(self) -> dict[str, str]:
        """Why the server stops, as fields of its log."""
        if self.stopped_by is None:
            return {"reason": "the client has left"}
        return {"reason": self.stopped_by.name}

    async def run(self, wire: Wire | None) -> None:
        """Serve until the process stops; ``wire``: stdin and stdout if MCP is served over them."""
        self._stop = anyio.Event()
        with self._signals():
            try:
                http = self._http_server()
                async with anyio.create_task_group() as tasks:
                    if http is not None:
                        tasks.start_soon(self._serve_http, http)
                    if wire is not None:
                        tasks.start_soon(self._serve_stdio, wire)
                    self._start_beside()
                    await self._stop.wait()
                    self._stopping.set()
                    self._withdraw()
                    self.last_resort = _kill_after(_END_S, self.exit_code)
                    self.mcp.close_subscriptions()
                    if self._chats is not None:
                        self._chats.stop_all()
                    if http is not None:
                        http.stop()
            finally:
                self._stopping.set()
                self._withdraw()

    def is_idle(self, timeout_s: float) -> bool:
        """Whether all calls and threads of this server end within about ``timeout_s``."""
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                return False
        return self.mcp.wait_until_idle(timeout_s)

    def _start_beside(self) -> None:
        beside, url = self._beside, self._url
        if beside is not None and url is not None:
            self._thread = threading.Thread(
                target=lambda: beside(self._kb, url, self._stopping), name="qmd-beside", daemon=True
            )
            self._thread.start()

    async def _serve_stdio(self, wire: Wire) -> None:
        await server.stdio.serve(self.mcp.face().server, wire, self._stop)
        self._stop.set()  # the client has closed stdin

    async def _serve_http(self, http: HttpServer) -> None:
        await http.serve()
        self._stop.set()

    def _http_server(self) -> HttpServer | None:
        port = self._port
        if port is None:
            return None
        streams = server.streams.Streams()
        options = self._options
        oauth = None
        if options.oauth_issuer is not None:
            resource = options.oauth_resource or server.http.url_of(port.listener) + MCP_PATH
            oauth = server.oauth.check_options(options.oauth_issuer, resource)
        self._chats = agent.chat.Chats(
            self._kb, toolsets=options.toolsets, may_write=not options.read_only
        )
        app = server.app.build_app(
            self._kb,
            security=port.security,
            oauth=oauth,
            read_only=self._options.read_only,
            face=self.mcp,
            streams=streams,
            access_log=self._options.access_log,
            chats=self._chats,
            editor=self._options.editor,
        )
        self._url = server.http.url_of(port.listener)
        self._announce(self._url, port)
        return server.http.HttpServer(app, port.listener, streams, peers=port.peers)

    def _announce(self, url: str, port: _HttpPort) -> None:
        """Store the address beside the database, where other qmd processes look for it."""
        guard: running.Audience = "everyone" if port.security.users is None else "user"
        token = port.security.token
        if token is not None:
            guard = "token"
        server = running.RunningServer(
            url, os.getpid(), token, __version__, guard, command=self._options.command
        )
        try:
            is_first = running.announce(self._kb.location, server)
        except OSError as error:  # the directory cannot be written
            if self._options.token == AUTO_TOKEN:
                raise ConfigError(
                    f"The token cannot be kept beside the database: {error.strerror}",
                    hint="Give one of your own in QMD_TOKEN, or make the directory writable.",
                ) from error
            _log.warning("Other qmd processes will not find this server: %s", error.strerror)
            is_first = True
        fields = {
            "url": url,
            "mcp": url + "/mcp",
            "database": str(self._kb.location),
            "version": __version__,
        }
        _log.info("serving", extra={"fields": fields})
        if not is_first:
            other = running.find(self._kb.location)
            if other is None or other.version == __version__:
                _log.warning("Another server runs for this database; both answer.")
            else:
                _log.warning(
                    "Another server runs for this database, process %d of qmd %s: end it, so that"
                    " this one can keep the index.",
                    other.pid,
                    other.version,
                )

    def _withdraw(self) -> None:
        if self._url is not None:
            with suppress(OSError):
                running.withdraw(self._kb.location, os.getpid())

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Make the first SIGTERM or SIGINT stop the server, and a second one end the process."""
        loop = asyncio.get_running_loop()

        def handle(signal_number: int) -> None:
            if self.stopped_by is not None:
                self._withdraw()
                os._exit(128 + signal_number)
            self.stopped_by = signal.Signals(signal_number)
            self._stop.set()

        previous = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
        for each in previous:
            try:
                # It also wakes a loop that sleeps while another thread gets the signal.
                loop.add_signal_handler(each, handle, each)
            except NotImplementedError:  # on Windows, whose loop wakes by itself
                signal.signal(each, lambda number, _: loop.call_soon_threadsafe(handle, number))
        try:
            yield
        finally:
            for each, handler in previous.items():
                with suppress(NotImplementedError):
                    loop.remove_signal_handler(each)
                signal.signal(each, handler)


def _kill_after(seconds: float, code: int) -> threading.Timer:
    """Start a timer that ends the process after ``seconds``, even if a thread hangs."""

    def end() -> None:
        _log.error("Still busy %d seconds after the signal to stop; ending.", seconds)
        sys.stderr.flush()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer

"""
Sends an HTTP request and reads the reply, within limits; finds the proxy that it goes through.

This is the only HTTP client of qmd. It sends requests to model servers (`qmd.inference`), to the
qmd server on this machine (`running`), and for pages that are saved (`web`). It uses the standard
library's `http.client`, because the process of ``qmd search`` may need it, and httpx2 takes 0.2 s
to import. The time limits of HTTP libraries apply to each read, so a server that sends one byte per
second could block its caller for ever. Here each wait is cut to the time that remains.

Redirects are never followed, so no header (and no key) reaches a host that the caller did not name.
Apart from ``User-Agent: qmd``, only the caller's data is sent.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from qmd import libraries

PIECE_BYTES = 1 << 16
CONNECT_S = 10.0

_URL_SAFE = "%/:=&?~+!$,;'@()*[]"  # printable ASCII that a path may contain unquoted


class HttpError(Exception):
    """There is no usable reply. The message gives the reason in a few words."""


class UnreachableError(HttpError):
    """No connection was possible, or it was lost before the reply began."""


class NotHttpError(UnreachableError):
    """The server does not speak HTTP."""


class TimeLimitError(HttpError):
    """The time for the request, or for the next piece of the reply, is up."""


class BrokenOffError(HttpError):
    """The connection was lost in the middle of the reply."""


class UnreadableReplyError(HttpError):
    """The body is longer than the caller allows, or not packed as the header says."""


class TimeLimit:
    """
    The time that a request may take.

    Args:
        wait_s: The longest time between two calls of `restart`, or from the start to the first.
        total_s: The longest time for the whole request; None for no such limit.
    """

    def __init__(self, wait_s: float, total_s: float | None = None) -> None:
        now = monotonic()
        self._wait_s = wait_s
        self._end = float("inf") if total_s is None else now + total_s
        self._limit = min(now + wait_s, self._end)

    def restart(self) -> None:
        """Start a new wait, because the reply makes progress."""
        self._limit = min(monotonic() + self._wait_s, self._end)

    def left_s(self) -> float:
        """The seconds that remain, above 0. Raises TimeoutError if none remain."""
        left = self._limit - monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class HttpReply:
    """
    A reply whose head was received. The body is received as the caller reads it.

    The names in ``headers`` are in lower case.
    """

    def __init__(self, response: http.client.HTTPResponse, limit: TimeLimit) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._response = response
        self._limit = limit

    def progress(self) -> None:
        """Start a new wait for the next piece. The caller decides which pieces are progress."""
        self._limit.restart()

    def pieces(self) -> Iterator[bytes]:
        """
        Yield the decompressed body as it is received, at most `PIECE_BYTES` in each piece.

        Raises:
            TimeLimitError: `progress` was not called in time.
            BrokenOffError: The connection was lost.
            UnreadableReplyError: The body is not compressed as ``Content-Encoding`` says.
        """
        encoding = self.headers.get("content-encoding", "").strip().lower()
        pieces = self._raw_pieces()
        return _decompress(pieces) if encoding in {"gzip", "x-gzip", "deflate"} else pieces

    def read(self, max_bytes: int) -> bytes:
        """Read the whole body. Raises as `pieces`, and UnreadableReplyError if it is too long."""
        body = bytearray()
        for piece in self.pieces():
            body += piece
            if len(body) > max_bytes:
                size = f"{max_bytes / 1e6:.0f} MB" if max_bytes >= 1e6 else f"{max_bytes >> 10} KB"
                raise UnreadableReplyError(f"more than {size}")
        return bytes(body)

    def beginning(self, max_bytes: int) -> bytes:
        """Read up to ``max_bytes`` of the body; less if the body ends, fails or the time is up."""
        body = bytearray()
        with suppress(HttpError):
            for piece in self.pieces():
                body += piece
                if len(body) >= max_bytes:
                    break
        return bytes(body[:max_bytes])

    def _raw_pieces(self) -> Iterator[bytes]:
        # The length is counted here, because `read1` of older versions of Python does not.
        remaining = self._response.length
        try:
            while remaining is None or remaining > 0:
                piece = self._response.read1(
                    PIECE_BYTES if remaining is None else min(remaining, PIECE_BYTES)
                )
                if not piece:
                    break
                if remaining is not None:
                    remaining -= len(piece)
                yield piece
                self._limit.left_s()  # a server may send pieces that are no progress for ever
        except TimeoutError:
            raise TimeLimitError("no answer in time") from None
        except (OSError, ValueError, http.client.HTTPException):
            raise BrokenOffError("the connection broke off") from None
        if remaining:
            raise BrokenOffError("the connection broke off")


@contextmanager
def request(
    url: str,
    *,
    limit: TimeLimit,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    connect_s: float = CONNECT_S,
    use_proxy: bool = True,
    address: str | None = None,
) -> Iterator[HttpReply]:
    """
    Send one request and yield the reply, whatever its status; close the connection at the end.

    Args:
        url: ``http://`` or ``https://``, host, port, path and query.
        limit: The time limit of the request and the whole reply.
        body: The body of a POST; None to send a GET.
        connect_s: The longest wait for the connection alone.
        use_proxy: Whether to go through the proxy that the environment names.
        address: Of the host, if the caller has looked it up; a proxy looks it up itself.

    Raises:
        UnreachableError: There is no connection, or the server does not speak HTTP (NotHttpError).
        TimeLimitError: The head of the reply was not received in time.
        qmd.system.http_client.ProxyError: The proxy of the environment cannot be used.
    """
    with ExitStack() as stack:
        try:
            chosen_proxy = proxy_for(url) if use_proxy else None
            link = _Link(chosen_proxy, address, connect_s)
            response = _exchange(url, limit, body, dict(headers or {}), link, stack)
        except TimeoutError:
            raise TimeLimitError("no answer in time") from None
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            raise UnreachableError(reason) from None
        except ValueError:  # its message quotes the header
            raise UnreachableError("the address or a header cannot be sent") from None
        except http.client.HTTPException as error:
            reason = f"it does not speak HTTP ({type(error).__name__})"
            raise NotHttpError(reason) from None
        yield HttpReply(response, limit)


def json_body(value: object) -> bytes:
    """Encode a value as the body of a request; lone surrogates become escapes."""
    return json.dumps(value).encode("ascii")


class _Link(NamedTuple):
    """What to connect to, if not to the host of the address, and the longest wait for it."""

    proxy: Proxy | None
    address: str | None
    connect_s: float


def _exchange(
    url: str,
    limit: TimeLimit,
    body: bytes | None,
    headers: dict[str, str],
    through: _Link,
    stack: ExitStack,
) -> http.client.HTTPResponse:
    """Send the request and receive the head of the reply; ``stack`` closes the connection."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_tls = parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    target = quote(parts.path, safe=_URL_SAFE) or "/"
    if parts.query:
        target += "?" + quote(parts.query, safe=_URL_SAFE)
    chosen_proxy, connect_s = through.proxy, through.connect_s
    if chosen_proxy is None:
        link = _connect(through.address or host, port, limit, connect_s, stack)
    else:
        link = _connect(chosen_proxy.host, chosen_proxy.port, limit, connect_s, stack)
        if is_tls or chosen_proxy.is_socks:
            chosen_proxy.open_tunnel(link, host, port, limit.left_s)
        else:
            headers |= chosen_proxy.authorization
            target = f"http://{parts.netloc}{target}"
    if is_tls:
        link = _start_tls(link, host, limit, stack)
    connection = http.client.HTTPConnection(host, port)
    connection.default_port = 443 if is_tls else 80  # the header Host omits this port
    connection.sock = _TimedSocket(link, limit.left_s)
    all_headers = {"User-Agent": "qmd", "Connection": "close"} | headers
    with suppress(BrokenPipeError):  # the server may refuse a request before it is complete
        connection.request("GET" if body is None else "POST", target, body, all_headers)
    response = connection.getresponse()
    stack.callback(response.close)
    return response


def _connect(
    host: str, port: int, limit: TimeLimit, connect_s: float, stack: ExitStack
) -> socket.socket:
    link = socket.create_connection((host, port), min(connect_s, limit.left_s()))
    stack.callback(link.close)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.settimeout(limit.left_s())
    return link


def _start_tls(link: socket.socket, host: str, limit: TimeLimit, stack: ExitStack) -> socket.socket:
    """Start TLS on a connection, and check that the server is ``host``."""
    secured = _tls_context().wrap_socket(link, server_hostname=host, do_handshake_on_connect=False)
    stack.callback(secured.close)
    secured.settimeout(limit.left_s())
    secured.do_handshake()  # the time-out is for the whole handshake
    return secured


class _TimedSocket:
    """The part of a socket that `http.client` uses; each wait is cut to the remaining time."""

    def __init__(self, link: socket.socket, left_s: Callable[[], float]) -> None:
        self._link = link
        self._left_s = left_s

    def sendall(self, data: bytes) -> None:
        self._link.settimeout(self._left_s())  # the time-out is for all of the data
        self._link.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._link, self._left_s))

    def close(self) -> None:
        """Do nothing, because `http.client` calls this while the reply is still being read."""


class _TimedReader(io.RawIOBase):
    def __init__(self, link: socket.socket, left_s: Callable[[], float]) -> None:
        self._link = link
        self._left_s = left_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._link.settimeout(self._left_s())
        return self._link.recv_into(buffer)


def _decompress(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip or zlib, at most `PIECE_BYTES` at once."""
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 32)  # recognises gzip and zlib
    try:
        for piece in pieces:
            rest = piece
            while rest and not decompressor.eof:
                yield decompressor.decompress(rest, PIECE_BYTES)
                rest = decompressor.unconsumed_tail
        yield decompressor.flush()
    except zlib.error as error:
        raise UnreadableReplyError(str(error)) from None


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        # Python for macOS from python.org has no certificates. certifi comes with huggingface_hub.
        with suppress(ImportError):
            import certifi

            context.load_verify_locations(certifi.where())
    return context


# --- proxies ----------------------------------------------------------------------------
# The environment names them: ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, or
# the settings of Windows and macOS. No error message has the proxy's address, because that may have
# a password.

_MAX_HEAD_BYTES = 1 << 16
_DEFAULT_PORTS = {"http": 80, "socks5": 1080, "socks5h": 1080}


class ProxyError(Exception):
    """The proxy that the environment names cannot be used."""


class SocksSupportError(ProxyError):
    """The proxy speaks SOCKS, and the package `socksio` is not installed."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """The address of a proxy and the user's login; ``scheme`` is http, socks5 or socks5h."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str = field(default="", repr=False)

    @property
    def is_socks(self) -> bool:
        return self.scheme != "http"

    @property
    def authorization(self) -> dict[str, str]:
        """The header with the login, as a mapping; empty if there is no user."""
        if self.user is None:
            return {}
        pair = f"{self.user}:{self.password}".encode()
        return {"Proxy-Authorization": "Basic " + base64.b64encode(pair).decode()}

    def open_tunnel(
        self, link: socket.socket, host: str, port: int, left_s: Callable[[], float]
    ) -> None:
        """
        Let the proxy connect ``link``, a connection to the proxy, with ``host``.

        Args:
            left_s: Gives the seconds that remain; raises TimeoutError if none remain.

        Raises:
            OSError: The proxy refuses, or its answer is not that of a proxy.
        """
        if self.is_socks:
            self._socks_tunnel(link, host, port, left_s)
        else:
            self._http_tunnel(link, host, port, left_s)

    def _http_tunnel(
        self, link: socket.socket, host: str, port: int, left_s: Callable[[], float]
    ) -> None:
        name = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
        target = f"{name}:{port}"
        headers = {"Host": target} | self.authorization
        lines = [
            f"CONNECT {target} HTTP/1.1",
            *(f"{key}: {value}" for key, value in headers.items()),
        ]
        link.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            link.settimeout(left_s())
            byte = link.recv(1)  # the bytes after the head are from the server
            if not byte or len(head) > _MAX_HEAD_BYTES:
                raise OSError("the proxy does not answer as one")
            head += byte
        status = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")[2]
        if not status.startswith("2"):
            raise OSError(f"the proxy answered {status}")

    def _socks_tunnel(
        self, link: socket.socket, host: str, port: int, left_s: Callable[[], float]
    ) -> None:
        """SOCKS5 (RFC 1928) with or without a user (RFC 1929); the proxy resolves the name."""
        from socksio import ProtocolError, socks5

        dialogue = socks5.SOCKS5Connection()

        def ask(message: object) -> Any:
            dialogue.send(message)
            link.settimeout(left_s())
            link.sendall(dialogue.data_to_send())
            data = link.recv(1024)
            if not data:
                raise OSError("the proxy closed the connection")
            return dialogue.receive_data(data)

        methods = [socks5.SOCKS5AuthMethod.NO_AUTH_REQUIRED]
        if self.user is not None:
            methods = [socks5.SOCKS5AuthMethod.USERNAME_PASSWORD]
        try:
            chosen = ask(socks5.SOCKS5AuthMethodsRequest(methods))
            if chosen.method not in methods:
                raise OSError("the proxy wants another user")
            if self.user is not None:
                pair = (self.user.encode(), self.password.encode())
                if not ask(socks5.SOCKS5UsernamePasswordRequest(*pair)).success:
                    raise OSError("the proxy refuses the user")
            command = socks5.SOCKS5Command.CONNECT
            reply = ask(socks5.SOCKS5CommandRequest.from_address(command, (host, port)))
        except ProtocolError:
            raise OSError("the proxy does not speak SOCKS5") from None
        if reply.reply_code != socks5.SOCKS5ReplyCode.SUCCEEDED:
            raise OSError(f"the proxy cannot connect ({reply.reply_code.name})")


def proxy_for(url: str) -> Proxy | None:
    """
    The proxy for this address, or None.

    Raises:
        ProxyError: The address cannot be read, or the kind of proxy is not supported.
        SocksSupportError: The package `socksio` is missing.
    """
    # Imported late: it takes 15 ms, and requests to a server on this machine need no proxy.
    parts = urlsplit(url)
    proxies = libraries.request.getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not address or libraries.request.proxy_bypass(f"{parts.hostname}:{port}"):
        return None
    proxy = _parse(address)
    if proxy.is_socks:
        try:
            import socksio  # noqa: F401
        except ImportError:
            raise SocksSupportError("it speaks SOCKS") from None
    return proxy


def _parse(address: str) -> Proxy:
    """Parse the address of a proxy. Raises ProxyError, whose message lacks the address."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        proxy = Proxy(
            scheme=parts.scheme,
            host=parts.hostname or "",
            port=parts.port or _DEFAULT_PORTS[parts.scheme],
            user=None if parts.username is None else unquote(parts.username),
            password=unquote(parts.password or ""),
        )
    except (ValueError, KeyError):  # their messages quote a part of the address
        raise ProxyError("the address of the proxy cannot be read") from None
    if proxy.scheme not in _DEFAULT_PORTS or not proxy.host:
        raise ProxyError("the proxy is of a kind that is not supported")
    return proxy

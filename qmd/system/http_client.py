"""
The one HTTP client: sends a request and reads the reply within limits of time and size.

It asks model servers (`qmd.inference`) and the qmd server of this machine (`running`). It stands
on the standard library's `http.client`, because ``qmd search`` as a process may use it: httpx2
takes 0.2 s to import. Time limits of HTTP libraries count from byte to byte, so a server that
drips one byte a second keeps its caller waiting for ever; here each wait is cut to the time left.

Redirects are never followed, so no header (and no key) reaches a host that the caller did not
name. Nothing is sent that the caller did not give, apart from ``User-Agent: qmd``.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic
from typing import Any
from urllib.parse import quote, urlsplit

from qmd.system import proxy

PIECE_BYTES = 1 << 16
CONNECT_S = 10.0

_URL_SAFE = "%/:=&?~+!$,;'@()*[]"  # printable ASCII that may stand in a path as it is


class HttpError(Exception):
    """There is no usable reply; the message says why in a few words."""


class UnreachableError(HttpError):
    """No connection, or it was lost before the reply began."""


class NotHttpError(UnreachableError):
    """Something answers there that does not speak HTTP."""


class TimeLimitError(HttpError):
    """The time for the request, or for the next piece of the reply, is up."""


class BrokenOffError(HttpError):
    """The connection was lost in the middle of the reply."""


class UnreadableReplyError(HttpError):
    """The body is longer than the caller allows, or not packed as the header says."""


class TimeLimit:
    """
    How long a request may take.

    Args:
        wait_s: From the start, or from the last `restart`, to the next one.
        total_s: For all of it; None for no such limit.
    """

    def __init__(self, wait_s: float, total_s: float | None = None) -> None:
        now = monotonic()
        self._wait_s = wait_s
        self._end = float("inf") if total_s is None else now + total_s
        self._limit = min(now + wait_s, self._end)

    def restart(self) -> None:
        """The reply makes progress: the wait for the next piece begins."""
        self._limit = min(monotonic() + self._wait_s, self._end)

    def left_s(self) -> float:
        """Seconds above 0. Raises TimeoutError if none are left."""
        left = self._limit - monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class HttpReply:
    """
    A reply whose head has come; the body is read as the caller asks for it.

    ``headers`` has lower-case names.
    """

    def __init__(self, response: http.client.HTTPResponse, limit: TimeLimit) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._response = response
        self._limit = limit

    def progress(self) -> None:
        """Start the wait for the next piece anew; the caller decides which pieces count."""
        self._limit.restart()

    def pieces(self) -> Iterator[bytes]:
        """
        The body, unpacked, as it comes; at most `PIECE_BYTES` in each piece.

        Raises:
            TimeLimitError: No `progress` in time.
            BrokenOffError: The connection was lost.
            UnreadableReplyError: It is not packed as the header ``Content-Encoding`` says.
        """
        packing = self.headers.get("content-encoding", "").strip().lower()
        pieces = self._raw_pieces()
        return _unpacked(pieces) if packing in {"gzip", "x-gzip", "deflate"} else pieces

    def read(self, max_bytes: int) -> bytes:
        """The whole body. Raises as `pieces`, and UnreadableReplyError if it is longer."""
        body = bytearray()
        for piece in self.pieces():
            body += piece
            if len(body) > max_bytes:
                raise UnreadableReplyError(f"more than {max_bytes >> 20} MB")
        return bytes(body)

    def beginning(self, max_bytes: int) -> bytes:
        """Up to ``max_bytes`` of the body: what has come when that, or the time, is up."""
        body = bytearray()
        with suppress(HttpError):
            for piece in self.pieces():
                body += piece
                if len(body) >= max_bytes:
                    break
        return bytes(body[:max_bytes])

    def _raw_pieces(self) -> Iterator[bytes]:
        # The length is counted here, because `read1` of older versions of Python does not.
        left = self._response.length
        try:
            while left is None or left > 0:
                piece = self._response.read1(
                    PIECE_BYTES if left is None else min(left, PIECE_BYTES)
                )
                if not piece:
                    break
                if left is not None:
                    left -= len(piece)
                yield piece
                self._limit.left_s()  # pieces that are no progress may come for ever
        except TimeoutError:
            raise TimeLimitError("no answer in time") from None
        except (OSError, ValueError, http.client.HTTPException):
            raise BrokenOffError("the connection broke off") from None
        if left:
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
) -> Iterator[HttpReply]:
    """
    Send one request and give the reply, good or bad; the connection is closed at the end.

    Args:
        url: ``http://`` or ``https://``, host, port and path.
        limit: For the request and the whole reply.
        body: Sent by POST; None sends a GET.
        connect_s: The longest wait for the connection alone.
        use_proxy: Whether to go through the proxy that the environment names.

    Raises:
        UnreachableError: No connection, or something else than HTTP (NotHttpError).
        TimeLimitError: The head of the reply has not come in time.
        qmd.system.proxy.ProxyError: The proxy of the environment cannot be used.
    """
    with ExitStack() as stack:
        try:
            response = _exchange(url, limit, body, dict(headers or {}), connect_s, use_proxy, stack)
        except TimeoutError:
            raise TimeLimitError("no answer in time") from None
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            raise UnreachableError(reason) from None
        except ValueError:  # whose message quotes the header
            raise UnreachableError("the address or a header cannot be sent") from None
        except http.client.HTTPException as error:
            reason = f"it does not speak HTTP ({type(error).__name__})"
            raise NotHttpError(reason) from None
        yield HttpReply(response, limit)


def json_body(value: object) -> bytes:
    """A value as the body of a request; lone surrogates are sent as escapes."""
    return json.dumps(value).encode("ascii")


def _exchange(
    url: str,
    limit: TimeLimit,
    body: bytes | None,
    headers: dict[str, str],
    connect_s: float,
    use_proxy: bool,
    stack: ExitStack,
) -> http.client.HTTPResponse:
    """The head of the reply; ``stack`` closes what was opened for it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_tls = parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    target = quote(parts.path, safe=_URL_SAFE) or "/"
    between = proxy.for_url(url) if use_proxy else None
    if between is None:
        link = _connected(host, port, limit, connect_s, stack)
    else:
        link = _connected(between.host, between.port, limit, connect_s, stack)
        if is_tls or between.is_socks:
            between.open_tunnel(link, host, port, limit.left_s)
        else:
            headers |= between.authorization
            target = f"http://{parts.netloc}{target}"
    if is_tls:
        link = _secured(link, host, limit, stack)
    connection = http.client.HTTPConnection(host, port)
    connection.default_port = 443 if is_tls else 80  # the header Host leaves this one out
    connection.sock = _TimedSocket(link, limit.left_s)
    all_headers = {"User-Agent": "qmd", "Connection": "close"} | headers
    with suppress(BrokenPipeError):  # the server may refuse a request before the end of it
        connection.request("GET" if body is None else "POST", target, body, all_headers)
    response = connection.getresponse()
    stack.callback(response.close)
    return response


def _connected(
    host: str, port: int, limit: TimeLimit, connect_s: float, stack: ExitStack
) -> socket.socket:
    link = socket.create_connection((host, port), min(connect_s, limit.left_s()))
    stack.callback(link.close)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.settimeout(limit.left_s())
    return link


def _secured(link: socket.socket, host: str, limit: TimeLimit, stack: ExitStack) -> socket.socket:
    """The connection with TLS, once the server has proved to be ``host``."""
    secured = _tls().wrap_socket(link, server_hostname=host, do_handshake_on_connect=False)
    stack.callback(secured.close)
    secured.settimeout(limit.left_s())
    secured.do_handshake()  # all of it within the time-out
    return secured


class _TimedSocket:
    """What `http.client` uses of a socket; each wait is cut to the time that is left."""

    def __init__(self, link: socket.socket, left_s: Callable[[], float]) -> None:
        self._link = link
        self._left_s = left_s

    def sendall(self, data: bytes) -> None:
        self._link.settimeout(self._left_s())  # for all of the data
        self._link.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._link, self._left_s))

    def close(self) -> None:
        """Nothing: `http.client` calls it while the reply is still being read."""


class _TimedReader(io.RawIOBase):
    def __init__(self, link: socket.socket, left_s: Callable[[], float]) -> None:
        self._link = link
        self._left_s = left_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._link.settimeout(self._left_s())
        return self._link.recv_into(buffer)


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes that gzip or zlib has packed, at most `PIECE_BYTES` at once."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # recognises gzip and zlib
    try:
        for piece in pieces:
            rest = piece
            while rest and not unpacker.eof:
                yield unpacker.decompress(rest, PIECE_BYTES)
                rest = unpacker.unconsumed_tail
        yield unpacker.flush()
    except zlib.error as error:
        raise UnreadableReplyError(str(error)) from None


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        # python.org's Python for macOS comes without any; huggingface_hub brings these.
        with suppress(ImportError):
            import certifi

            context.load_verify_locations(certifi.where())
    return context

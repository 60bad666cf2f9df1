"""
Checks each request before its route: the sender, the page it comes from, and its size.

A page of another site in the user's browser must not use this server. If it uses DNS rebinding, so
that its name points to this machine, the Host header shows that name. A form or script of another
site sends its Origin. Both are refused on every route, also for MCP; an origin may be allowed by
name (`cors`). A page of this server is let in by its session cookie (`sessions`). Browsers send a
cookie to all ports of a machine, so the page must be of this port too.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from html import escape

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd.errors import InputError
from qmd.server import cors
from qmd.server.cors import allowed_origins
from qmd.server.sessions import OPEN_PATH, Sessions

MAX_BODY_BYTES = 4 * 1024 * 1024
"""A request with a larger body is refused (413), with or without a Content-Length."""

DISCARDED = 8
DISCARD_S = 1.0
"""
After a 413 the rest of the body is read and dropped, up to ``DISCARDED`` times the largest allowed
body and for at most ``DISCARD_S`` seconds. Else a client that still sends would lose the answer.
"""

BODY_TIMEOUT_S = 30.0
"""Seconds that a client may take to send its body; then the request is refused (408)."""

OPEN_PATHS = frozenset({"/health"})
"""
The paths that need no token. Requests to them must have no body, because 512 connections with a
body of 4 MiB each would fill the memory.
"""

CLIENT_UID = "client_uid"
"""
The key in the state of a connection for the user id of the program that opened it. The value is
None if the user is unknown.
"""

Headers = dict[bytes, "bytes | None"]

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""The headers that each response gets, unless it has a header of the same name."""


_UNAUTHORIZED = (
    "A token is required: send 'Authorization: Bearer TOKEN'.\n\nIn a browser: run 'qmd open' in "
    "a terminal, which opens this page. If you have just come by its link, reload the page."
)
_OTHER_USER = (
    "Another user's server: without a token it answers programs of the user who started it "
    "(and of root) only.\n\nStart it with --token auto or --token TOKEN and send that token, or "
    "let all users of this machine in with --allow-other-users."
)
_UNKNOWN_USER = (
    "It cannot be told which user's program asks: it had closed its connection, or its user is "
    "not of this container. Without a token this server answers programs of the user who "
    "started it only.\n\nKeep the connection open until the answer has come, or start the "
    "server with --token TOKEN or --allow-other-users."
)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach a server bound to ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Security:
    """
    The rules for the requests that are answered.

    Attributes:
        token: The token that requests must send; None if they need none.
        hosts: The names that Host and Origin may have, beside those of the loopback interface.
        any_address: Host and Origin may be any IP address, for a server on all interfaces. (DNS
            rebinding needs a name, so an address is safe.)
        origins: The origins whose pages may use this server, as browsers send them.
        users: The ids of the users whose programs may send requests without a token, or with the
            cookie of a browser; None for all users of this machine.
        max_body: The most bytes of a body.
        body_timeout_s: Seconds that a client may take to send a body.
    """

    token: str | None = field(default=None, repr=False)
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    origins: frozenset[str] = frozenset()
    users: frozenset[int] | None = None
    max_body: int = MAX_BODY_BYTES
    body_timeout_s: float = BODY_TIMEOUT_S

    def knows(self, host: str) -> bool:
        """
        Whether Host or Origin may have this value.

        ``host``: a name or an address in lower case, without port and brackets.
        """
        if host in _LOOPBACK_NAMES or host in self.hosts:
            return True
        if not self.any_address:
            return False
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True


def security_for(
    host: str,
    token: str | None,
    allowed_hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
) -> Security:
    """
    The rules for a server that listens on ``host``.

    Raises:
        InputError: Other machines could reach the server and there is no token, the token cannot
            be sent in a header, or one of ``origins`` is none.
    """
    if token is not None and (not token or not token.isascii() or not token.isprintable()):
        raise InputError(
            "The token must be printable ASCII characters.",
            hint="For example: QMD_TOKEN=$(openssl rand -hex 32)",
        )
    if token is not None and token != token.strip():
        raise InputError("The token must not begin or end with a space.", hint="Trim it.")
    if not is_loopback(host) and token is None:
        raise InputError(
            f"Listening on {host} lets other machines in, and demands a token.",
            hint="Set QMD_TOKEN (or give --token), or leave --host out for this machine only.",
        )
    names = {name.lower().strip("[]") for name in allowed_hosts}
    is_every_address = host in ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound
    if not is_loopback(host):
        machine = socket.gethostname().lower()
        names |= {machine, f"{machine}.local"} if is_every_address else {host.lower().strip("[]")}
    return Security(
        token=token,
        hosts=frozenset(names),
        any_address=is_every_address,
        origins=allowed_origins(origins),
    )


class RequestGuard:
    """ASGI middleware that refuses the requests which a `Security` does not allow."""

    def __init__(self, app: ASGIApp, security: Security, sessions: Sessions | None = None) -> None:
        self._app = app
        self._security = security
        self._sessions = sessions or Sessions()
        self._expected = None if security.token is None else security.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no route uses it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _single_headers(scope)
        send = _with_headers(send)
        if self._is_allowed_origin(headers):
            send = cors.readable_by(headers[b"origin"] or b"", send)
        if self._is_allowed_preflight(scope, headers):
            await cors.answer_preflight(headers, send)
            return
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(send, as_page=wants_page(scope))
            return
        if self._expected is not None and scope["path"] in OPEN_PATHS and _has_body(headers):
            await _Refusal(413, "This request takes no body.")(send)
            return
        try:
            with anyio.fail_after(self._security.body_timeout_s):
                body = await self._body(headers, receive)
        except TimeoutError:
            await _Refusal(408, "The request body did not arrive in time.")(send)
            return
        except _TooLarge as error:
            limit = self._security.max_body
            refusal = _Refusal(413, f"Request body too large (at most {limit} bytes)")
            discard_bytes = DISCARDED * limit if error.unread else 0
            await refusal(send, before_close=lambda: _discard(receive, discard_bytes))
            return
        except _DisconnectedError:
            return
        await self._app(scope, _replayed(body, receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> _Refusal | None:
        """The refusal of a request, for its host, its origin or its sender; None to answer it."""
        return (
            self._refuse_host(headers)
            or self._refuse_foreign_page(scope, headers)
            or (
                self._refuse_other_user(scope)
                if self._expected is None
                else self._refuse_without_token(scope, headers)
            )
        )

    def _refuse_host(self, headers: Headers) -> _Refusal | None:
        """Refuse a Host header with a foreign name, which DNS rebinding points to this machine."""
        host = headers.get(b"host")
        return None if host is not None and self._security.knows(_host_name(host)) else _WRONG_HOST

    def _refuse_foreign_page(self, scope: Scope, headers: Headers) -> _Refusal | None:
        """Refuse a page of another site: it sends Origin or, for images and scripts, fetch-site."""
        if self._is_allowed_origin(headers):
            return None
        if b"origin" in headers and not self._is_known_origin(headers[b"origin"]):
            return _WRONG_ORIGIN
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and _is_of_other_port(headers):
            return _WRONG_ORIGIN
        follows_link = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        if headers.get(b"sec-fetch-site") == b"cross-site" and not follows_link:
            return _WRONG_ORIGIN
        return None

    def _refuse_without_token(self, scope: Scope, headers: Headers) -> _Refusal | None:
        """Refuse a request without the token or the session cookie of a page of this server."""
        if scope["path"] in OPEN_PATHS:
            return None
        if scope["path"] == OPEN_PATH and scope["method"] == "GET":
            return self._refuse_other_user(scope)  # the handler checks the code of the link
        cookies = headers.get(b"cookie") or b""
        if b"authorization" not in headers and self._sessions.is_in(scope, cookies):
            return self._refuse_other_user(scope) if _is_same_site(scope, headers) else _WRONG_PAGE
        scheme, _, token = (headers.get(b"authorization") or b"").partition(b" ")
        token = token.strip() if scheme.lower() == b"bearer" else b""
        return None if hmac.compare_digest(token, self._expected or b"") else _MISSING_TOKEN

    def _refuse_other_user(self, scope: Scope) -> _Refusal | None:
        """Refuse a program of another user of this machine."""
        users = self._security.users
        uid = scope.get("state", {}).get(CLIENT_UID)
        if users is None or uid in users:
            return None
        return _Refusal(403, _OTHER_USER if uid is not None else _UNKNOWN_USER)

    def _is_allowed_origin(self, headers: Headers) -> bool:
        origin = headers.get(b"origin") or b""
        return origin.decode("latin-1").lower() in self._security.origins

    def _is_allowed_preflight(self, scope: Scope, headers: Headers) -> bool:
        """Whether a browser asks what a page of an allowed origin may send to this server."""
        return (
            cors.is_preflight(scope["method"], headers)
            and self._is_allowed_origin(headers)
            and self._refuse_host(headers) is None
        )

    def _is_known_origin(self, origin: bytes | None) -> bool:
        scheme, _, rest = (origin or b"").lower().partition(b"://")
        return scheme in (b"http", b"https") and self._security.knows(_host_name(rest))

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """
        Read the whole body.

        Raises:
            _TooLarge: The body is larger than the limit.
            _DisconnectedError: The client has closed the connection.
        """
        length = headers.get(b"content-length")
        limit = self._security.max_body
        if length is not None and length.isdigit() and int(length) > limit:
            raise _TooLarge(unread=True)
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _DisconnectedError
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise _TooLarge(unread=message.get("more_body", False))
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)


class _TooLarge(Exception):
    """The body is too large; ``unread``: a part of it has not arrived yet."""

    def __init__(self, *, unread: bool) -> None:
        super().__init__()
        self.unread = unread


class _DisconnectedError(Exception):
    """The client closed the connection before its request was complete."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An error response to a request that is not answered."""

    status: int
    detail: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def __call__(
        self,
        send: Send,
        before_close: Callable[[], Awaitable[None]] | None = None,
        *,
        as_page: bool = False,
    ) -> None:
        """Send the refusal; ``before_close`` runs before the connection is closed."""
        body = (error_page if as_page else error_body)(self.status, self.detail)
        kind = b"text/html; charset=utf-8" if as_page else b"application/json"
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(body)).encode()),
            # On an open connection the unread rest of the body would count as the next request.
            (b"connection", b"close"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if before_close is not None:
            await before_close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


_WRONG_HOST = _Refusal(
    403, "Host not allowed: this server answers to its own names only (localhost)."
)
_WRONG_ORIGIN = _Refusal(403, "Origin not allowed: pages of other sites may not use qmd.")
_WRONG_PAGE = _Refusal(403, "Origin not allowed: this is no page of this server.")
_MISSING_TOKEN = _Refusal(401, _UNAUTHORIZED, ((b"www-authenticate", b'Bearer realm="qmd"'),))


async def _discard(receive: Receive, max_bytes: int) -> None:
    """Read and drop about ``max_bytes`` of a body, for at most `DISCARD_S` seconds."""
    remaining = max_bytes
    with anyio.move_on_after(DISCARD_S):
        while remaining > 0:
            message = await receive()
            remaining -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


def error_body(status: int, detail: str) -> bytes:
    """The body of an error response: JSON of the same shape for all errors over HTTP."""
    return json.dumps({"detail": detail, "status_code": status}, ensure_ascii=False).encode()


def error_page(status: int, detail: str) -> bytes:
    """The body of an error response for a browser: a page."""
    text = "".join(f"<p>{escape(part)}</p>" for part in detail.split("\n\n"))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>qmd: {status}</title>{text}</html>\n"
    ).encode()


def wants_page(scope: Scope) -> bool:
    """Whether a browser requests a page."""
    return scope["method"] == "GET" and any(
        name == b"accept" and b"text/html" in value for name, value in scope["headers"]
    )


def _is_same_site(scope: Scope, headers: Headers) -> bool:
    """
    Whether a browser's request comes from a page of this server, or from no page at all.

    A browser sends Origin with every request that can change something, and Sec-Fetch-Site with the
    others. An old browser without Sec-Fetch-Site may only read.
    """
    if b"origin" in headers:
        host = (headers.get(b"host") or b"").lower()
        return (headers[b"origin"] or b"").lower() in (b"http://" + host, b"https://" + host)
    if b"sec-fetch-site" in headers:
        return headers[b"sec-fetch-site"] in (b"same-origin", b"none")
    return scope["method"] in ("GET", "HEAD")


def _single_headers(scope: Scope) -> Headers:
    """Name → value of each header; None if it was sent twice, because neither can be trusted."""
    headers: Headers = {}
    for name, value in scope["headers"]:
        headers[name] = None if name in headers else value.strip()
    return headers


def _has_body(headers: Headers) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _host_name(value: bytes) -> str:
    """The host without its port: ``::1`` for ``[::1]:80``; "" if the value is malformed."""
    text = value.decode("latin-1").lower()
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        if not bracket or (port and not _is_port(port)):
            return ""
        return name
    name, colon, port = text.partition(":")
    return name if not colon or _is_port(":" + port) else ""


def _is_of_other_port(headers: Headers) -> bool:
    """
    Whether a page that another port of this machine serves sends the request.

    It may be a page of strangers. Where a proxy forwards requests, Host and Origin may differ.
    """
    host = headers.get(b"host") or b""
    origin = (headers.get(b"origin") or b"").partition(b"://")[2]
    are_loopback = {_host_name(host), _host_name(origin)} <= _LOOPBACK_NAMES
    return are_loopback and _port(host) != _port(origin)


def _port(value: bytes) -> bytes:
    """The port in Host or Origin; empty without one."""
    return value.rpartition(b"]")[2].partition(b":")[2]


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isascii() and (text[1:].isdigit() or text == ":")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `Receive` that returns the body, which has been read, and then calls ``receive``."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _with_headers(send: Send) -> Send:
    """A `Send` that adds the headers in `_HEADERS` to the response."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            headers += [pair for pair in _HEADERS if pair[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return wrapped

"""
Checks each request before its route: the sender, the page it comes from, and its size.

A page of another site in the user's browser must not use this server. If it uses DNS rebinding, so
that its name points to this machine, the Host header shows that name. A form or script of another
site sends its Origin. Both are refused on every route, also for MCP; an origin may be allowed by
name, and Starlette tells the browser so. A page of this server is let in by its session cookie
(`sessions`). Browsers send a cookie to all ports of a machine, so the page must be of this port
too.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlsplit

import anyio
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd.errors import InputError, QmdError
from qmd.server.failures import (
    MISSING_TOKEN,
    NO_LOOKUP,
    OPENS_NOTHING,
    OTHER_USER,
    UNKNOWN_TOKEN,
    UNKNOWN_USER,
    WRONG_HOST,
    WRONG_ORIGIN,
    WRONG_PAGE,
    Failure,
    wants_page,
)
from qmd.server.sessions import (
    IN_SESSION,
    LOGIN_PATH,
    MAX_FORM_BYTES,
    OPEN_PATH,
    BrowserSession,
    FindScope,
    Sessions,
)
from qmd.values.access import TOKEN_PREFIX

_log = logging.getLogger(__name__)

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

STATIC_PATH = "/static/"
"""Styles and scripts of the page, the same on all servers; the form of a login needs some."""

CLIENT_UID = "client_uid"
"""
The key in the state of a connection for the user id of the program that opened it. The value is
None if the user is unknown.
"""

ACCESS = "access"
"""
The key in the state of a request for what its token opens, an `AccessScope`; absent where the
client may use all.
"""

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@*\s,]+")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
#: The headers of answers that scripts of allowed origins may read, beside those they always may.
_EXPOSED = (
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
    "Retry-After",
    "WWW-Authenticate",
    "Allow",
    "Qmd-Error",
)

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
        metadata_url: Where clients learn who issues tokens (RFC 9728); None if nobody else does.
        metadata_paths: The paths of these metadata, which need no token.
    """

    token: str | None = field(default=None, repr=False)
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    origins: frozenset[str] = frozenset()
    users: frozenset[int] | None = None
    max_body: int = MAX_BODY_BYTES
    body_timeout_s: float = BODY_TIMEOUT_S
    metadata_url: str | None = None
    metadata_paths: frozenset[str] = frozenset()

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


def allowed_origins(texts: Iterable[str]) -> frozenset[str]:
    """
    The origins as browsers send them: in lower case, without a default port.

    Raises:
        InputError: One is no origin, or stands for all.
    """
    return frozenset(map(_origin, texts))


def _origin(text: str) -> str:
    origin = text.strip().lower().rstrip("/")
    if not origin.isascii() or _ORIGIN.fullmatch(origin) is None:
        raise InputError(
            f"Not an origin: {text!r}",
            hint="Name each one as a browser shows it, such as https://chat.example.org or "
            "http://localhost:6274; there is none for all.",
        )
    return origin.removesuffix(_DEFAULT_PORTS.get(urlsplit(origin).scheme, "/"))


class RequestGuard:
    """ASGI middleware that refuses the requests which a `Security` does not allow."""

    def __init__(
        self,
        app: ASGIApp,
        security: Security,
        sessions: Sessions | None = None,
        find_scope: FindScope | None = None,
    ) -> None:
        """``find_scope``: Looks up the tokens of clients; None if there are none."""
        self._app = app
        self._find_scope = find_scope
        self._security = security
        self._sessions = sessions or Sessions()
        self._expected = None if security.token is None else security.token.encode()
        # Cookies are never shared: such a page sends the token, if there is one.
        self._shared = CORSMiddleware(
            self._answer,
            allow_origins=security.origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "DELETE"),
            allow_headers=("*",),
            allow_private_network=True,
            expose_headers=_EXPOSED,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no route uses it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _single_headers(scope)
        send = _with_headers(send)
        # A name that DNS rebinding made up is refused also if its page has an allowed origin.
        is_shared = self._is_allowed_origin(headers) and self._refuse_host(headers) is None
        await (self._shared if is_shared else self._answer)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _single_headers(scope)
        refusal = await self._refusal(scope, headers)
        if refusal is not None:
            await refusal.refuse(send, as_page=wants_page(scope))
            return
        if self._expected is not None and self._is_open(scope) and _has_body(headers):
            await Failure(413, "This request takes no body.").refuse(send)
            return
        body = await self._body_or_answer(scope, headers, receive, send)
        if body is not None:
            await self._app(scope, _replayed(body, receive), send)

    async def _body_or_answer(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send
    ) -> bytes | None:
        """The body; None if it was refused for its size or time, or the client has left."""
        limit = MAX_FORM_BYTES if self._takes_logins(scope) else self._security.max_body
        try:
            with anyio.fail_after(self._security.body_timeout_s):
                return await self._body(headers, receive, limit)
        except TimeoutError:
            await Failure(408, "The request body did not arrive in time.").refuse(send)
        except _TooLarge as error:
            refusal = Failure(413, f"Request body too large (at most {limit} bytes)")
            discard_bytes = DISCARDED * limit if error.unread else 0
            await refusal.refuse(send, before_close=lambda: _discard(receive, discard_bytes))
        except _DisconnectedError:
            pass
        return None

    def _is_open(self, scope: Scope) -> bool:
        """Whether a path needs no token."""
        path = scope["path"]
        is_file = self._sessions.takes_tokens and path.startswith(STATIC_PATH)
        return (
            path in OPEN_PATHS
            or path in self._security.metadata_paths
            or (is_file and scope["method"] in ("GET", "HEAD"))
        )

    async def _refusal(self, scope: Scope, headers: Headers) -> Failure | None:
        """The refusal of a request, for its host, its origin or its sender; None to answer it."""
        refusal = self._refuse_host(headers) or self._refuse_foreign_page(scope, headers)
        if refusal is not None:
            return refusal
        token = _bearer_token(headers)
        is_scoped = token.startswith(TOKEN_PREFIX.encode()) or (
            token.startswith(b"eyJ") and self._security.metadata_url is not None  # it begins a JWT
        )
        if is_scoped and not self._is_expected(token):
            return await self._refuse_unknown_token(scope, token.decode("latin-1"))
        if self._expected is None:
            return self._refuse_other_user(scope)
        return await self._refuse_without_token(scope, headers)

    async def _refuse_unknown_token(self, scope: Scope, token: str) -> Failure | None:
        """Refuse a token that is not valid; keep in the state of the request what it opens."""
        try:
            access = None if self._find_scope is None else await self._find_scope(token)
        except QmdError as error:
            _log.error("a token could not be looked up: %s", error)
            return NO_LOOKUP
        if access is None:
            return self._challenging(UNKNOWN_TOKEN)
        if not access.read:
            return self._challenging(OPENS_NOTHING)
        _note(scope, ACCESS, access)
        return None

    def _challenging(self, refusal: Failure) -> Failure:
        """A refusal that also says where to learn who issues tokens."""
        url = self._security.metadata_url
        if url is None:
            return refusal
        headers = tuple(
            (name, value + f', resource_metadata="{url}"'.encode())
            if name == b"www-authenticate"
            else (name, value)
            for name, value in refusal.headers
        )
        return replace(refusal, headers=headers)

    def _is_expected(self, token: bytes) -> bool:
        return self._expected is not None and hmac.compare_digest(token, self._expected)

    def _refuse_host(self, headers: Headers) -> Failure | None:
        """Refuse a Host header with a foreign name, which DNS rebinding points to this machine."""
        host = headers.get(b"host")
        return None if host is not None and self._security.knows(_host_name(host)) else WRONG_HOST

    def _refuse_foreign_page(self, scope: Scope, headers: Headers) -> Failure | None:
        """Refuse a page of another site: it sends Origin or, for images and scripts, fetch-site."""
        if self._is_allowed_origin(headers):
            return None
        if b"origin" in headers and not self._is_known_origin(headers[b"origin"]):
            return WRONG_ORIGIN
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and _is_of_other_port(headers):
            return WRONG_ORIGIN
        follows_link = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        if headers.get(b"sec-fetch-site") == b"cross-site" and not follows_link:
            return WRONG_ORIGIN
        return None

    async def _refuse_without_token(self, scope: Scope, headers: Headers) -> Failure | None:
        """Refuse a request without the token or the session cookie of a page of this server."""
        if self._is_open(scope):
            return None
        if scope["path"] == OPEN_PATH and scope["method"] == "GET":
            return self._refuse_other_user(scope)  # the handler checks the code of the link
        if b"authorization" not in headers:
            session = self._sessions.find(scope, headers.get(b"cookie") or b"")
            if session is not None:
                refusal = await self._refuse_session(session, scope, headers)
                if refusal is not UNKNOWN_TOKEN:  # else the session ended with its token
                    return refusal
        token = _bearer_token(headers)
        if self._is_expected(token) or self._takes_logins(scope):
            return None
        return self._challenging(UNKNOWN_TOKEN if token else self._missing_token(scope))

    async def _refuse_session(
        self, session: BrowserSession, scope: Scope, headers: Headers
    ) -> Failure | None:
        """Refuse a session for its page, token or user; keep what it opens as for a token."""
        if not _is_same_site(scope, headers):
            return WRONG_PAGE
        if session.token:
            try:
                access = await self._sessions.opened_by(session.token)
            except QmdError as error:
                _log.error("a token could not be looked up: %s", error)
                return NO_LOOKUP
            if access is None:
                return UNKNOWN_TOKEN
            _note(scope, ACCESS, access)
        _note(scope, IN_SESSION, True)
        # A person at another machine has typed the token, and is no user of this one.
        is_remote = not session.is_linked and not _is_from_loopback(scope)
        return None if session.token or is_remote else self._refuse_other_user(scope)

    def _takes_logins(self, scope: Scope) -> bool:
        """Whether the path is that of the form in which a person types a token."""
        return self._sessions.takes_tokens and scope["path"] == LOGIN_PATH

    def _missing_token(self, scope: Scope) -> Failure:
        """A browser that loads a page is sent to the form, and from there to its page."""
        if not self._sessions.takes_tokens or not wants_page(scope):
            return MISSING_TOKEN
        query = scope.get("query_string", b"").decode("latin-1")
        page = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
        address = LOGIN_PATH if page == "%2F" else f"{LOGIN_PATH}?next={page}"
        return replace(MISSING_TOKEN, status=303, headers=((b"location", address.encode("ascii")),))

    def _refuse_other_user(self, scope: Scope) -> Failure | None:
        """Refuse a program of another user of this machine."""
        users = self._security.users
        uid = scope.get("state", {}).get(CLIENT_UID)
        if users is None or uid in users:
            return None
        return Failure(403, OTHER_USER if uid is not None else UNKNOWN_USER)

    def _is_allowed_origin(self, headers: Headers) -> bool:
        origin = headers.get(b"origin") or b""
        return origin.decode("latin-1").lower() in self._security.origins

    def _is_known_origin(self, origin: bytes | None) -> bool:
        scheme, _, rest = (origin or b"").lower().partition(b"://")
        return scheme in (b"http", b"https") and self._security.knows(_host_name(rest))

    async def _body(self, headers: Headers, receive: Receive, limit: int) -> bytes:
        """
        Read the whole body, of at most ``limit`` bytes.

        Raises:
            _TooLarge: The body is larger than the limit.
            _DisconnectedError: The client has closed the connection.
        """
        length = headers.get(b"content-length")
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


def _note(scope: Scope, key: str, value: object) -> None:
    """Keep a fact in the state of a request."""
    scope["state"] = {**scope.get("state", {}), key: value}


def _is_from_loopback(scope: Scope) -> bool:
    return is_loopback((scope.get("client") or ("",))[0])


def _bearer_token(headers: Headers) -> bytes:
    """The token of a request; empty without one."""
    scheme, _, token = (headers.get(b"authorization") or b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


async def _discard(receive: Receive, max_bytes: int) -> None:
    """Read and drop about ``max_bytes`` of a body, for at most `DISCARD_S` seconds."""
    remaining = max_bytes
    with anyio.move_on_after(DISCARD_S):
        while remaining > 0:
            message = await receive()
            remaining -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


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

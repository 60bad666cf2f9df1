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
from functools import partial
from urllib.parse import quote, urlsplit

import anyio
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd.errors import InputError, QmdError
from qmd.server import failures
from qmd.server.sessions import IN_SESSION, LOGIN_PATH, MAX_FORM_BYTES, OPEN_PATH, Sessions
from qmd.values.access import TOKEN_PREFIX, AccessScope

_log = logging.getLogger(__name__)

#: A request with a larger body is refused (413), with or without a Content-Length.
MAX_BODY_BYTES = 4 * 1024 * 1024

ATTACH_PATH = "/attach"
#: So large may a file be that a person puts beside a note on the page.
MAX_FILE_BYTES = 32 * 1024 * 1024

DISCARDED = 8
#: After a 413 the rest of the body is read and dropped, up to ``DISCARDED`` times the largest
#: allowed body and for at most ``DISCARD_S`` seconds. Else a client that still sends would lose the
#: answer.
DISCARD_S = 1.0

#: Seconds that a client may take to send its body; then the request is refused (408).
BODY_TIMEOUT_S = 30.0

#: The paths that need no token. Requests to them must have no body, because 512 connections with a
#: body of 4 MiB each would fill the memory.
OPEN_PATHS = frozenset({"/health"})

#: Styles and scripts of the page, the same on all servers; the form of a login needs some.
STATIC_PATH = "/static/"

#: The key in the state of a connection for the user id of the program that opened it. The value is
#: None if the user is unknown.
CLIENT_UID = "client_uid"

#: The key in the state of a request for what its token opens, an `AccessScope`; absent where the
#: client may use all.
ACCESS = "access"

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

#: The headers that each response gets, unless it has a header of the same name.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
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
    """
    ASGI middleware that refuses the requests which a `Security` does not allow.

    ``sessions`` knows the tokens of clients and the cookies of browsers.
    """

    def __init__(self, app: ASGIApp, security: Security, sessions: Sessions | None = None) -> None:
        self._app = app
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
        is_shared = self._is_allowed_origin(headers) and self._is_of_known_host(headers)
        await (self._shared if is_shared else self._answer)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _single_headers(scope)
        try:
            await self._admit(scope, headers)
            limit = MAX_FORM_BYTES if self._takes_logins(scope) else self._security.max_body
            if scope["path"] == ATTACH_PATH or scope["path"].startswith(f"{ATTACH_PATH}/"):
                limit = max(limit, MAX_FILE_BYTES)
            with anyio.fail_after(self._security.body_timeout_s):
                body = await _body(headers, receive, limit)
        except ClientDisconnect:
            return
        except TimeoutError:
            await failures.Failure(408, "The request body did not arrive in time.").refuse(send)
        except _RefusedError as refused:
            discard = partial(_discard, receive, refused.unread_bytes)
            await refused.failure.refuse(send, discard, as_page=failures.wants_page(scope))
        else:
            await self._app(scope, _replayed(body, receive), send)

    # -- who may ask: each of these raises _RefusedError -------------------------------

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        """Refuse a request for its host, its origin or its sender; keep in its state its access."""
        if not self._is_of_known_host(headers):
            raise _RefusedError(failures.WRONG_HOST)
        if self._is_of_foreign_page(scope, headers):
            raise _RefusedError(failures.WRONG_ORIGIN)
        token = _bearer_token(headers)
        is_scoped = token.startswith(TOKEN_PREFIX.encode()) or (
            token.startswith(b"eyJ") and self._security.metadata_url is not None  # it begins a JWT
        )
        if is_scoped and not self._is_expected(token):
            await self._admit_token(scope, token.decode("latin-1"))
        elif self._expected is None:
            self._refuse_other_users(scope)
        else:
            await self._admit_known(scope, headers, token)

    async def _admit_known(self, scope: Scope, headers: Headers, token: bytes) -> None:
        """On a server with a token: who has it, or a session, or asks for what is open to all."""
        if self._is_open(scope):
            if _has_body(headers):
                raise _RefusedError(failures.Failure(413, "This request takes no body."))
        elif scope["path"] == OPEN_PATH and scope["method"] == "GET":
            self._refuse_other_users(scope)  # the handler checks the code of the link
        elif not (
            await self._admit_session(scope, headers)
            or self._is_expected(token)
            or self._takes_logins(scope)
        ):
            raise self._challenging(failures.UNKNOWN_TOKEN if token else self._missing_token(scope))

    async def _admit_token(self, scope: Scope, token: str) -> None:
        access = await self._access(token)
        if access is None:
            raise self._challenging(failures.UNKNOWN_TOKEN)
        if not access.read:
            raise self._challenging(failures.OPENS_NOTHING)
        _note(scope, ACCESS, access)

    async def _admit_session(self, scope: Scope, headers: Headers) -> bool:
        """Whether the request has the cookie of a session of a page of this server."""
        if b"authorization" in headers:
            return False
        session = self._sessions.find(scope)
        if session is None:
            return False
        if not _is_same_site(scope, headers):
            raise _RefusedError(failures.WRONG_PAGE)
        if session.token:
            access = await self._access(session.token)
            if access is None or not access.read:  # the session ends with its token
                return False
            _note(scope, ACCESS, access)
        # A person at another machine has typed the token, and is no user of this one.
        elif session.is_linked or is_from_loopback(scope):
            self._refuse_other_users(scope)
        _note(scope, IN_SESSION, True)
        return True

    async def _access(self, token: str) -> AccessScope | None:
        """What a client's token opens; None if it is not valid."""
        try:
            return await self._sessions.find_scope(token)
        except QmdError as error:
            _log.error("a token could not be looked up: %s", error)
            raise _RefusedError(failures.NO_LOOKUP) from None

    def _refuse_other_users(self, scope: Scope) -> None:
        """Refuse the programs of other users of this machine."""
        users = self._security.users
        uid = scope.get("state", {}).get(CLIENT_UID)
        if users is not None and uid not in users:
            if uid is not None and self._expected is not None:
                raise _RefusedError(failures.OTHER_USERS_SESSION)
            raise _RefusedError(
                failures.Failure(403, failures.UNKNOWN_USER if uid is None else failures.OTHER_USER)
            )

    def _challenging(self, refusal: failures.Failure) -> _RefusedError:
        """A refusal that also says where to learn who issues tokens."""
        url, challenge = self._security.metadata_url, refusal.headers.get("www-authenticate")
        if url is not None and challenge is not None:
            more = {"www-authenticate": f'{challenge}, resource_metadata="{url}"'}
            refusal = replace(refusal, headers={**refusal.headers, **more})
        return _RefusedError(refusal)

    def _missing_token(self, scope: Scope) -> failures.Failure:
        """A browser that loads a page is sent to the form, and from there to its page."""
        if not self._sessions.takes_tokens or not failures.wants_page(scope):
            return failures.MISSING_TOKEN
        query = scope.get("query_string", b"").decode("latin-1")
        page = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
        address = LOGIN_PATH if page == "%2F" else f"{LOGIN_PATH}?next={page}"
        return replace(failures.MISSING_TOKEN, status=303, headers={"location": address})

    # -- facts about a request ---------------------------------------------------------

    def _is_expected(self, token: bytes) -> bool:
        return self._expected is not None and hmac.compare_digest(token, self._expected)

    def _is_open(self, scope: Scope) -> bool:
        """Whether a path needs no token."""
        path = scope["path"]
        is_file = self._sessions.takes_tokens and path.startswith(STATIC_PATH)
        return (
            path in OPEN_PATHS
            or path in self._security.metadata_paths
            or (is_file and scope["method"] in ("GET", "HEAD"))
        )

    def _takes_logins(self, scope: Scope) -> bool:
        """Whether the path is that of the form in which a person types a token."""
        return self._sessions.takes_tokens and scope["path"] == LOGIN_PATH

    def _is_of_known_host(self, headers: Headers) -> bool:
        """Not if Host has a foreign name, which DNS rebinding points to this machine."""
        return self._security.knows(_host_and_port(headers.get(b"host"))[0])

    def _is_of_foreign_page(self, scope: Scope, headers: Headers) -> bool:
        """Pages of other sites send Origin or, for images and scripts, Sec-Fetch-Site."""
        if self._is_allowed_origin(headers):
            return False
        if b"origin" in headers:
            scheme, _, place = (headers[b"origin"] or b"").lower().partition(b"://")
            host, port = _host_and_port(place)
            if scheme not in (b"http", b"https") or not self._security.knows(host):
                return True
            # Another port of this machine may have a page of strangers. Where a proxy forwards
            # requests, Host and Origin may differ.
            our_host, our_port = _host_and_port(headers.get(b"host"))
            is_of_other_port = {host, our_host} <= _LOOPBACK_NAMES and port != our_port
            if is_of_other_port and scope["method"] not in ("GET", "HEAD", "OPTIONS"):
                return True
        follows_link = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        return headers.get(b"sec-fetch-site") == b"cross-site" and not follows_link

    def _is_allowed_origin(self, headers: Headers) -> bool:
        origin = headers.get(b"origin") or b""
        return origin.decode("latin-1").lower() in self._security.origins


class _RefusedError(Exception):
    """The request is answered with ``failure``; so many bytes of its body may be unread."""

    def __init__(self, failure: failures.Failure, unread_bytes: int = 0) -> None:
        super().__init__()
        self.failure = failure
        self.unread_bytes = unread_bytes


def _note(scope: Scope, key: str, value: object) -> None:
    """Keep a fact in the state of a request."""
    scope["state"] = {**scope.get("state", {}), key: value}


def is_from_loopback(scope: Scope) -> bool:
    """Whether the client runs on this machine."""
    return is_loopback((scope.get("client") or ("",))[0])


def _bearer_token(headers: Headers) -> bytes:
    """The token of a request; empty without one."""
    scheme, _, token = (headers.get(b"authorization") or b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


async def _body(headers: Headers, receive: Receive, limit: int) -> bytes:
    """
    Read the whole body, of at most ``limit`` bytes.

    Raises:
        _RefusedError: The body is larger than the limit.
        ClientDisconnect: The client has closed the connection.
    """
    too_large = failures.Failure(413, f"Request body too large (at most {limit} bytes)")
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise _RefusedError(too_large, DISCARDED * limit)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > limit:
            raise _RefusedError(too_large, DISCARDED * limit if has_more else 0)
        if not has_more:
            return bytes(body)


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


_PLACE = re.compile(r"(?:\[(?P<address>[^\]]*)\]|(?P<name>[^:\[]*))(?::(?P<port>[0-9]*))?")


def _host_and_port(value: bytes | None) -> tuple[str, str]:
    """Of a Host header, or of an origin without its scheme; "" for the host if malformed."""
    match = _PLACE.fullmatch((value or b"").decode("latin-1").lower())
    if match is None:
        return "", ""
    return match["address"] or match["name"] or "", match["port"] or ""


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

"""
The sessions of browsers on a server that requires a token.

A browser cannot send a token with a page or an event stream, so it gets a cookie. A session begins
in two ways: with a link that works once (`qmd open` requests it with ``POST /open``, and the first
browser that opens it gets the cookie), or with a token that a person types into the form of
``/login``. That token stays in this process, and each request is checked by it anew, so that a
session ends with its token. Links and cookies are random values that exist in this process only.

Browsers send a cookie to every port of a host, so servers on other ports of this machine get it,
too. Therefore its name has the port, and `security` checks which user's program sends it; a session
of a client's token is also good for programs of other users, who may have tokens of their own.

The cookie that protects forms is another one (`page.browser`): servers without a token have it,
too, and it must reach a page that a link of another site leads to, which this one must not.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Scope

from qmd.server.failures import OLD_LINK, wants_page
from qmd.values.access import AccessScope

OPEN_PATH, LOGIN_PATH, LOGOUT_PATH = "/open", "/login", "/logout"

#: Seconds that a link can be opened.
LINK_S = 60.0

#: Seconds that a session lasts after its last request.
SESSION_S = 12 * 3600.0

MAX_LINKS = 16

#: If there are more sessions, the one that was used least recently ends.
MAX_SESSIONS = 1000

MAX_LINKED = 64
#: Of the sessions that links began, and of those of one token, which ends no other's.
MAX_OF_TOKEN = 16

#: The most bytes of the form: anybody may send it. The token of an OAuth server has a few KiB.
MAX_FORM_BYTES = 16 * 1024

#: The key in the state of a request that a session cookie let in.
IN_SESSION = "in_session"

COOKIE = "qmd_session"
_MAX_COOKIES = 8  # of one name; a browser sends several if they were set for several paths

#: What a client with this token may use; None if the token is not valid. May raise QmdError.
FindScope = Callable[[str], Awaitable["AccessScope | None"]]


async def _nobody(_: str) -> AccessScope | None:
    return None


@dataclass(slots=True)
class BrowserSession:
    """
    What is known of a browser that was let in.

    Attributes:
        token: What the person typed; "" for the token of the administrator, None if the session
            began with a link.
        ends: When it ends, unless it is used until then, by the clock of `Sessions`.
    """

    token: str | None = field(repr=False)
    ends: float

    @property
    def is_linked(self) -> bool:
        return self.token is None


class Sessions:
    """
    The links and sessions of one server. Use it on the event loop only.

    Args:
        administrator: The token that opens everything; None if the server requires none.
        find_scope: Looks up the tokens of clients.

    Attributes:
        takes_tokens: Whether the server requires a token, and so has a form for it.
    """

    def __init__(
        self,
        administrator: str | None = None,
        find_scope: FindScope = _nobody,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._administrator = administrator
        self.find_scope = find_scope
        self.takes_tokens = administrator is not None
        self._clock = clock
        self._links: dict[str, float] = {}  # hash of the code → its end, the earliest first
        # Hash of the cookie → session; what was used last comes last.
        self._sessions: dict[str, BrowserSession] = {}

    def new_link(self) -> str:
        """The path and query of a link that works once."""
        if len(self._links) >= MAX_LINKS:
            del self._links[next(iter(self._links))]
        code = secrets.token_urlsafe(32)
        self._links[_hash(code)] = self._clock() + LINK_S
        return f"{OPEN_PATH}?code={code}"

    def begin(self, code: str) -> str | None:
        """The cookie of a new session for the code of a link; None if it no longer works."""
        if self._links.pop(_hash(code), 0.0) <= self._clock():
            return None
        return self._new(None, MAX_LINKED)

    async def log_in(self, token: str) -> str | None:
        """
        The cookie of a new session for a token; None if the token opens nothing.

        Raises:
            QmdError: The token cannot be looked up now.
        """
        if self._administrator is None:
            return None
        if hmac.compare_digest(token.encode("utf-8", "replace"), self._administrator.encode()):
            return self._new("", MAX_OF_TOKEN)
        access = await self.find_scope(token)
        return self._new(token, MAX_OF_TOKEN) if access is not None and access.read else None

    def _new(self, token: str | None, most: int) -> str:
        now = self._clock()
        for key in [key for key, each in self._sessions.items() if each.ends <= now]:
            del self._sessions[key]
        same = [key for key, each in self._sessions.items() if each.token == token]
        for key in same[: max(0, len(same) - most + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(32)
        self._sessions[_hash(cookie)] = BrowserSession(token, now + SESSION_S)
        return cookie

    def find(self, scope: Scope) -> BrowserSession | None:
        """The session of a cookie of the request, whose time starts again; None without one."""
        for value in cookies(scope, COOKIE):
            key = _hash(value)
            session = self._sessions.pop(key, None)
            if session is not None and session.ends > self._clock():
                session.ends = self._clock() + SESSION_S
                self._sessions[key] = session
                return session
        return None

    def end(self, scope: Scope) -> None:
        """End the session of a cookie of the request, if it has one."""
        for value in cookies(scope, COOKIE):
            self._sessions.pop(_hash(value), None)


def cookies(scope: Scope, name: str) -> list[str]:
    """The values of all cookies of a name; programs on other ports may have set some."""
    name = cookie_name(scope, name)
    pairs = [
        pair.strip().partition("=")
        for key, header in scope["headers"]
        if key == b"cookie"
        for pair in header.decode("latin-1").split(";")
    ]
    return [value for key, _, value in pairs if key == name][:_MAX_COOKIES]


def set_cookie(
    response: Response,
    request: Request,
    name: str,
    value: str,
    samesite: Literal["lax", "strict"] = "strict",
) -> None:
    """Give the browser a cookie for this server alone, which no script can read."""
    response.set_cookie(
        cookie_name(request.scope, name),
        value,
        httponly=True,
        samesite=samesite,
        secure=_is_encrypted(request),
        path="/",
    )


def _is_encrypted(request: Request) -> bool:
    """
    Whether the browser uses TLS, which a proxy may end: it sends a header, and the browser Origin.

    Any program can send these; with them it makes only its own cookie a stricter one.
    """
    forwarded, _, _ = request.headers.get("x-forwarded-proto", "").partition(",")
    origin = request.headers.get("origin", "")
    return (
        request.url.scheme == "https"
        or forwarded.strip().lower() == "https"
        or origin.startswith("https://")
    )


def cookie_name(scope: Scope, name: str) -> str:
    """The name has the port, as browsers send a cookie to all ports of a machine."""
    _, port = scope.get("server") or ("", 0)
    return f"{name}_{port}"


def own_path(address: str) -> str:
    """A path on this server; that of the search for any other address."""
    is_own = address.startswith("/") and address[1:2] not in ("/", "\\") and address.isprintable()
    return address if is_own and not address.startswith(LOGIN_PATH) else "/"


def open_page(sessions: Sessions) -> Callable[[Request], Awaitable[Response]]:
    """The handler of ``/open``; where no token is required, the link is that of the page."""

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            return JSONResponse({"path": sessions.new_link() if sessions.takes_tokens else "/"})
        following = own_path(request.query_params.get("next", "/"))
        response = RedirectResponse(following, status_code=303)
        if sessions.takes_tokens:
            cookie = sessions.begin(request.query_params.get("code", ""))
            if cookie is None:
                return OLD_LINK.response(as_page=wants_page(request.scope))
            set_cookie(response, request, COOKIE, cookie)
        return response

    return answer


def _hash(secret: str) -> str:
    # Looking up a hash takes no time that tells of the secret.
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()

"""
Lets a browser use a server that requires a token: with a link that works once, then a cookie.

A browser cannot send a token with a page or an event stream. `qmd open` can: it requests a link
(``POST /open``), and the first browser that opens the link (``GET /open?code=…``) gets a session
cookie. Code and cookie are random values that exist in this process only.

Browsers send a cookie to every port of a host, so servers on other ports of this machine get it,
too. Therefore its name has the port, and `security` checks which user's program sends it.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Scope

OPEN_PATH = "/open"

LINK_S = 60.0
"""Seconds that a link can be opened."""

SESSION_S = 12 * 3600.0
"""Seconds that a session lasts after its last request."""

MAX_LINKS = 16
MAX_SESSIONS = 64
"""If there are more sessions, the one that was used least recently ends."""


_MAX_COOKIES = 8


class _Secrets:
    """At most ``max_number`` random values, each valid for ``lifetime_s`` seconds."""

    def __init__(self, max_number: int, lifetime_s: float, clock: Callable[[], float]) -> None:
        self._max_number = max_number
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._ends: dict[str, float] = {}  # secret → time of its end, the earliest first

    def new(self) -> str:
        self._remove_expired()
        while len(self._ends) >= self._max_number:
            del self._ends[next(iter(self._ends))]
        value = secrets.token_urlsafe(32)
        self._ends[value] = self._clock() + self._lifetime_s
        return value

    def take(self, secret: str) -> bool:
        """Remove a secret; returns whether it existed."""
        value = self._find(secret)
        if value is None:
            return False
        del self._ends[value]
        return True

    def renew(self, secret: str) -> bool:
        """Start the time of a secret again; returns whether it exists."""
        value = self._find(secret)
        if value is None:
            return False
        del self._ends[value]
        self._ends[value] = self._clock() + self._lifetime_s
        return True

    def _find(self, secret: str) -> str | None:
        """
        The stored secret that is equal; None if there is none.

        It is compared with all secrets, so that the time taken reveals nothing.
        """
        self._remove_expired()
        match = None
        for value in self._ends:
            if hmac.compare_digest(value.encode(), secret.encode("utf-8", "replace")):
                match = value
        return match

    def _remove_expired(self) -> None:
        now = self._clock()
        for value in [value for value, end in self._ends.items() if end <= now]:
            del self._ends[value]


class Sessions:
    """The links and sessions of one server. Use it on the event loop only."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._links = _Secrets(MAX_LINKS, LINK_S, clock)
        self._sessions = _Secrets(MAX_SESSIONS, SESSION_S, clock)

    def new_link(self) -> str:
        """The path and query of a link that works once."""
        return f"{OPEN_PATH}?code={self._links.new()}"

    def begin(self, code: str) -> str | None:
        """The id of a new session for the code of a link; None if the link no longer works."""
        return self._sessions.new() if self._links.take(code) else None

    def is_in(self, scope: Scope, cookies: bytes) -> bool:
        """Whether a cookie of the request belongs to a session; renews the session."""
        return any(self._sessions.renew(value) for value in cookie_values(scope, cookies))

    def end(self, scope: Scope, cookies: bytes) -> None:
        """End the session of a cookie of the request, if it has one."""
        for value in cookie_values(scope, cookies):
            self._sessions.take(value)


def cookie_values(scope: Scope, cookies: bytes) -> list[str]:
    """The values of all session cookies in a header; servers on other ports may have set some."""
    name = cookie_name(scope)
    pairs = (pair.strip().partition("=") for pair in cookies.decode("latin-1").split(";"))
    return [value for key, _, value in pairs if key == name][:_MAX_COOKIES]


def cookie_name(scope: Scope) -> str:
    _, port = scope.get("server") or ("", 0)
    return f"qmd_session_{port}"


class OpenPage:
    """
    The handler of ``/open``.

    Args:
        guarded: Whether the server requires a token; if not, the link is that of the page.
        refuse: Makes the response to a link that no longer works.
    """

    def __init__(
        self, sessions: Sessions, *, guarded: bool, refuse: Callable[[Request], Response]
    ) -> None:
        self._sessions = sessions
        self._guarded = guarded
        self._refuse = refuse

    async def __call__(self, request: Request) -> Response:
        if request.method == "POST":
            return JSONResponse({"path": self._sessions.new_link() if self._guarded else "/"})
        response = RedirectResponse("/", status_code=303)
        if self._guarded:
            session = self._sessions.begin(request.query_params.get("code", ""))
            if session is None:
                return self._refuse(request)
            response.set_cookie(
                cookie_name(request.scope), session, httponly=True, samesite="strict", path="/"
            )
        return response

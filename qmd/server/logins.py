"""
Lets a browser in with a token that a person typed into the form of `/login`.

The browser gets a session cookie in exchange. The token stays in this process, and each request is
checked by it anew, so that a session ends with its token. Names and limits of the cookie are those
of `sessions`; a session of a client's token is also good for programs of other users, who may have
tokens of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.types import Scope

from qmd.server.sessions import SESSION_S, cookie_values
from qmd.values.access import AccessScope

LOGIN_PATH, LOGOUT_PATH = "/login", "/logout"

MAX_LOGINS = 1000
"""If there are more sessions, the one that was used least recently ends."""

MAX_LOGINS_OF_TOKEN = 16
"""So that a client cannot end the sessions of all others."""

MAX_FORM_BYTES = 16 * 1024
"""The most bytes of the form: anybody may send it. The token of an OAuth server has a few KiB."""

IN_SESSION = "in_session"
"""The key in the state of a request that a session cookie let in."""

FindScope = Callable[[str], Awaitable["AccessScope | None"]]
"""What a client with this token may use; None if the token is not valid."""


@dataclass(slots=True)
class Login:
    """
    A session.

    Attributes:
        token: What the person typed; "" for the token of the administrator.
        ends: When it ends, unless it is used until then, by the clock of `Logins`.
    """

    token: str = field(repr=False)
    ends: float


class Logins:
    """
    The sessions that began with a token. Use it on the event loop only.

    Args:
        administrator: The token that opens everything; None if the server requires none, and so
            takes no logins.
        find_scope: Looks up the tokens of clients.
    """

    def __init__(
        self,
        administrator: str | None,
        find_scope: FindScope,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._administrator = administrator
        self._find_scope = find_scope
        self._clock = clock
        self._logins: dict[str, Login] = {}  # hash of the cookie → the one that was used last, last

    @property
    def is_needed(self) -> bool:
        """Whether the server requires a token."""
        return self._administrator is not None

    async def begin(self, token: str) -> str | None:
        """
        The value of the cookie of a new session; None if the token opens nothing.

        Raises:
            QmdError: The token cannot be looked up now.
        """
        if self._administrator is None:
            return None
        is_administrator = hmac.compare_digest(
            token.encode("utf-8", "replace"), self._administrator.encode()
        )
        if not is_administrator:
            access = await self._find_scope(token)
            if access is None or not access.read:
                return None
        kept = "" if is_administrator else token
        self._make_room(kept)
        cookie = secrets.token_urlsafe(32)
        self._logins[_hash(cookie)] = Login(kept, self._clock() + SESSION_S)
        return cookie

    def _make_room(self, token: str) -> None:
        now = self._clock()
        for key in [key for key, each in self._logins.items() if each.ends <= now]:
            del self._logins[key]
        same = [key for key, each in self._logins.items() if each.token == token]
        for key in same[: max(0, len(same) - MAX_LOGINS_OF_TOKEN + 1)]:
            del self._logins[key]
        while len(self._logins) >= MAX_LOGINS:
            del self._logins[next(iter(self._logins))]

    def find(self, scope: Scope, cookies: bytes) -> Login | None:
        """The session of a cookie of the request, whose time starts again; None without one."""
        for value in cookie_values(scope, cookies):
            key = _hash(value)
            login = self._logins.pop(key, None)
            if login is not None and login.ends > self._clock():
                login.ends = self._clock() + SESSION_S
                self._logins[key] = login
                return login
        return None

    async def access(self, login: Login) -> AccessScope | None:
        """
        What a client's session opens; None if its token is not valid any more.

        Raises:
            QmdError: The token cannot be looked up now.
        """
        access = await self._find_scope(login.token)
        return access if access is not None and access.read else None

    def end(self, scope: Scope, cookies: bytes) -> None:
        """End the session of a cookie of the request, if it has one."""
        for value in cookie_values(scope, cookies):
            self._logins.pop(_hash(value), None)


def _hash(cookie: str) -> str:
    # Looking up a hash takes no time that tells of the cookie.
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()

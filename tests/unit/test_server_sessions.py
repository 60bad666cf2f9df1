"""Links that work once, the sessions they begin, and which requests a cookie lets through."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.server.security import CLIENT_UID, RequestGuard, Security
from qmd.server.sessions import (
    LINK_S,
    MAX_LINKED,
    MAX_LINKS,
    SESSION_S,
    BrowserSession,
    Sessions,
)

SCOPE = {"type": "http", "server": ("127.0.0.1", 18765)}


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def code_of(link: str) -> str:
    assert link.startswith("/open?code=")
    return link.removeprefix("/open?code=")


def session(sessions: Sessions) -> str:
    found = sessions.begin(code_of(sessions.new_link()))
    assert found is not None
    return found


def is_in(sessions: Sessions, value: str, port: int = 18765) -> bool:
    return find(sessions, f"qmd_session_{port}={value}".encode()) is not None


def find(sessions: Sessions, cookies: bytes) -> BrowserSession | None:
    return sessions.find({**SCOPE, "headers": [(b"cookie", cookies)]})


def test_a_link_works_once_and_for_a_minute() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock)
    code = code_of(sessions.new_link())
    assert sessions.begin(code) is not None
    assert sessions.begin(code) is None
    late = code_of(sessions.new_link())
    clock.now += LINK_S
    assert sessions.begin(late) is None


def test_a_session_lasts_while_it_is_used() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock)
    value = session(sessions)
    for _ in range(3):
        clock.now += SESSION_S - 1
        assert is_in(sessions, value)
    clock.now += SESSION_S
    assert not is_in(sessions, value)


def test_a_cookie_of_another_port_is_not_ours() -> None:
    sessions = Sessions()
    value = session(sessions)
    assert not is_in(sessions, value, 18766)
    # Another server of this machine may have set one of our name for the same host.
    both = f"qmd_session_18765=theirs; a=b;qmd_session_18765={value}"
    assert find(sessions, both.encode()) is not None


def test_there_are_so_many_links_and_sessions_and_no_more() -> None:
    sessions = Sessions()
    codes = [code_of(sessions.new_link()) for _ in range(MAX_LINKS + 3)]
    assert [sessions.begin(code) is not None for code in codes] == [False] * 3 + [True] * MAX_LINKS
    kept = session(sessions)
    for _ in range(3 * MAX_LINKED):
        session(sessions)
        assert is_in(sessions, kept)  # what is used stays


@given(st.text(max_size=60), st.binary(max_size=200))
def test_nothing_else_is_a_code_or_a_cookie(text: str, cookies: bytes) -> None:
    sessions = Sessions()
    session(sessions)
    sessions.new_link()
    assert sessions.begin(text) is None
    assert find(sessions, cookies) is None
    assert find(sessions, b"qmd_session_18765=" + cookies) is None


# --- which requests a cookie lets through ----------------------------------------------

OURS = b"http://localhost:18765"
HOST = (b"host", b"localhost:18765")


async def echo(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def status(
    *headers: tuple[bytes, bytes],
    method: str = "GET",
    path: str = "/events",
    uid: int | None = 1000,
    users: frozenset[int] | None = frozenset({0, 1000}),
) -> int:
    """Of a request with the cookie of a session."""
    sessions = Sessions("s3cret")
    cookie = (b"cookie", f"qmd_session_18765={session(sessions)}".encode())
    guard = RequestGuard(echo, Security(token="s3cret", users=users), sessions)
    scope = {
        **SCOPE,
        "method": method,
        "path": path,
        "state": {CLIENT_UID: uid},
        "headers": [HOST, cookie, *headers],
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guard(scope, receive, send))  # type: ignore[arg-type]
    return int(sent[0]["status"])


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_a_page_of_this_server_may_ask_and_no_other(method: str) -> None:
    assert status((b"origin", OURS), method=method) == 200
    for other in (
        b"http://localhost:3000",  # the same site, to a browser
        b"http://localhost",
        b"http://127.0.0.1:18765",
        b"http://localhost:187650",
        b"null",
    ):
        assert status((b"origin", other), method=method) == 403
    assert status((b"origin", OURS), (b"origin", OURS), method=method) == 403


@pytest.mark.parametrize(
    ("site", "expected"),
    [(b"same-origin", 200), (b"none", 200), (b"same-site", 403), (b"cross-site", 403), (b"", 403)],
)
def test_without_an_origin_the_browser_says_whose_page_it_is(site: bytes, expected: int) -> None:
    assert status((b"sec-fetch-site", site)) == expected


def test_a_browser_that_says_nothing_may_read_only() -> None:
    assert status() == 200
    assert status(method="POST") == 403
    assert status(method="PUT", path="/collections/notes") == 403


def test_a_cookie_does_not_mend_a_wrong_token() -> None:
    assert status((b"authorization", b"Bearer wrong")) == 401
    assert status((b"authorization", b"Bearer s3cret")) == 200


def test_a_cookie_that_another_user_has_come_by_lets_nobody_in() -> None:
    assert status(uid=1001) == 403
    assert status(uid=None) == 403
    assert status(uid=0) == 200
    assert status(uid=1001, users=None) == 200
    # With the token, anybody.
    assert status((b"authorization", b"Bearer s3cret"), uid=1001) == 200
    # The link is seen in process lists.
    assert status(path="/open", uid=1001) == 403

"""Who may ask: the rules by themselves, and the guard around an application that echoes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.errors import InputError
from qmd.server.security import RequestGuard, Security, is_loopback, security_for


def test_loopback_is_what_no_other_machine_reaches() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.1.2", "example.org", ""]))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_an_address_for_others_needs_a_token(host: str) -> None:
    with pytest.raises(InputError, match="demands a token"):
        security_for(host, None)
    assert security_for(host, "t").token == "t"


@pytest.mark.parametrize("token", ["", "两", "a\nb", " a", "a "])
def test_a_token_must_fit_in_a_header(token: str) -> None:
    with pytest.raises(InputError):
        security_for("127.0.0.1", token)


def test_a_token_is_not_shown() -> None:
    assert "s3cret" not in repr(Security(token="s3cret"))


def test_only_a_server_on_all_addresses_is_known_by_any_address() -> None:
    assert security_for("0.0.0.0", "t").knows("192.0.2.7")
    assert not security_for("192.168.1.2", "t").knows("192.0.2.7")
    assert security_for("192.168.1.2", "t").knows("192.168.1.2")
    assert not security_for("127.0.0.1", None).knows("192.0.2.7")
    assert security_for("127.0.0.1", None, ["Notes.example"]).knows("notes.example")


async def echo(scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def ask(
    security: Security,
    headers: Sequence[tuple[bytes, bytes]],
    body: Sequence[bytes] = (b"",),
    *,
    silent: bool = False,
    path: str = "/x",
) -> tuple[int, bytes]:
    """Status and body; ``silent``: the client stops in the middle of its body."""
    sent: list[dict[str, Any]] = []
    parts = list(body)

    async def receive() -> dict[str, Any]:
        if silent and not parts:
            await asyncio.Event().wait()
        more = silent or len(parts) > 1
        return {"type": "http.request", "body": parts.pop(0), "more_body": more}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": list(headers)}
    asyncio.run(RequestGuard(echo, security)(scope, receive, send))  # type: ignore[arg-type]
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


HOST = (b"host", b"localhost")


def test_a_body_comes_through_whole_whatever_its_parts() -> None:
    assert ask(Security(), [HOST], [b"ab", b"", b"c"]) == (200, b"abc")


def test_a_body_may_be_as_long_as_the_limit_and_no_longer() -> None:
    security = Security(max_body=4)
    assert ask(security, [HOST], [b"ab", b"cd"])[0] == 200
    assert ask(security, [HOST], [b"ab", b"cde"])[0] == 413
    assert ask(security, [HOST, (b"content-length", b"5")], [b""])[0] == 413


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    assert ask(Security(body_timeout_s=0.01), [HOST], [b"a"], silent=True)[0] == 408


@pytest.mark.parametrize(
    "header", [(b"content-length", b"4000000"), (b"transfer-encoding", b"chunked")]
)
def test_who_needs_no_token_sends_no_body(header: tuple[bytes, bytes]) -> None:
    security = Security(token="s3cret")
    status, body = ask(security, [HOST, header], silent=True, path="/health")
    assert status == 413, body
    assert ask(security, [HOST], path="/health")[0] == 200
    assert ask(security, [HOST, (b"content-length", b"0")], path="/health")[0] == 200


@settings(deadline=None)
@given(st.binary(max_size=40).filter(lambda name: name.strip().lower() != b"localhost"))
def test_no_other_host_is_taken_for_this_machine(name: bytes) -> None:
    known = (b"localhost", b"127.0.0.1", b"[::1]")
    bare, _, port = name.strip().lower().rpartition(b":")
    if bare in known and (port == b"" or port.isdigit()):
        return
    if name.strip().lower() in known:
        return
    assert ask(Security(), [(b"host", name)])[0] == 403
    assert ask(Security(), [(b"host", b"localhost" + b"." + name)])[0] == 403


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_no_other_origin_is_taken_for_this_machine(name: bytes) -> None:
    origin = b"http://evil" + name.replace(b"@", b"").replace(b"\\", b"")
    assert ask(Security(), [HOST, (b"origin", origin)])[0] == 403


def test_two_hosts_are_none() -> None:
    assert ask(Security(), [HOST, HOST])[0] == 403


@settings(deadline=None)
@given(st.binary(max_size=20).filter(lambda token: token.strip() != b"s3cret"))
def test_no_other_token_opens(token: bytes) -> None:
    security = Security(token="s3cret")
    assert ask(security, [HOST, (b"authorization", b"Bearer " + token)])[0] == 401
    assert ask(security, [HOST, (b"authorization", b"bearer s3cret")])[0] == 200


def test_a_web_socket_is_closed_before_any_route_sees_it() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/mcp", "headers": [HOST]}
    asyncio.run(RequestGuard(echo, Security())(scope, None, send))  # type: ignore[arg-type]
    assert [message["type"] for message in sent] == ["websocket.close"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (b"http://localhost:8765", 200),
        (b"http://127.0.0.1:8765", 200),
        (b"http://localhost:3000", 403),
        (b"http://[::1]:3000", 403),
        (b"http://localhost", 403),
        (b"https://notes.example", 200),
    ],
)
def test_what_serves_another_port_of_this_machine_changes_nothing(
    origin: bytes, status: int
) -> None:
    """It may show pages of strangers. A proxy with a name of its own may forward requests."""
    security = Security(hosts=frozenset({"notes.example"}))
    assert ask(security, [(b"host", b"localhost:8765"), (b"origin", origin)])[0] == status

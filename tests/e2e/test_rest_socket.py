"""REST over a real socket: events, slow and vanishing clients, huge bodies, many at once."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from support.embedder import HashEmbedder
from support.rest import WAIT_S, rest_server
from support.vault import make_index

from qmd import KnowledgeBase, Settings
from qmd.ingest.events import Event
from qmd.server import streams
from qmd.server.rest import Limits
from qmd.server.security import Security

Address = tuple[str, int]


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(make_index(tmp_path), Settings(embedder=HashEmbedder())) as opened:
        yield opened


def ask(address: Address, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(*address, timeout=WAIT_S)
    try:
        data = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class EventClient:
    """Reads a stream of server-sent events."""

    def __init__(self, address: Address) -> None:
        self._connection = http.client.HTTPConnection(*address, timeout=WAIT_S)
        self._connection.request("GET", "/events")
        self.response = self._connection.getresponse()
        assert self.block() == [": qmd"]

    def __enter__(self) -> EventClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.response.close()
        self._connection.close()

    def block(self) -> list[str]:
        """The lines up to the next blank one."""
        return list(iter(lambda: self.response.readline().decode().rstrip("\n"), ""))

    def next(self) -> tuple[str, Any]:
        """The next event's name and data."""
        while (block := self.block())[0].startswith(":"):
            pass
        name, data = block
        assert name.startswith("event: ")
        return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_events_tell_what_changed(kb: KnowledgeBase) -> None:
    notes = Path(kb.collection("notes").path)
    with rest_server(kb) as address, EventClient(address) as client:
        assert client.response.status == 200
        assert client.response.getheader("content-type") == "text/event-stream; charset=utf-8"
        assert client.response.getheader("cache-control") == "no-cache"
        (notes / "行星.md").write_text("# 行星\n", encoding="utf-8")
        assert ask(address, "POST", "/index")[0] == 200
        name, event = client.next()
        while name != "added":
            name, event = client.next()
        assert (event["file"], event["collection"]) == ("notes/行星.md", "notes")
        assert event["uri"] == "qmd://notes/%E8%A1%8C%E6%98%9F.md"


def test_a_silent_stream_has_a_heartbeat(kb: KnowledgeBase) -> None:
    with (
        rest_server(kb, limits=Limits(heartbeat_s=0.05)) as address,
        EventClient(address) as client,
    ):
        assert client.block() == [": heartbeat"]
        assert client.block() == [": heartbeat"]


def test_so_many_streams_and_no_more_until_one_leaves(kb: KnowledgeBase) -> None:
    limits = Limits(event_streams=2, heartbeat_s=0.02)
    with rest_server(kb, limits=limits) as address, EventClient(address):
        with EventClient(address):
            status, body = ask(address, "GET", "/events")
            assert (status, body["status_code"]) == (503, 503)
        for _ in range(1000):  # the server notices at its next heartbeat
            connection = http.client.HTTPConnection(*address, timeout=WAIT_S)
            connection.request("GET", "/events")
            status = connection.getresponse().status
            connection.close()
            if status == 200:
                break
        assert status == 200


def test_a_client_that_vanished_leaves_nothing_behind(kb: KnowledgeBase) -> None:
    bus = kb.events
    with rest_server(kb, limits=Limits(heartbeat_s=0.02)) as address:
        for _ in range(20):
            with EventClient(address):
                assert bus._callbacks
        left = threading.Event()
        for _ in range(2000):
            if not bus._callbacks:
                left.set()
                break
            ask(address, "GET", "/health")
        assert left.is_set()
        assert ask(address, "GET", "/health")[0] == 200


def test_a_slow_reader_is_told_that_it_missed_events() -> None:
    """The queue is bounded: what does not fit is counted, the newest stay."""
    import anyio

    from qmd.ingest.events import EventBus

    async def run() -> bytes:
        bus = EventBus()
        events = streams.index_stream(bus, heartbeat_s=WAIT_S)
        assert await anext(events) == b": qmd\n\n"
        for number in range(streams.MAX_WAITING + 7):
            bus.publish(Event("indexing", "2026-01-01T00:00:00Z", done=number))
        missed = await anext(events)
        rest = await anext(events)
        await events.aclose()
        bus.publish(Event("synced", "2026-01-01T00:00:00Z"))  # to nobody
        assert missed == b'event: missed\ndata: {"missed": 7}\n\n'
        return rest

    rest = anyio.run(run)
    assert rest.count(b"event: indexing") == streams.MAX_WAITING
    assert b'"done": 6}' not in rest
    assert b'"done": 7}' in rest


# --- bodies --------------------------------------------------------------------------


def raw(address: Address, *parts: bytes) -> tuple[socket.socket, BinaryIO]:
    """A connection on which these bytes were sent, as far as the server took them."""
    connection = socket.create_connection(address, timeout=WAIT_S)
    try:
        for part in parts:
            connection.sendall(part)
    except OSError:
        pass  # it has answered and closed
    return connection, connection.makefile("rb")


HEAD = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_chunked_body_is_a_body(kb: KnowledgeBase) -> None:
    chunks = [b'{"query"', b': "isl', b'ands"}']
    encoded = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
    with rest_server(kb) as address:
        connection, answer = raw(address, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", encoded)
        with connection, answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_refused_whether_it_tells_its_size_or_not(
    kb: KnowledgeBase, chunked: bool
) -> None:
    block = b"x" * 65536
    if chunked:
        parts = [
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
            *[b"10000\r\n" + block + b"\r\n"] * 70,
        ]
    else:
        parts = [HEAD + b"Content-Length: %d\r\n\r\n" % (70 * 65536), *[block] * 70]
    with rest_server(kb, security=Security()) as address:
        connection, answer = raw(address, *parts)
        with connection, answer:
            assert b" 413 " in answer.readline()
        assert ask(address, "GET", "/health")[0] == 200


def test_a_body_that_never_ends_is_given_up(kb: KnowledgeBase) -> None:
    with rest_server(kb, security=Security(body_timeout_s=0.1)) as address:
        connection, answer = raw(address, HEAD + b'Content-Length: 100\r\n\r\n{"que')
        with connection, answer:
            assert b" 408 " in answer.readline()


def test_clients_that_leave_in_the_middle_harm_nobody(kb: KnowledgeBase) -> None:
    with rest_server(kb) as address:
        for sent in (b"POST /se", HEAD, HEAD + b'Content-Length: 100\r\n\r\n{"que') * 10:
            raw(address, sent)[0].close()
        whole = HEAD + b'Content-Length: 20\r\n\r\n{"query": "islands"}'
        for _ in range(10):
            raw(address, whole)[0].close()
        assert ask(address, "POST", "/search", {"query": "islands"})[1]["results"]


# --- many ----------------------------------------------------------------------------


def test_200_at_once_while_the_index_is_made(kb: KnowledgeBase) -> None:
    notes = Path(kb.collection("notes").path)
    for number in range(300):
        (notes / f"page {number}.md").write_text(f"# Page {number}\n\nislands {number}\n")
    asked = [
        ("POST", "/search", {"query": "islands"}),
        ("POST", "/query", {"query": "islands"}),
        ("POST", "/get", {"file": "notes/2025/plan.md"}),
        ("GET", "/status", None),
        ("GET", "/documents?limit=5", None),
        ("GET", "/health", None),
    ]
    with rest_server(kb) as address, ThreadPoolExecutor(32) as threads:
        indexed = threads.submit(ask, address, "POST", "/index")
        answers = [
            threads.submit(ask, address, *asked[number % len(asked)]) for number in range(200)
        ]
        statuses = {each.result(WAIT_S)[0] for each in answers}
        status, reply = indexed.result(WAIT_S)
    assert statuses == {200}
    assert (status, reply["changes"]["added"]) == (200, 300)

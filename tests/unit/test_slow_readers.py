"""Clients that ask and do not read what they get."""

from __future__ import annotations

import json
import select
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.site import Served, serve

from qmd.server import http

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no poll")

WAIT_S = 60
LARGE = "# Large\n\n" + "A line of filler.\n" * 600_000


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, {"large.md": LARGE, "small.md": "# Small\n"}, embed=False) as server:
        yield server


def ask(server: Served, file: str) -> socket.socket:
    """Ask for a document, and read nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(WAIT_S)
    connection.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
    body = json.dumps({"file": file}).encode()
    head = "POST /get HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def is_closed(connection: socket.socket, *, wait_s: float = WAIT_S) -> bool:
    """Whether the server closes the connection, without reading from it."""
    look = select.poll()
    look.register(connection, 0)
    return bool(look.poll(wait_s * 1000))


def has_all(connection: socket.socket, document: str) -> bool:
    """Read the whole response, and look for the document in it."""
    with connection.makefile("rb") as stream:
        length = 0
        while header := stream.readline().strip():
            name, _, value = header.partition(b":")
            if name == b"content-length":
                length = int(value)
        return json.dumps(document)[1:-1].encode() in stream.read(length)


def test_one_that_reads_nothing_is_closed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "READ_TIMEOUT_S", 0.2)
    with ask(served, "notes/large.md") as silent, ask(served, "notes/small.md") as reader:
        assert is_closed(silent)
        assert not is_closed(reader, wait_s=0)
        assert has_all(reader, "# Small\n")


def test_the_slowest_is_closed_if_they_leave_too_much(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_UNREAD_BYTES", len(LARGE))
    with ask(served, "notes/large.md") as first:
        assert first.recv(1)  # it has its response, and waits no longer for a thread
        with ask(served, "notes/large.md") as second:
            assert is_closed(first)
            assert has_all(second, LARGE)

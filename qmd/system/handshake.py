"""Asks an MCP server who it is, as a client does first: over its stdin and stdout, or over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from qmd.system import http_client
from qmd.system.http_client import TimeLimit
from qmd.values.text import one_line

#: The longest wait for an answer; a slow machine takes some seconds to start Python.
TIMEOUT_S = 15.0

_PROTOCOL = "2025-06-18"
_MAX_BYTES = 4 << 20  # of all that is said up to the answer
_MAX_WORDS = 200  # characters of what a program says when it fails
_TAIL = 4096  # bytes of stderr that are kept
_END_S = 3.0  # for a program to end by itself
_LAST_WORDS_S = 0.5  # for the rest of stderr, when stdout has ended


class HandshakeError(Exception):
    """No MCP server answered; the text is a part of a sentence about the server."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says about itself."""

    name: str
    version: str


def over_stdio(
    command: Sequence[str], env: Mapping[str, str] | None = None, *, timeout_s: float = TIMEOUT_S
) -> ServerInfo:
    """
    Start a server, ask who it is, and end it.

    It starts in the user's home directory, as clients with a window do: programs such as
    ``python -m`` take code from the directory that they start in, which may be a stranger's here.

    Raises:
        HandshakeError: It cannot be started, ends without an answer, or does not answer in time.
    """
    home = Path.home()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=home if home.is_dir() else None,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise HandshakeError(f"cannot be started: {error}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        errors = _Tail(process.stderr)
        with suppress(OSError):
            process.stdin.write(_initialize() + b"\n")
            process.stdin.flush()
        lines: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        return _first_answer(lines, timeout_s, errors)
    finally:
        _end(process)


def over_http(
    url: str, headers: Mapping[str, str] | None = None, *, timeout_s: float = TIMEOUT_S
) -> ServerInfo:
    """
    Ask the server at an address who it is.

    Raises:
        HandshakeError: Nothing answers there, or no MCP server does.
    """
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    try:
        with http_client.request(
            url,
            limit=TimeLimit(timeout_s, timeout_s),
            body=_initialize(),
            headers={**accepted, **(headers or {})},
            use_proxy=False,
        ) as reply:
            if reply.status in (401, 403):
                raise HandshakeError(f"refuses ({reply.status}): the token is missing or wrong")
            if reply.status != 200:
                raise HandshakeError(f"answers {reply.status}, which no MCP server does")
            if "event-stream" not in reply.headers.get("content-type", ""):
                return _server_info(reply.read(_MAX_BYTES))
            for line in _lines(reply.pieces()):
                if line.startswith(b"data:") and line.strip() != b"data:":
                    with suppress(HandshakeError):
                        return _server_info(line[5:])
    except (http_client.HttpError, http_client.ProxyError, ValueError) as error:
        raise HandshakeError(f"does not answer: {error}") from error
    raise HandshakeError("answers without saying who it is")


def _initialize() -> bytes:
    params = {
        "protocolVersion": _PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "qmd doctor", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return json.dumps(message).encode()


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a text that comes in pieces, up to `_MAX_BYTES`."""
    length, begun = 0, list[bytes]()
    for piece in pieces:
        length += len(piece)
        if length > _MAX_BYTES:
            return
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join([*begun, end])
            begun = []
        begun.append(rest)
    yield b"".join(begun)


class _Tail:
    """Reads a stream on a thread of its own, and keeps its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._data = b""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for piece in _pieces(self._stream):
            self._data = (self._data + piece)[-_TAIL:]

    def last_words(self) -> str:
        """What was written at last, after a colon; not the advice that qmd adds to an error."""
        self._thread.join(_LAST_WORDS_S)
        written = self._data.decode("utf-8", "replace").strip().splitlines()
        lines = [line for line in written if not line.startswith("hint: ")]
        return f": {one_line(lines[-1])[:_MAX_WORDS]}" if lines else ""


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """
    What a program writes, until it or `_end` closes the stream.

    It does not read from the buffered object: a thread that waits inside one holds a lock that
    `close` waits for, and a child of the program may keep the stream open.
    """
    with suppress(OSError, ValueError):
        while piece := os.read(stream.fileno(), 1 << 16):
            yield piece


def _read(stream: IO[bytes], lines: SimpleQueue[bytes | None]) -> None:
    """Put each line into the queue, and None at the end. Runs on a thread of its own."""
    for line in _lines(_pieces(stream)):
        lines.put(line)
    lines.put(None)


def _first_answer(lines: SimpleQueue[bytes | None], timeout_s: float, errors: _Tail) -> ServerInfo:
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left_s)
        except Empty:
            break
        if line is None:
            raise HandshakeError(f"ends without an answer{errors.last_words()}")
        with suppress(HandshakeError):
            return _server_info(line)
    raise HandshakeError(f"does not answer within {timeout_s:g} s{errors.last_words()}")


def _server_info(data: bytes) -> ServerInfo:
    try:
        message: Any = json.loads(data)
        info = message["result"]["serverInfo"]
        return ServerInfo(str(info["name"]), str(info["version"]))
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise HandshakeError("answers, but not as an MCP server") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a server: by the end of its stdin, as clients do, else by a signal to its group."""
    with suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        if sys.platform == "win32":
            process.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdout, process.stderr):
        with suppress(OSError):
            stream.close()  # type: ignore[union-attr]

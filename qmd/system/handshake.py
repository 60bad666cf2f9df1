"""Asks an MCP server who it is, as a client does first: over its stdin and stdout, or over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import IO, Any

from qmd.system import http_client, proxy
from qmd.system.http_client import TimeLimit
from qmd.values.printable import one_line

TIMEOUT_S = 15.0
"""The longest wait for an answer; a slow machine takes some seconds to start Python."""

_PROTOCOL = "2025-06-18"
_MAX_BYTES = 4 << 20  # of an answer
_MAX_WORDS = 200  # characters of what a program says when it fails
_END_S = 3.0  # for a program to end by itself


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

    Raises:
        HandshakeError: It cannot be started, ends without an answer, or does not answer in time.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise HandshakeError(f"cannot be started: {error}") from error
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(OSError):
                process.stdin.write(_initialize() + b"\n")
                process.stdin.flush()
            lines: SimpleQueue[bytes] = SimpleQueue()
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
            text = b""
            for piece in reply.pieces():
                text += piece
                for line in text.splitlines():
                    if line.startswith(b"data:") and line.strip() != b"data:":
                        with suppress(HandshakeError):
                            return _server_info(line[5:])
                if len(text) > _MAX_BYTES:
                    break
    except (http_client.HttpError, proxy.ProxyError, ValueError) as error:
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


def _read(stream: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    """Put each line into the queue; an empty one at the end. Runs on a thread of its own."""
    with suppress(OSError, ValueError):
        while line := stream.readline(_MAX_BYTES):
            lines.put(line)
    lines.put(b"")


def _first_answer(lines: SimpleQueue[bytes], timeout_s: float, errors: IO[bytes]) -> ServerInfo:
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left_s)
        except Empty:
            break
        if not line:
            raise HandshakeError(f"ends without an answer{_last_words(errors)}")
        with suppress(HandshakeError):
            return _server_info(line)
    raise HandshakeError(f"does not answer within {timeout_s:g} s{_last_words(errors)}")


def _server_info(data: bytes) -> ServerInfo:
    try:
        message: Any = json.loads(data)
        info = message["result"]["serverInfo"]
        return ServerInfo(str(info["name"]), str(info["version"]))
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise HandshakeError("answers, but not as an MCP server") from error


def _last_words(errors: IO[bytes]) -> str:
    """What a program has written to stderr at last, behind a colon."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 4096))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return f": {one_line(lines[-1])[:_MAX_WORDS]}" if lines else ""


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
    with suppress(OSError):
        process.stdout.close()  # type: ignore[union-attr]

"""
Serves JSON-RPC over stdin and stdout, with one message on each line.

The SDK's ``stdio_server`` has three problems. Its reader blocks a worker thread that cannot be
interrupted, so SIGTERM hangs until the client writes again. It does not answer an unreadable
line. And at the end of input it cancels requests that were read but not yet answered.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import queue
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from qmd.server.mcp_sdk import Server, SessionMessage
from qmd.server.workers import Backlog, current_backlog
from qmd.values.text import ESCAPED_HALF, replace_halves

#: A longer line is refused and skipped, because it could fill the memory.
MAX_LINE_BYTES = 16 * 1024 * 1024

#: Seconds that the server may take after the end of input to answer the requests it has read.
DRAIN_S = 5.0

_FLUSH_S = 2.0
_READ_AHEAD = 256  # the most lines that are read and not yet processed


@dataclass(frozen=True)
class Wire:
    """The two descriptors that carry the protocol."""

    read_fd: int
    write_fd: int


def claim_wire() -> Wire:
    """
    Take stdin and stdout for the protocol alone.

    After that descriptor 0 reads /dev/null and descriptor 1 writes to stderr. So a stray
    ``print``, a child process or a C library cannot write between two messages or read one.
    """
    sys.stdout.flush()
    wire = Wire(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    return wire


# --- lines ---------------------------------------------------------------------------


class RefusedLineError(Exception):
    """A line is not a valid message; ``answer`` is the error for the client."""

    def __init__(self, code: int, reason: str, request_id: str | int | None = None) -> None:
        super().__init__(reason)
        error = ErrorData(code=code, message=reason)
        self.answer = JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def decode(line: bytes) -> JSONRPCMessage:
    """
    Parse a line.

    Raises:
        RefusedLineError: The line is not a valid message.
    """
    message = _parsed(line)
    if message is None and (repaired := _without_lone_surrogates(line)) is not line:
        line = repaired
        message = _parsed(line)
    if message is None:
        raise _refusal(line)
    if isinstance(message, JSONRPCNotification) and "id" in json.loads(line):
        # The adapter parses a request whose id is null or 1.5 as a notification.
        raise RefusedLineError(
            INVALID_REQUEST, "Invalid Request: id must be a string or an integer"
        )
    return message


def _parsed(line: bytes) -> JSONRPCMessage | None:
    """
    None for a line that is no message.

    The error is not passed on: it holds all values of the line, some hundred megabytes at worst.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return None


def encode(message: JSONRPCMessage) -> bytes:
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        return text.encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):  # a text has a lone surrogate
        plain = message.model_dump(by_alias=True, exclude_unset=True)
        return json.dumps(plain, ensure_ascii=True).encode() + b"\n"


def _without_lone_surrogates(line: bytes) -> bytes:
    """
    Replace half of a surrogate pair by U+FFFD in the line of a search.

    A model may send half of an emoji, and any text may be searched for. Other lines stay
    unchanged, because a text to be stored must be exactly what the client means.
    """
    if ESCAPED_HALF.search(line) is None:
        return line
    try:
        value = json.loads(line)
        if value["params"]["name"] not in _SEARCHES:
            return line
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, KeyError, RecursionError):
        return line
    return replace_halves(text).encode()


_SEARCHES = ("search", "vsearch", "query", "search_posts")


def _refusal(line: bytes) -> RefusedLineError:
    try:
        value = json.loads(line)
    except RecursionError:
        return RefusedLineError(PARSE_ERROR, "Parse error: nested too deeply")
    except ValueError:
        return RefusedLineError(PARSE_ERROR, "Parse error: not valid JSON")
    if isinstance(value, list):
        return RefusedLineError(
            INVALID_REQUEST, "Invalid Request: no batches, send one message a line"
        )
    request_id = value.get("id") if isinstance(value, dict) else None
    is_valid_id = isinstance(request_id, (str, int)) and not isinstance(request_id, bool)
    return RefusedLineError(
        INVALID_REQUEST,
        "Invalid Request: not a JSON-RPC 2.0 message",
        request_id if is_valid_id else None,
    )


def read_lines(fd: int, *, limit: int = MAX_LINE_BYTES) -> Iterator[bytes | None]:
    """
    Yield the non-blank lines of a descriptor; None for a line of more than ``limit`` bytes.

    It does not read from a buffered file object, because a thread that waits inside one holds a
    lock that makes the interpreter abort when it exits.
    """
    begun = bytearray()
    is_too_long = False
    while data := os.read(fd, 1 << 16):
        *ends, rest = data.split(b"\n")
        for end in ends:
            if is_too_long or len(begun) + len(end) > limit:
                yield None
            elif (line := bytes(begun) + end).strip():
                yield line
            begun, is_too_long = bytearray(), False
        is_too_long = is_too_long or len(begun) + len(rest) > limit
        if is_too_long:
            begun = bytearray()
        else:
            begun += rest
    if is_too_long:
        yield None
    elif begun.strip():
        yield bytes(begun)


def _size(line: bytes | None) -> int:
    return 0 if line is None else len(line)


# --- the transport -------------------------------------------------------------------


async def serve(server: Server[Any], wire: Wire, stop: anyio.Event) -> None:
    """Serve one client until its input ends or ``stop`` is set."""
    connection = _Connection(wire)
    current_backlog.set(connection.backlog)  # for the calls, which run in tasks of this one
    async with _streams(connection, stop) as (from_client, to_client):
        await server.run(from_client, to_client, server.create_initialization_options())


@asynccontextmanager
async def _streams(
    connection: _Connection, stop: anyio.Event
) -> AsyncIterator[
    tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception],
        MemoryObjectSendStream[SessionMessage],
    ]
]:
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    # Daemon threads: a thread that waits for a silent client must not keep the process alive.
    reader = threading.Thread(target=connection.read, name="qmd-stdin", daemon=True)
    writer = threading.Thread(target=connection.write, name="qmd-stdout", daemon=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.receive, to_server)
        tasks.start_soon(connection.send, from_server)
        tasks.start_soon(connection.interrupt_on, stop)
        reader.start()
        writer.start()
        try:
            yield from_client, to_client
        finally:
            connection.outgoing.put(None)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(writer.join, _FLUSH_S)
            tasks.cancel_scope.cancel()


class _Connection:
    """Two threads for the blocking input and output, and their counterparts on the event loop."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.backlog = Backlog()
        self.outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._put_line, self._lines = anyio.create_memory_object_stream[bytes | None](math.inf)
        self._read_ahead = threading.Semaphore(_READ_AHEAD)
        self._unanswered: dict[str | int, list[int]] = {}  # id → bytes of each of its requests
        self._settled = anyio.Event()  # set when a request was answered, or at an interrupt
        self._interrupted = False

    # threads

    def read(self) -> None:
        """Read the client's lines until their end."""
        # An error means that the client has gone, like the end of its input.
        with suppress(OSError):
            for line in read_lines(self.wire.read_fd):
                self._read_ahead.acquire()
                self.backlog.read(_size(line))
                self._call_on_loop(self._add_line, line)
                if not self.backlog.wait_for_room(self._has_hung_up, patience_s=DRAIN_S):
                    break
        self._call_on_loop(self._put_line.close)

    def _has_hung_up(self) -> bool:
        return has_hung_up(self.wire.read_fd)

    def write(self) -> None:
        """Write the lines in ``outgoing`` until a None."""
        try:
            for data in iter(self.outgoing.get, None):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self.wire.write_fd, rest) :]
                self.backlog.sent(len(data))
        except OSError:
            self._call_on_loop(self.interrupt)  # the client has gone

    def _call_on_loop(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the process is ending
            self._loop.call_soon_threadsafe(function, *arguments)

    # event loop

    def _add_line(self, line: bytes | None) -> None:
        with suppress(anyio.ClosedResourceError):  # `interrupt` has closed it
            self._put_line.send_nowait(line)

    def interrupt(self) -> None:
        self._interrupted = True
        self._settled.set()
        self._put_line.close()

    async def receive(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass the client's messages on; after the last one wait for the answers, then close."""
        async with to_server, self._lines:
            async for line in self._lines:
                self._read_ahead.release()
                if self._interrupted:
                    break
                try:
                    message = self._accept(line)
                except RefusedLineError as refused:
                    self._put(refused.answer)
                    self.backlog.answered(_size(line))
                else:
                    await to_server.send(SessionMessage(message))
            with anyio.move_on_after(DRAIN_S):
                while self._unanswered and not self._interrupted:
                    self._settled = anyio.Event()
                    await self._settled.wait()

    def _accept(self, line: bytes | None) -> JSONRPCMessage:
        if line is None:
            raise RefusedLineError(PARSE_ERROR, f"Parse error: over {MAX_LINE_BYTES} bytes")
        message = decode(line)
        size = _size(line)
        if isinstance(message, JSONRPCRequest):
            self._unanswered.setdefault(message.id, []).append(size)
            return message
        self.backlog.answered(size)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))  # gets no answer
        return message

    async def send(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_server:
            async for session_message in from_server:
                message = session_message.message
                self._put(message)
                if isinstance(message, (JSONRPCResponse, JSONRPCError)):
                    self._settle(message.id)

    def _put(self, message: JSONRPCMessage) -> None:
        data = encode(message)
        self.backlog.replied(len(data))
        self.outgoing.put(data)

    def _settle(self, request_id: object) -> None:
        if isinstance(request_id, (str, int)) and request_id in self._unanswered:
            sizes = self._unanswered[request_id]
            self.backlog.answered(sizes.pop())
            if not sizes:
                del self._unanswered[request_id]
            self._settled.set()

    async def interrupt_on(self, stop: anyio.Event) -> None:
        await stop.wait()
        self.interrupt()


def has_hung_up(fd: int) -> bool:
    """Whether nobody can write into a pipe any more, even if it is not read to its end."""
    if not hasattr(select, "poll"):  # Windows
        return False
    look = select.poll()
    look.register(fd, 0)
    return any(
        event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in look.poll(0)
    )

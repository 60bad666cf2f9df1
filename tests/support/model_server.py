"""
A language model's server that says what the test wrote down: real HTTP, in a thread.

::

    with ModelServer(fails(429), says("Hello")) as server:
        ...  # server.url; server.requests tells what was asked

Each request takes the next step of the script; the last step answers all that follow.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

WAIT_S = 60


@dataclass(frozen=True)
class Request:
    """What came; ``headers`` in lower case."""

    path: str
    headers: dict[str, str]
    body: Any

    @property
    def messages(self) -> list[dict[str, str]]:
        messages: list[dict[str, str]] = self.body["messages"]
        return messages


class Call:
    """One request and the connection to answer it on."""

    def __init__(self, handler: _Handler, request: Request, closing: threading.Event) -> None:
        self._handler = handler
        self.request = request
        self.closing = closing

    @property
    def wants_stream(self) -> bool:
        return bool(isinstance(self.request.body, dict) and self.request.body.get("stream"))

    def answer(self, status: int, content_type: str, body: bytes, **headers: str) -> None:
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", content_type)
        self._handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()
        self._handler.wfile.write(body)

    def answer_json(self, value: object, status: int = 200, **headers: str) -> None:
        self.answer(status, "application/json", json.dumps(value).encode(), **headers)

    def begin_stream(self, content_type: str = "text/event-stream", status: int = 200) -> None:
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", content_type)
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()

    def write(self, data: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self._handler.wfile.flush()

    def event(self, value: object) -> None:
        self.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def delta(self, finish: str | None = None, **delta: object) -> None:
        self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def end_stream(self, *, done: bool = True) -> None:
        if done:
            self.write(b"data: [DONE]\n\n")
        self._handler.wfile.write(b"0\r\n\r\n")

    def reset(self) -> None:
        """Break the connection in the rudest way."""
        connection = self._handler.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._handler.rfile.close()
        self._handler.close_connection = True
        connection.close()


Step = Callable[[Call], None]


def says(
    text: str | None,
    *,
    reasoning: str | None = None,
    finish: str = "stop",
    piece: int = 7,
    done: bool = True,
) -> Step:
    """A chat completion; streamed in pieces of ``piece`` characters when it is asked to be."""

    def step(call: Call) -> None:
        if not call.wants_stream:
            message = {"role": "assistant", "content": text}
            if reasoning is not None:
                message["reasoning_content"] = reasoning
            call.answer_json({"choices": [{"index": 0, "message": message,
                                           "finish_reason": finish}]})  # fmt: skip
            return
        call.begin_stream()
        call.write(b": keep-alive\n\n")
        if reasoning is not None:
            call.delta(reasoning_content=reasoning, content=None)
        for part in pieces(text or "", piece):
            call.delta(content=part)
        call.delta(finish)
        call.end_stream(done=done)

    return step


def calls(*tools: tuple[str, object], text: str = "", finish: str = "tool_calls") -> Step:
    """
    Native calls of tools, each a name and arguments, which are an object or a raw string.

    Streamed as OpenAI does it: the name first, then the arguments in pieces.
    """
    written = [
        {"id": f"call_{number}", "type": "function", "function": {
            "name": name,
            "arguments": given if isinstance(given, str) else json.dumps(given)}}
        for number, (name, given) in enumerate(tools)
    ]  # fmt: skip

    def step(call: Call) -> None:
        if not call.wants_stream:
            message = {"role": "assistant", "content": text or None, "tool_calls": written}
            call.answer_json({"choices": [{"index": 0, "message": message,
                                           "finish_reason": finish}]})  # fmt: skip
            return
        call.begin_stream()
        for part in pieces(text, 7):
            call.delta(content=part)
        for index, each in enumerate(written):
            function: Any = each["function"]
            head = {**each, "index": index, "function": {**function, "arguments": ""}}
            call.delta(tool_calls=[head])
            for part in pieces(function["arguments"], 5):
                call.delta(tool_calls=[{"index": index, "function": {"arguments": part}}])
        call.delta(finish)
        call.end_stream()

    return step


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def thinks_of(answer: Callable[[list[dict[str, str]]], str]) -> Step:
    """Answers by what it was asked."""

    def step(call: Call) -> None:
        says(answer(call.request.messages))(call)

    return step


def fails(status: int, message: str = "no luck", **headers: str) -> Step:
    """An error as OpenAI words it."""
    return lambda call: call.answer_json({"error": {"message": message}}, status, **headers)


def sends(body: bytes, content_type: str = "application/json", status: int = 200) -> Step:
    """Bytes as they are."""
    return lambda call: call.answer(status, content_type, body)


def streams(*lines: bytes) -> Step:
    """An event stream of these bytes."""

    def step(call: Call) -> None:
        call.begin_stream()
        for line in lines:
            call.write(line)
        call.end_stream(done=False)

    return step


def hangs() -> Step:
    """Takes the request and says nothing."""

    def step(call: Call) -> None:
        call.closing.wait(WAIT_S)
        call.reset()

    return step


def hangs_after(text: str) -> Step:
    """Begins to answer and falls silent."""

    def step(call: Call) -> None:
        call.begin_stream()
        call.delta(content=text)
        call.closing.wait(WAIT_S)
        call.reset()

    return step


def resets(after: str | None = None) -> Step:
    """Breaks the connection: at once, or in the middle of a stream, after some text."""

    def step(call: Call) -> None:
        if after is not None:
            call.begin_stream()
            call.delta(content=after)
        call.reset()

    return step


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        names = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, names, json.loads(data) if data else None)
        step = self.server.next_step(request)
        try:
            step(Call(self, request, self.server.closing))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has heard enough

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, script: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self.arrival = threading.Condition()

    def next_step(self, request: Request) -> Step:
        with self.arrival:
            self.requests.append(request)
            self.arrival.notify_all()
            return self.script[min(len(self.requests), len(self.script)) - 1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a connection that the test or the client broke


class ModelServer:
    """See the module's docstring."""

    def __init__(self, *script: Step) -> None:
        self._server = _Server(script)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def requests(self) -> list[Request]:
        return self._server.requests

    def wait_for(self, count: int) -> None:
        """Until so many requests have come."""
        with self._server.arrival:
            assert self._server.arrival.wait_for(lambda: len(self.requests) >= count, WAIT_S)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT_S)

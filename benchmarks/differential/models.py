"""
A server of models that gives the same answer to the same question, for any number of clients.

Vectors are sums of pseudorandom vectors of the words, so texts with the same words are near each
other. A question to the language model says what it answers: behind ``SCRIPT:`` stand its answers,
one a round, separated by ``;;``. An answer ``TOOL {"key": …}`` becomes a call of that tool.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSION = 32
_WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
_CALL = re.compile(r"(\w+) (\{.*\})", re.DOTALL)


@contextmanager
def model_server() -> Iterator[str]:
    """The address of a running server, without a path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            rows = [{"index": i, "embedding": _vector(text)} for i, text in enumerate(texts)]
            self._send("application/json", json.dumps({"data": rows}).encode())
        elif self.path.endswith("/rerank"):
            scores = [
                {"index": i, "relevance_score": _overlap(body["query"], text)}
                for i, text in enumerate(body["documents"])
            ]
            self._send("application/json", json.dumps({"results": scores}).encode())
        elif self.path.endswith("/chat/completions"):
            self._complete(body)
        else:
            self.send_error(404)

    def _complete(self, body: dict[str, Any]) -> None:
        text = _answer(body["messages"])
        if text.startswith("STATUS "):
            error = json.dumps({"error": {"message": "the model refuses"}}).encode()
            return self._send("application/json", error, status=int(text.split()[1]))
        if not body.get("stream"):
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return self._send("application/json", json.dumps({"choices": [choice]}).encode())
        events: list[dict[str, Any]] = [
            {"choices": [{"delta": {"content": part}}]} for part in re.findall(r"\S+\s*|\s+", text)
        ]
        events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        lines = [f"data: {json.dumps(event)}\n\n" for event in events]
        return self._send("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode())

    def _send(self, content_type: str, body: bytes, *, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _vector(text: str) -> list[float]:
    total = [0.0] * DIMENSION
    for word in _words(text):
        digest = hashlib.blake2b(word.encode(), digest_size=DIMENSION).digest()
        total = [each + byte / 127.5 - 1.0 for each, byte in zip(total, digest, strict=True)]
    length = sum(each * each for each in total) ** 0.5
    return [each / length for each in total] if length else [1.0, *total[1:]]


def _overlap(query: str, text: str) -> float:
    words = set(_words(query))
    return len(words & set(_words(text))) / max(1, len(words))


def _answer(messages: list[dict[str, Any]]) -> str:
    system = str(messages[0].get("content"))
    if "lex: two to six words" in system:
        return "lex: sail harbour\nvec: where is the ship\nhyde: The ship lies at the pier."
    for position in range(len(messages) - 1, -1, -1):
        _, marker, script = str(messages[position].get("content")).partition("SCRIPT:")
        if marker and messages[position]["role"] == "user":
            rounds = [each.strip() for each in script.split(";;")]
            given = sum(message["role"] == "assistant" for message in messages[position:])
            return _block(rounds[min(given, len(rounds) - 1)])
    return "A short answer."


def _block(text: str) -> str:
    call = _CALL.fullmatch(text)
    if call is None:
        return text
    body = json.dumps({"tool": call[1], "params": json.loads(call[2])}, ensure_ascii=False)
    return f"I look.\n\n```json:tool\n{body}\n```\n"

"""What works on the notes during a long run: a person who edits, and clients of the servers."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.http_server import MCP_ACCEPT, Answer, initialize, mcp_message, request

WORDS = (
    *("harbour", "boat", "plan", "garden", "budget", "server", "backup", "recipe", "sourdough"),
    *("meeting", "travel", "index", "query", "vector", "snapshot", "river", "winter", "music"),
    *("数据库", "备份", "计划", "旅行", "花园", "会议", "检索", "向量", "笔记", "河流"),
)
#: A client pauses so long between two requests, at most.
PAUSE_S = 0.4


def text(rng: random.Random) -> str:
    """A note of a few paragraphs, with tags and a link."""
    words = [rng.choice(WORDS) + rng.choice(["", "", str(rng.randrange(500))]) for _ in range(300)]
    cut = sorted(rng.sample(range(300), 4))
    parts = [" ".join(words[a:b]) for a, b in zip([0, *cut], [*cut, 300], strict=True)]
    head = f"---\ntags: [{rng.choice(WORDS)}, soak]\n---\n# {' '.join(words[:3])}\n\n"
    return head + "\n\n## Part\n\n".join(parts) + f"\n\nSee [[note-{rng.randrange(400)}]].\n"


def fill(folder: Path, count: int, rng: random.Random) -> None:
    for number in range(count):
        path = folder / f"f{number % 7}" / f"note-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(rng), encoding="utf-8")


class Editor(threading.Thread):
    """Edits, creates, renames and deletes notes and folders, as many a second as asked for."""

    def __init__(self, folder: Path, seed: int, per_second: float, stop: threading.Event) -> None:
        super().__init__(name="editor", daemon=True)
        self._folder = folder
        self._rng = random.Random(seed)
        self._pause_s = 1 / per_second
        self._stop_event = stop
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        while not self._stop_event.wait(self._rng.expovariate(1 / self._pause_s)):
            kind = self._rng.choices(
                ("edit", "create", "rename", "delete", "move folder", "burst"),
                (8, 3, 2, 2, 0.2, 0.1),
            )[0]
            self._do(kind)
            self.done[kind] += 1

    def _do(self, kind: str) -> None:
        rng = self._rng
        # The inbox is the clients', whose every line is counted at the end.
        inbox = self._folder / "inbox"
        notes = sorted(path for path in self._folder.rglob("*.md") if path.parent != inbox)
        new = self._folder / f"f{rng.randrange(9)}" / f"note-{rng.randrange(10_000)}.md"
        new.parent.mkdir(parents=True, exist_ok=True)
        some = rng.choice(notes) if notes else new
        if kind == "edit":
            some.write_text(text(rng), encoding="utf-8")
        elif kind == "create" or len(notes) < 50:
            new.write_text(text(rng), encoding="utf-8")
        elif kind == "rename":
            some.rename(new)
        elif kind == "delete":
            some.unlink()
        elif kind == "move folder":
            some.parent.rename(self._folder / f"moved-{rng.randrange(10_000)}")
        else:
            fill(self._folder / "burst", 60, rng)


class Client(threading.Thread):
    """
    Searches, reads and appends to a note of its own, over REST or MCP.

    Args:
        url: Of the server to ask just now; another one after a kill.
        may_fail: Whether that server was just killed: then a broken connection is no error.
    """

    def __init__(
        self,
        number: int,
        seed: int,
        url: Callable[[], str],
        may_fail: Callable[[str], bool],
        stop: threading.Event,
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._number = number
        self._rng = random.Random(seed)
        self._url = url
        self._may_fail = may_fail
        self._stop_event = stop
        self._session: tuple[str, str] | None = None  # url, id
        self.note = f"notes/inbox/client-{number}.md"
        self.answered: Counter[str] = Counter()
        self.slowest_s: dict[str, float] = {}
        self.cut_off = 0
        self.errors: list[str] = []
        self.written: list[str] = []  # acknowledged
        self.unsure: list[str] = []  # cut off by a kill

    def run(self) -> None:
        steps: Sequence[tuple[str, Callable[[], None]]] = (
            ("search", self._search),
            ("query", self._query),
            ("get", self._get),
            ("status", lambda: self._good(self._ask("GET", "/status"))),
            ("MCP search", lambda: self._tool("search", {"query": self._words()})),
            ("MCP query", lambda: self._tool("query", {"query": self._words(), "limit": 5})),
            (
                "MCP multi_get",
                lambda: self._tool("multi_get", {"pattern": "notes/f1/*.md"}, may_fail=True),
            ),
            ("MCP read_note", self._read),
            ("MCP create_note", self._append),
        )
        while not self._stop_event.wait(self._rng.random() * PAUSE_S):
            name, step = self._rng.choice(steps)
            url, began = self._url(), time.monotonic()
            try:
                step()
            except (OSError, http.client.HTTPException) as error:
                self._session = None
                if self._may_fail(url):
                    self.cut_off += 1
                    self._stop_event.wait(0.2)
                else:
                    self.errors.append(f"{name}: {type(error).__name__}: {error}")
            except Exception as error:  # noqa: BLE001 - reported at the end
                self.errors.append(f"{name}: {type(error).__name__}: {error}")
            else:
                self.answered[name] += 1
                took_s = time.monotonic() - began
                self.slowest_s[name] = max(took_s, self.slowest_s.get(name, 0.0))

    # -- what it asks ------------------------------------------------------------------

    def _words(self) -> str:
        return " ".join(self._rng.sample(WORDS, self._rng.randrange(1, 4)))

    def _search(self) -> None:
        query = self._rng.choice([self._words(), f'"{self._rng.choice(WORDS)}"', "tag:soak -boat"])
        reply = self._good(self._ask("POST", "/search", {"query": query, "limit": 10}))
        _check_hits(reply["results"])

    def _query(self) -> None:
        reply = self._good(self._ask("POST", "/query", {"query": self._words(), "limit": 10}))
        _check_hits(reply["results"])
        degraded = reply.get("degraded")
        if degraded:
            raise AssertionError(f"degraded: {degraded}")

    def _get(self) -> None:
        found = self._good(self._ask("POST", "/search", {"query": self._words(), "limit": 3}))
        for hit in found["results"]:
            # It may have been deleted since.
            self._good(self._ask("POST", "/get", {"file": hit["file"]}), (404,))

    def _read(self) -> None:
        if self.written:
            said = self._tool("read_note", {"path": self.note})
            if self.written[-1] not in said:
                raise AssertionError("an acknowledged line is not in the note")

    def _append(self) -> None:
        line = f"client {self._number} line {self._rng.getrandbits(64):016x}"
        arguments = {"path": self.note, "content": f"{line}\n", "mode": "append"}
        try:
            self._tool("create_note", arguments)
        except (OSError, http.client.HTTPException):
            self.unsure.append(line)
            raise
        self.written.append(line)

    # -- how ---------------------------------------------------------------------------

    def _ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        return request(self._url(), method, path, body, headers or None)

    @staticmethod
    def _good(answer: Answer, allowed: Sequence[int] = ()) -> Any:
        if answer.status != 200 and answer.status not in allowed:
            raise AssertionError(f"{answer.status}: {answer.body[:300]!r}")
        return answer.json()

    def _tool(self, name: str, arguments: object, *, may_fail: bool = False) -> str:
        """The text of a tool's answer; ``may_fail``: what it asks for may be gone."""
        url = self._url()
        if self._session is None or self._session[0] != url:
            answer = request(url, "POST", "/mcp", initialize(), {"accept": MCP_ACCEPT})
            self._good_status(answer)
            self._session = (url, answer.headers["mcp-session-id"])
        headers = {"accept": MCP_ACCEPT, "mcp-session-id": self._session[1]}
        message = mcp_message("tools/call", {"name": name, "arguments": arguments})
        answer = request(url, "POST", "/mcp", message, headers)
        if answer.status == 404:  # of the process before
            self._session = None
            raise ConnectionError("the session is gone")
        self._good_status(answer)
        lines = answer.body.decode().splitlines()
        data = next(line[6:] for line in lines if line.startswith("data: {"))
        result = json.loads(data)["result"]
        said = "\n".join(block.get("text", "") for block in result["content"])
        if result.get("isError") and not may_fail:
            raise AssertionError(f"{name}: {said[:300]}")
        return said

    @staticmethod
    def _good_status(answer: Answer) -> None:
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {answer.body[:300]!r}")

    def leave(self) -> None:
        """End the session, as a client does that is closed."""
        if self._session is not None:
            url, session = self._session
            with contextlib.suppress(OSError, http.client.HTTPException):
                request(url, "DELETE", "/mcp", None, {"mcp-session-id": session})


def _check_hits(hits: Sequence[dict[str, Any]]) -> None:
    scores = [hit["score"] for hit in hits]
    if scores != sorted(scores, reverse=True) or not all(0 <= score <= 1 for score in scores):
        raise AssertionError(f"scores out of order: {scores}")

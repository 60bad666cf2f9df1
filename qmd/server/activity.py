"""
Remembers what each client did lately, for the page.

The record is in memory, has a fixed length and ends with the server. It holds which tool or
endpoint was called, when, how long it took and how many hits it gave. It never holds a query, the
name of a document or a text.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Face = Literal["mcp", "rest", "page"]
SearchKind = Literal["words", "meaning", "both"]

MAX_CALLS = 5_000
"""The most calls that are remembered: about 2 MB."""

SPAN_S = 300
"""The seconds that one point of the chart of query times stands for."""

SEARCH_KINDS: Mapping[str, SearchKind] = {"search": "words", "vsearch": "meaning", "query": "both"}
"""Tools and endpoints that search: by what they find documents."""

_MAX_NAME = 60  # characters of a name or a version that a client gives itself


@dataclass(frozen=True, slots=True)
class Caller:
    """
    A program that calls the server.

    Attributes:
        name: What it calls itself; "" if it does not say.
        session: The session that its changes belong to (see `qmd.server.activity`).
    """

    face: Face
    name: str
    version: str
    session: str


@dataclass(slots=True)
class RecordedCall:
    """
    One call of a client; who makes it fills in how it ended.

    Attributes:
        action: The tool, the endpoint, or the pattern of the page's address.
        at: When it began, in seconds since 1970.
        hits: How many hits a search gave; None if it was no search.
        kind: By what a search finds documents; None if it was no search.
        is_remembered: False for a call that says nothing about the client, such as a poll.
    """

    client: Caller
    action: str
    at: float
    duration_s: float = 0.0
    is_ok: bool = True
    hits: int | None = None
    kind: SearchKind | None = None
    is_remembered: bool = True


@dataclass(frozen=True, slots=True)
class CallerActivity:
    """What is remembered of one client; ``last`` has its latest calls, newest first."""

    client: Caller
    calls: int
    errors: int
    last: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """
    How long the searches of one kind took that began in one span of time.

    ``start`` is in seconds since 1970, a multiple of the span; ``p50_s`` and ``p95_s`` are exact.
    """

    start: int
    kind: SearchKind
    count: int
    p50_s: float
    p95_s: float


class Activity:
    """The latest calls of all clients. Thread-safe."""

    def __init__(self, max_calls: int = MAX_CALLS) -> None:
        self._calls: deque[RecordedCall] = deque(maxlen=max_calls)
        #: Face, action and whether it succeeded → how many calls, and how long they took.
        self._totals: dict[tuple[Face, str, bool], tuple[int, float]] = {}
        self._lock = threading.Lock()

    def add(self, call: RecordedCall) -> None:
        """Remember a call that has ended; the oldest is forgotten if there are too many."""
        with self._lock:
            self._calls.append(call)
            key = call.client.face, call.action, call.is_ok
            calls, seconds = self._totals.get(key, (0, 0.0))
            self._totals[key] = calls + 1, seconds + call.duration_s

    @contextmanager
    def recorded(self, client: Caller, action: str) -> Iterator[RecordedCall]:
        """Remember the call that the block makes. An exception counts as an error."""
        call = RecordedCall(client, action, time.time(), kind=SEARCH_KINDS.get(action))
        started = time.perf_counter()
        try:
            yield call
        except BaseException:
            call.is_ok = False
            raise
        finally:
            call.duration_s = time.perf_counter() - started
            if call.is_remembered:
                self.add(call)

    def calls(self) -> list[RecordedCall]:
        """The calls that are remembered, the one that ended last first."""
        with self._lock:
            return list(reversed(self._calls))

    def totals(self, face: Face) -> dict[tuple[str, bool], tuple[int, float]]:
        """
        All calls of a face since the start, also forgotten ones.

        Returns:
            Action and whether it succeeded → how many, and how many seconds they took.
        """
        with self._lock:
            return {
                (action, is_ok): total
                for (of_face, action, is_ok), total in self._totals.items()
                if of_face == face
            }

    def clients(self, *, limit: int, last: int) -> list[CallerActivity]:
        """
        The clients that called last, the latest first.

        Args:
            limit: The most clients.
            last: The most calls that are listed of each.
        """
        calls: dict[Caller, list[RecordedCall]] = {}
        for call in self.calls():
            calls.setdefault(call.client, []).append(call)
        return [
            CallerActivity(
                client, len(each), sum(not call.is_ok for call in each), tuple(each[:last])
            )
            for client, each in list(calls.items())[:limit]
        ]


def caller_named(face: Face, name: str, version: str, session: str) -> Caller:
    """A client by what it calls itself; long names are cut, and control characters left out."""
    return Caller(face, _printable(name), _printable(version), session)


def caller_of_agent(face: Face, user_agent: str, session: str) -> Caller:
    """A client by its ``User-Agent``: the first product in it, ``name/version``."""
    product = user_agent.split(" ", 1)[0]
    name, _, version = product.partition("/")
    return caller_named(face, name, version, session)


def _printable(text: str) -> str:
    return "".join(c for c in text[:_MAX_NAME] if c.isprintable()).strip()


def query_times(calls: Iterable[RecordedCall], *, since: float) -> list[QueryTimes]:
    """The times of the searches that succeeded since a moment, by span and kind, oldest first."""
    durations: dict[tuple[int, SearchKind], list[float]] = {}
    for call in calls:
        if call.kind is not None and call.is_ok and call.at >= since:
            start = int(call.at // SPAN_S) * SPAN_S
            durations.setdefault((start, call.kind), []).append(call.duration_s)
    return [
        QueryTimes(start, kind, len(each), percentile(each, 50), percentile(each, 95))
        for (start, kind), each in sorted(durations.items())
    ]


def percentile(values: Sequence[float], percent: int) -> float:
    """
    The smallest of the values that at least ``percent`` per cent of them do not exceed.

    This is the nearest-rank definition: https://en.wikipedia.org/wiki/Percentile. There must be a
    value.
    """
    ranked = sorted(values)
    return ranked[max(1, math.ceil(len(ranked) * percent / 100)) - 1]


# --- sessions -------------------------------------------------------------------------
# Which session a request belongs to: what it writes can be undone together (`qmd.system.session`).
# A client may name its session in the header ``X-QMD-Session``. An MCP session over HTTP has the id
# that the protocol gives it, of which only a hash is recorded, because whoever knows the id can use
# the session. All other requests of a server process share one session; over stdio, that is the
# session of the one client.


HEADER = "x-qmd-session"
_MCP_HEADER = "mcp-session-id"


def session_of(headers: Mapping[str, str] | None, *, otherwise: str) -> str:
    """
    The name of a request's session.

    Args:
        headers: Of the HTTP request, with names in lower case; None for a request over stdio.
        otherwise: The session of requests that name none.
    """
    if headers is None:
        return otherwise
    named = headers.get(HEADER, "").strip()
    if named:
        return named
    session_id = headers.get(_MCP_HEADER)
    if session_id:
        return f"mcp-{hashlib.sha256(session_id.encode()).hexdigest()[:8]}"
    return otherwise

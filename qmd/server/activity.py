"""
Records what clients did: lately, for the page; counted, for Prometheus at ``/metrics``.

The record of late calls is in memory, has a fixed length and ends with the server. It holds which
tool or endpoint was called, when, how long it took and how many hits it gave. It never holds a
query, the name of a document or a text.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd import __version__
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.server.workers import CallQueue, TooBusyError
from qmd.system import clock

Face = Literal["mcp", "rest", "page"]
SearchKind = Literal["words", "meaning", "both"]

#: The most calls that are remembered: about 2 MB.
MAX_CALLS = 5_000

#: The seconds that one point of the chart of query times stands for.
SPAN_S = 300

#: Tools and endpoints that search: by what they find documents.
SEARCH_KINDS: Mapping[str, SearchKind] = {"search": "words", "vsearch": "meaning", "query": "both"}

_MAX_NAME = 60  # characters of a name or a version that a client gives itself


@dataclass(frozen=True, slots=True)
class Caller:
    """
    A program that calls the server.

    Attributes:
        name: What it calls itself; "" if it does not say.
        session: The session that its changes belong to.
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


# --- figures for Prometheus, in its text format 0.0.4 -----------------------------------
# https://prometheus.io/docs/instrumenting/exposition_formats/
#
# A label has the pattern of a route or the name of a tool; never a path, a query or the name of a
# collection or document. The format is a page of code; the library for it would bring its own
# registry, threads and server.

METRICS_PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: The upper bounds of the buckets of durations.
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

#: The route of requests that were refused or lead nowhere.
NO_ROUTE = "(none)"

_KIND = re.compile(r":\w+\}")  # of a part of a route

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_READ_S = 5.0
_access_log = logging.getLogger("qmd.access")

Type = Literal["counter", "gauge", "histogram"]
Sample = tuple[str, Mapping[str, str], float]


@dataclass(slots=True)
class RequestCounts:
    """
    The requests since the start of the server. For its event loop only.

    Attributes:
        requests: Method, route and status → how many.
        durations: Route → how many took at most each of `BUCKETS_S`, and longer.
        seconds: Route → how long all took.
    """

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    durations: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, method: str, route: str, status: int, duration_s: float) -> None:
        """Count a request; ``duration_s`` lasted until its response began."""
        self.requests[method if method in _METHODS else "other", route, status] += 1
        buckets = self.durations.setdefault(route, [0] * (len(BUCKETS_S) + 1))
        buckets[sum(duration_s > bound for bound in BUCKETS_S)] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + duration_s


class CountRequests:
    """
    ASGI middleware that counts each request when its response begins.

    Args:
        is_logged: Whether it logs each request, without its query string and body.
    """

    def __init__(self, app: ASGIApp, counts: RequestCounts, *, is_logged: bool = False) -> None:
        self._app = app
        self._counts = counts
        self._is_logged = is_logged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = size = 0

        async def send_and_count(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                duration_s = time.perf_counter() - started
                self._counts.add(scope["method"], _route(scope), status, duration_s)
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_and_count)
        finally:
            if self._is_logged:
                fields = {
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "bytes": size,
                    "ms": round((time.perf_counter() - started) * 1000, 1),
                }
                _access_log.info("request", extra={"fields": fields})


def _route(scope: Scope) -> str:
    """The pattern of the route that answers a request."""
    endpoint = scope.get("endpoint")
    routes = (each.path for each in scope["app"].routes if each.endpoint is endpoint)
    return _KIND.sub("}", next(routes, NO_ROUTE))


class Metrics:
    """Answers requests to `METRICS_PATH`."""

    def __init__(self, kb: KnowledgeBase, counts: RequestCounts, activity: Activity) -> None:
        self._kb = kb
        self._counts = counts
        self._activity = activity
        self._started = time.time()
        self._workers = CallQueue(1, max_waiting=8)

    async def answer(self, request: Request) -> Response:
        """The text with all figures; those of a database that cannot be read are missing."""
        try:
            index = await self._workers.run(lambda: list(_of_index(self._kb)), timeout_s=_READ_S)
        except (QmdError, TimeoutError, TooBusyError):
            index = [_gauge("qmd_database_readable", "Whether the database can be read", 0)]
        families = [
            _family("qmd_build_info", "gauge", "The version of the server",
                    [("", {"version": __version__}, 1)]),
            *index,
            *_of_requests(self._counts),
            *_of_tools(self._activity),
            *self._of_process(),
        ]  # fmt: skip
        return Response("".join(families), media_type=MEDIA_TYPE)

    def _of_process(self) -> Iterator[str]:
        """What Prometheus's own libraries tell of a process, under their names."""
        yield _gauge("process_start_time_seconds", "When the server started", self._started)
        times = os.times()
        yield _family(
            "process_cpu_seconds_total",
            "counter",
            "CPU time of the server",
            [("", {}, times.user + times.system)],
        )
        if sys.platform == "linux":
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            size = pages * os.sysconf("SC_PAGE_SIZE")
            yield _gauge("process_resident_memory_bytes", "Memory of the server", size)


def _of_index(kb: KnowledgeBase) -> Iterator[str]:
    overview, fresh = kb.overview(), kb.freshness(embeddings_pending=0)
    states = ("native", "polling", "off")
    skipped = sum(each.count for each in overview.skips)
    synced = None if fresh.last_sync is None else clock.parse(fresh.last_sync).timestamp()
    gauges: Mapping[str, tuple[str, float | None]] = {
        "qmd_database_readable": ("Whether the database can be read", 1),
        "qmd_database_bytes": ("Size of the database", overview.database_bytes),
        "qmd_collections": ("Collections", len(overview.collections)),
        "qmd_documents": ("Documents in the index", overview.documents),
        "qmd_chunks": ("Chunks in the index", overview.chunks),
        "qmd_chunks_waiting": ("Chunks that have no vector yet", overview.chunks_waiting),
        "qmd_files_skipped": ("Files that could be no documents", skipped),
        "qmd_files_pending": ("Changed files not indexed yet", fresh.files_pending),
        "qmd_indexing": ("Whether files are being indexed", fresh.indexing),
        "qmd_last_sync_timestamp_seconds": (
            "When the index was last known to equal the disk",
            synced,
        ),
        "qmd_replica_lag_seconds": (
            "Seconds that the replica which answers is behind",
            fresh.replica_lag_s,
        ),
        "qmd_keeper": ("Whether this server keeps the index up to date", fresh.leader),
        "qmd_problems": ("Problems that keep the index from it", len(fresh.notices)),
        "qmd_model_loaded": ("Whether the embedding model is loaded", kb.model_loaded()),
    }
    for name, (help_text, value) in gauges.items():
        if value is not None:
            yield _gauge(name, help_text, value)
    yield _family(
        "qmd_watch",
        "gauge",
        "How the disk is watched: 1 for the state that holds",
        [("", {"state": state}, state == fresh.watch) for state in states],
    )


def _of_requests(counts: RequestCounts) -> Iterator[str]:
    yield _family(
        "qmd_http_requests_total",
        "counter",
        "Requests by method, route and status",
        [
            ("", {"method": method, "route": route, "status": str(status)}, number)
            for (method, route, status), number in sorted(counts.requests.items())
        ],
    )
    samples: list[Sample] = []
    for route, buckets in sorted(counts.durations.items()):
        for bound, number in zip((*BUCKETS_S, "+Inf"), accumulate(buckets), strict=True):
            samples.append(("_bucket", {"route": route, "le": str(bound)}, number))
        samples.append(("_sum", {"route": route}, counts.seconds[route]))
        samples.append(("_count", {"route": route}, sum(buckets)))
    yield _family(
        "qmd_http_request_duration_seconds",
        "histogram",
        "Time until a response began, by route",
        samples,
    )


def _of_tools(activity: Activity) -> Iterator[str]:
    labels_and_totals = [
        ({"tool": tool, "outcome": "ok" if is_ok else "error"}, calls, seconds)
        for (tool, is_ok), (calls, seconds) in sorted(activity.totals("mcp").items())
    ]
    yield _family(
        "qmd_mcp_tool_calls_total",
        "counter",
        "Calls of tools over MCP",
        [("", labels, calls) for labels, calls, _ in labels_and_totals],
    )
    yield _family(
        "qmd_mcp_tool_seconds_total",
        "counter",
        "Time that these calls took",
        [("", labels, seconds) for labels, _, seconds in labels_and_totals],
    )


def _gauge(name: str, help_text: str, value: float) -> str:
    return _family(name, "gauge", help_text, [("", {}, value)])


def _family(name: str, kind: Type, help_text: str, samples: Iterable[Sample]) -> str:
    """A metric with its samples; each has a suffix of the name, labels and a value."""
    lines = [f"# HELP {name} {help_text}.", f"# TYPE {name} {kind}"]
    for suffix, labels, value in samples:
        pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{suffix}{{{pairs}}} {float(value):.17g}" if pairs
                     else f"{name}{suffix} {float(value):.17g}")  # fmt: skip
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

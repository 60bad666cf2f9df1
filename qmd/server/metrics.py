"""
Figures for Prometheus at ``/metrics``, in its text format 0.0.4.

https://prometheus.io/docs/instrumenting/exposition_formats/

A label has the pattern of a route or the name of a tool; never a path, a query or the name of a
collection or document. The format is a page of code; the library for it would bring its own
registry, threads and server.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
from qmd.server.activity import Activity
from qmd.server.workers import CallQueue, TooBusyError
from qmd.system import clock

METRICS_PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The upper bounds of the buckets of durations."""

NO_ROUTE = "(none)"
"""The route of requests that were refused or lead nowhere."""

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

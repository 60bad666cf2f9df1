"""The record of what each client did lately: bounded, in order, exact, and without contents."""

from __future__ import annotations

from pathlib import Path
from statistics import median_low
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client as McpClient
from support.mcp_client import with_client
from support.site import http_client, serve

from qmd.server.activity import (
    MAX_CALLS,
    SPAN_S,
    Activity,
    RecordedCall,
    caller_named,
    caller_of_agent,
    percentile,
    query_times,
)

CALLS = st.builds(
    RecordedCall,
    client=st.builds(
        caller_named,
        face=st.sampled_from(["mcp", "rest", "page"]),
        name=st.sampled_from(["a", "b"]),
        version=st.just("1"),
        session=st.sampled_from(["s", "t"]),
    ),
    action=st.sampled_from(["search", "get"]),
    at=st.integers(0, 2000).map(float),
    duration_s=st.floats(0, 9),
    is_ok=st.booleans(),
    kind=st.sampled_from([None, "words", "meaning", "both"]),
)


@given(st.lists(CALLS, max_size=60), st.integers(1, 20))
def test_the_record_holds_the_last_calls_newest_first(calls: list[RecordedCall], size: int) -> None:
    activity = Activity(size)
    for call in calls:
        activity.add(call)
    assert activity.calls() == list(reversed(calls))[:size]


@given(st.lists(CALLS, max_size=60), st.integers(1, 5), st.integers(1, 5))
def test_clients_are_grouped_the_latest_first(
    calls: list[RecordedCall], limit: int, last: int
) -> None:
    activity = Activity()
    for call in calls:
        activity.add(call)
    groups = activity.clients(limit=limit, last=last)
    newest_first = list(reversed(calls))
    order = list(dict.fromkeys(call.client for call in newest_first))
    assert [group.client for group in groups] == order[:limit]
    for group in groups:
        each = [call for call in newest_first if call.client == group.client]
        assert group.calls == len(each)
        assert group.errors == len([call for call in each if not call.is_ok])
        assert list(group.last) == each[:last]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=80), st.integers(1, 100))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(
    values: list[float], percent: int
) -> None:
    candidates = [
        value
        for value in values
        if sum(other <= value for other in values) * 100 >= percent * len(values)
    ]
    assert percentile(values, percent) == min(candidates)
    assert percentile(values, 50) == median_low(values)


@given(st.lists(CALLS, max_size=80), st.integers(0, 2000))
def test_query_times_are_those_of_the_searches_that_succeeded(
    calls: list[RecordedCall], since: int
) -> None:
    points = query_times(calls, since=since)
    counted = [call for call in calls if call.kind and call.is_ok and call.at >= since]
    assert sum(point.count for point in points) == len(counted)
    assert points == sorted(points, key=lambda point: (point.start, point.kind))
    for point in points:
        durations = [
            call.duration_s
            for call in counted
            if call.kind == point.kind and point.start <= call.at < point.start + SPAN_S
        ]
        assert point.count == len(durations)
        assert (point.p50_s, point.p95_s) == (percentile(durations, 50), percentile(durations, 95))


def test_a_long_or_strange_name_of_a_client_is_cut() -> None:
    client = caller_named("mcp", "\x1b[31m" + "x" * 5000, "\n1", "s")
    assert len(client.name) <= 60
    assert client.name.isprintable()
    assert client.version == "1"


@pytest.mark.parametrize(
    ("agent", "name", "version"),
    [
        ("curl/8.5.0", "curl", "8.5.0"),
        ("python-httpx/0.28 (x)", "python-httpx", "0.28"),
        ("", "", ""),
    ],
)
def test_a_program_is_named_by_the_first_product_of_its_user_agent(
    agent: str, name: str, version: str
) -> None:
    client = caller_of_agent("rest", agent, "s")
    assert (client.name, client.version) == (name, version)


def test_the_memory_of_the_record_is_bounded() -> None:
    activity = Activity()
    client = caller_named("rest", "curl", "8", "s")
    for number in range(MAX_CALLS + 10):
        activity.add(RecordedCall(client, "get", float(number), 0.1, is_ok=True))
    assert len(activity.calls()) == MAX_CALLS


def test_each_face_records_its_calls_but_never_what_was_asked_for(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        activity = served.app.face.activity
        with http_client(served.url, headers={"user-agent": "curl/8.5.0"}) as client:
            client.post("/search", json={"query": "boat secret"})
            client.post("/collections/add", json={"path": "relative-secret"})
            client.get("/health")
            client.get("/overview", headers={"accept": "text/html"})
            client.get("/part/overview/live")
            client.get("/part/hits?q=boat+secret&mode=meaning")
            client.get("/health")  # answered when the call before it is recorded

        async def use(client: McpClient) -> Any:
            await client.call_tool("search", {"query": "boat secret"})
            await client.call_tool("get", {"path": "secret.md"})

        with_client(served.app.face.server, use)
        calls = list(reversed(activity.calls()))
    assert [(call.client.face, call.action, call.is_ok) for call in calls] == [
        ("rest", "search", True),
        ("rest", "add_collection", False),
        ("page", "/overview", True),
        ("page", "/part/hits", True),
        ("mcp", "search", True),
        ("mcp", "get", False),
    ]
    rest, part, mcp = calls[0], calls[3], calls[4]
    assert (rest.client.name, rest.client.version, rest.kind) == ("curl", "8.5.0", "words")
    assert rest.hits == mcp.hits
    assert (part.kind, part.hits is not None) == ("meaning", True)
    assert rest.hits
    assert mcp.client.name
    assert all(call.duration_s >= 0 for call in calls)
    assert "secret" not in repr(calls)
    assert "boat" not in repr(calls)

"""Jobs of a server: one after the other, with progress as events, and an end at any time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedder import HashEmbedder
from support.live import until

from qmd import KnowledgeBase, Settings
from qmd.ingest.events import Event, EventBus
from qmd.server.jobs import MAX_JOBS, QUIET_S, Jobs, Running


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nA boat.\n")
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as kb:
        kb.add_collection(folder)
        yield kb


def test_jobs_index_and_embed_in_the_background(kb: KnowledgeBase) -> None:
    events: list[Event] = []
    kb.events.subscribe(events.append)
    jobs = Jobs(kb)
    jobs.start("indexing")
    jobs.start("embedding")
    until(lambda: all(job.ended for job in jobs.latest()))
    embedding, indexing = jobs.latest()
    assert (indexing.kind, indexing.state, indexing.problems) == ("indexing", "done", ())
    assert indexing.changes is not None
    assert indexing.changes.added == 5
    assert (embedding.state, embedding.chunks) == ("done", kb.status().chunks)
    kinds = [event.kind for event in events]
    assert {"added", "indexing", "embedding", "synced"} <= set(kinds)
    jobs.stop()


def test_an_error_of_a_job_is_kept_with_its_hint(kb: KnowledgeBase) -> None:
    jobs = Jobs(kb)
    jobs.start("indexing", ("none",))
    until(lambda: jobs.latest()[0].ended)
    [job] = jobs.latest()
    assert job.state == "failed"
    assert "none" in job.problems[0]
    jobs.stop()


def test_the_same_job_waits_once_and_few_are_remembered(kb: KnowledgeBase) -> None:
    release = threading.Event()
    kb.events.subscribe(lambda event: event.kind == "added" and release.wait(60))
    jobs = Jobs(kb)
    first = jobs.start("indexing")
    until(lambda: jobs.latest()[0].state == "running")
    assert jobs.start("embedding") == jobs.start("embedding")
    assert len(jobs.latest()) == 2
    release.set()
    until(lambda: all(job.ended for job in jobs.latest()))
    for _ in range(MAX_JOBS):
        jobs.start("embedding")
        until(lambda: all(job.ended for job in jobs.latest()))
    assert len(jobs.latest()) == MAX_JOBS
    assert first.number not in [job.number for job in jobs.latest()]
    jobs.stop()


def test_a_stopped_server_ends_its_job_and_starts_no_other(kb: KnowledgeBase) -> None:
    reached, release = threading.Event(), threading.Event()

    def wait(event: Event) -> None:
        if event.kind == "indexing":
            reached.set()
            release.wait(60)

    kb.events.subscribe(wait)
    jobs = Jobs(kb)
    jobs.start("indexing")
    jobs.start("embedding")
    assert reached.wait(60)
    stopping = threading.Thread(target=jobs.stop)
    stopping.start()
    until(lambda: jobs._cancellation.is_cancelled)
    release.set()
    stopping.join()
    assert [job.state for job in jobs.latest()] == ["waiting", "failed"]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=10), st.integers(0, 40))
def test_the_time_left_follows_from_the_pace_so_far(steps: list[int], more: int) -> None:
    bus, time_s = EventBus(), [0.0]
    running = Running(bus, now=lambda: time_s[0])
    total = sum(steps) + more
    bus.publish(Event("embedding", "", done=0, total=total))
    done = 0
    for step in steps:
        time_s[0] += 2.0
        done += step
        bus.publish(Event("embedding", "", done=done, total=total))
    pace = running.pace("embedding")
    if not more:
        assert pace is None  # all is done
        return
    assert pace is not None
    assert (pace.done, pace.total) == (done, total)
    assert pace.left_s == pytest.approx(more * len(steps) * 2.0 / done)
    bus.publish(Event("synced", ""))
    assert running.pace("embedding") == pace
    time_s[0] += QUIET_S + 1
    assert running.pace("embedding") is None
    bus.publish(Event("embedding", "", done=done + 1, total=total + 5))
    pace = running.pace("embedding")
    assert pace is not None
    assert pace.left_s is None  # it has just begun anew


def test_indexing_has_ended_when_the_index_equals_the_disk() -> None:
    bus = EventBus()
    running = Running(bus)
    bus.publish(Event("indexing", "", done=1, total=9))
    assert running.pace("indexing") is not None
    bus.publish(Event("synced", ""))
    assert running.pace("indexing") is None

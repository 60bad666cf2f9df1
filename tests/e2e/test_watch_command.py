"""``qmd watch`` as a process, and several processes on one database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.ingest.events import Event
from qmd.ingest.keep.freshness import keeper_pid
from tests.support.cli import Scratch, filled
from tests.support.live import WAIT_S, WATCH, Told, put, until


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path)


class Watcher:
    """A running ``qmd watch --json``."""

    def __init__(self, scratch: Scratch, *options: str) -> None:
        self.process = scratch.start(
            *("watch", "--json", "--no-embed", *options), stdout=subprocess.PIPE
        )

    def wait_for(self, kind: str, file: str | None = None) -> dict[str, str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, str] = json.loads(line)
            if event["kind"] == kind and file in (None, event.get("file")):
                return event
        raise AssertionError(f"the watch ended before any event was {kind!r}")

    def end(self, number: int = signal.SIGKILL) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=WAIT_S)
        return self.process.returncode


@pytest.fixture
def watcher(scratch: Scratch) -> Iterator[Watcher]:
    watcher = Watcher(scratch)
    yield watcher
    watcher.end()


def test_each_change_is_a_line_of_json(scratch: Scratch, watcher: Watcher) -> None:
    watcher.wait_for("synced")
    put(scratch.root / "notes/neu ü.md", "# New\n")
    event = watcher.wait_for("added")
    assert event["file"] == "notes/neu ü.md"
    assert event["uri"] == "qmd://notes/neu%20%C3%BC.md"
    (scratch.root / "notes/neu ü.md").rename(scratch.root / "notes/old.md")
    assert watcher.wait_for("moved")["previous"] == "neu ü.md"
    scratch.write("notes/old.md", "# Old\n")
    assert watcher.wait_for("updated")["file"] == "notes/old.md"
    (scratch.root / "notes/old.md").unlink()
    assert watcher.wait_for("removed")["file"] == "notes/old.md"


def test_lines_for_people_name_each_document_once(scratch: Scratch) -> None:
    process = scratch.start(
        "watch", "--no-embed", "--polling", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert b"In step with the disk: 5 documents in 2 collections" in process.stderr.readline()
    scratch.write("docs/a\x1b[31mb.md", "# New\n")
    assert process.stdout.readline() == b"+ docs/a\\x1b[31mb.md\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert b"Traceback" not in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_cleanly(
    scratch: Scratch, watcher: Watcher, number: int, code: int
) -> None:
    watcher.wait_for("synced")
    assert watcher.end(number) == code
    assert not Path(f"{scratch.database}-wal").exists(), "the last one tidies up"
    with KnowledgeBase.open(scratch.database, read_only=True) as kb:
        assert kb.freshness().watch == "off"


def test_a_reader_that_leaves_ends_it(scratch: Scratch, watcher: Watcher) -> None:
    watcher.wait_for("synced")
    assert watcher.process.stdout is not None
    watcher.process.stdout.close()
    scratch.write("notes/x.md", "# X\n")
    assert watcher.process.wait(timeout=WAIT_S) == 0


def test_one_process_keeps_and_another_takes_over_when_it_is_killed(
    scratch: Scratch, watcher: Watcher
) -> None:
    watcher.wait_for("synced")
    with KnowledgeBase.open(scratch.database) as kb:
        told = Told(kb)
        keeper = kb.keep(embed=False)
        edits = count()

        def hears() -> bool:
            """Told is what changes after its first look."""
            put(scratch.root / "docs/api.md", f"# API {next(edits)}\n")
            return bool(told.of("updated"))

        def of(kind: str) -> list[Event]:
            return [event for event in told.of(kind) if event.collection == "notes"]

        until(hears)
        assert keeper_pid(kb._store) == watcher.process.pid
        fresh = kb.freshness()
        assert (fresh.leader, fresh.watch) == (False, WATCH)
        put(scratch.root / "notes/one.md", "# One\n\nquinoa\n")
        assert watcher.wait_for("added", "notes/one.md")
        until(lambda: kb.search("quinoa").hits)
        told.wait_for(lambda: [event.file for event in of("added")] == ["notes/one.md"])
        (scratch.root / "notes/one.md").rename(scratch.root / "notes/uno.md")
        told.wait_for(lambda: [event.previous for event in of("moved")] == ["one.md"])
        put(scratch.root / "notes/uno.md", "# One, edited\n\nquinoa\n")
        told.wait_for(lambda: [event.path for event in of("updated")] == ["uno.md"])
        (scratch.root / "notes/uno.md").unlink()
        told.wait_for(lambda: [event.path for event in of("removed")] == ["uno.md"])
        assert not keeper.is_leader

        watcher.end(signal.SIGKILL)
        scratch.write("notes/two.md", "# Two\n\namaranth\n")
        told.wait_for(lambda: kb.search("amaranth").hits)
        assert keeper.is_leader
        assert keeper_pid(kb._store) == os.getpid()
        scratch.write("notes/three.md", "# Three\n\nteff\n")
        told.wait_for(lambda: kb.search("teff").hits)
    with KnowledgeBase.open(scratch.database, read_only=True) as kb:
        assert keeper_pid(kb._store) is None


def test_of_many_processes_exactly_one_keeps(scratch: Scratch) -> None:
    watchers = [Watcher(scratch) for _ in range(4)]
    try:
        left = dict(enumerate(watchers))
        while left:
            with KnowledgeBase.open(scratch.database, read_only=True) as kb:
                pids = {watcher.process.pid: number for number, watcher in left.items()}
                until(lambda pids=pids: keeper_pid(kb._store) in pids)
                pid = keeper_pid(kb._store)
            number = pids[pid]
            left[number].wait_for("synced")
            scratch.write(f"notes/{number}.md", f"# Number {number}\n")
            left[number].wait_for("added", f"notes/{number}.md")
            left.pop(number).end(signal.SIGKILL)
    finally:
        for watcher in watchers:
            watcher.end()


def test_a_kept_database_is_not_restored_over(scratch: Scratch, watcher: Watcher) -> None:
    watcher.wait_for("synced")
    scratch.ok("backup", "copy.sqlite")
    refused = scratch.call("restore-db", "copy.sqlite")
    assert refused.code == 1
    assert "qmd watch" in refused.err
    watcher.end(signal.SIGTERM)
    scratch.ok("restore-db", "copy.sqlite")

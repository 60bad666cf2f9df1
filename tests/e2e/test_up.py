"""``qmd up`` as a newcomer runs it: it serves, and meanwhile everything works elsewhere."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from support.cli import NOTES, Scratch
from support.http_server import WAIT_S, request

from qmd.system import running

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such signals")


class Up:
    def __init__(self, scratch: Scratch, *args: str) -> None:
        self._err = (scratch.root / "stderr").open("wb")
        self.process = scratch.start(
            "up", "--port", "0", *args,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._err,
        )  # fmt: skip
        self.said = ""

    def says(self, pattern: str) -> re.Match[str]:
        """Read on until a line of stdout holds the pattern."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line.decode()
            found = re.search(pattern, line.decode())
            if found is not None:
                return found
        raise AssertionError(f"no {pattern!r} in {self.said!r}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._err.close()


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path, {"QMD_MODEL": "no-such-model"})
    for name, text in NOTES.items():
        scratch.write(name, text)
    return scratch


@pytest.fixture
def up(scratch: Scratch) -> Iterator[Up]:
    started = Up(scratch, "notes")
    yield started
    started.close()


def test_it_serves_and_keeps_the_index_until_ctrl_c(scratch: Scratch, up: Up) -> None:
    url = up.says(r"Serving at (http://\S+) ")[1]
    up.says("Indexed 1 collection: 3 documents")
    up.says("Search it now:  qmd search ")
    up.says("Everything is searchable by words")
    found = request(url, "POST", "/search", {"query": "parser"}).json()
    assert found["results"][0]["file"] == "notes/plan.md"
    assert scratch.ok("search", "parser", "--json").json()[0]["file"] == "notes/plan.md"
    served = scratch.ok("search", "parser", "--mode", "server", "--full", "--json").json()
    assert served[0]["file"] == "notes/plan.md"
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(WAIT_S) == 130
    assert running.find(scratch.database) is None


def test_the_first_walk_is_seen_while_it_goes_on(scratch: Scratch) -> None:
    many = 400
    for folder in ("first", "second"):
        for number in range(many):
            scratch.write(f"{folder}/{number}.md", f"# Note {number}\n\nThe text of {number}.\n")
    started = Up(scratch, "first", "second")
    try:
        url = started.says(r"Serving at (http://\S+) ")[1]
        seen = []
        while not seen or seen[-1]["total_documents"] < 2 * many:
            seen.append(request(url, "GET", "/status").json())
        started.says("Indexed 2 collections: 800 documents")
    finally:
        started.close()
    # A reply counts the documents first; so those of the next one are later than this freshness.
    early = [
        reply["freshness"] for reply, later in pairwise(seen) if later["total_documents"] < 2 * many
    ]
    assert any(fresh["indexing"] and fresh["files_pending"] for fresh in early)
    assert {fresh["last_sync"] for fresh in early} == {None}
    walking = [fresh["indexing"] for fresh in early]
    assert walking == sorted(walking)  # once begun, it goes on to the end


def test_on_a_terminal_the_progress_of_the_vectors_is_drawn_while_it_serves(
    tmp_path: Path, model_cache: Path
) -> None:
    import os
    import pty

    environment = {"TERM": "xterm", "COLUMNS": "80", "QMD_CACHE_DIR": str(model_cache)}
    scratch = Scratch(tmp_path, environment)
    for number in range(12):
        scratch.write(f"notes/{number}.md", f"# Note {number}\n\nThe text of note {number}.\n")
    ours, theirs = pty.openpty()
    process = scratch.start(
        "up", "--port", "0", "notes",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line.decode())
            if "by meaning, too" in lines[-1]:
                process.send_signal(signal.SIGINT)
        drawn = b""
        with suppress(OSError):  # Linux's way to say that the other side has closed
            while data := os.read(ours, 65536):
                drawn += data
    finally:
        process.kill()
        process.wait(WAIT_S)
        process.stdout.close()
        os.close(ours)
    assert any("making vectors of 12 documents in the background" in line for line in lines)
    assert "Embedding" in drawn.decode()
    status = scratch.ok("status", "--json").json()
    assert status["chunks_embedded"] == status["chunks"] == 12
    assert status["embedding_left_s"] == 0


def test_an_empty_folder_is_said_to_hold_nothing(scratch: Scratch) -> None:
    (scratch.root / "empty").mkdir()
    result = scratch.call("up", "--once", "empty")
    assert result.code == 0
    assert "Search it now" not in result.out
    assert "Nothing to search yet. 'qmd why FILE' names" in result.err


def test_a_second_one_adds_its_folder_and_leaves_it_to_the_first(scratch: Scratch, up: Up) -> None:
    url = up.says(r"Serving at (http://\S+) ")[1]
    up.says("Everything is searchable by words")
    second = scratch.run("up", "docs")
    assert second.code == 0
    assert "Added collection 'docs'" in second.out
    assert f"A server runs for this database already: {url}" in second.out
    assert second.err == ""
    with_port = scratch.call("up", "docs", "--port", "18999")
    assert "keeps its own options: --port changes nothing" in with_port.err
    names = request(url, "GET", "/collections").json()["collections"]
    assert {each["name"] for each in names} == {"notes", "docs"}


def test_what_the_server_refuses_is_an_error_here_too(scratch: Scratch, up: Up) -> None:
    up.says("Everything is searchable by words")
    unknown = scratch.call("search", "x", "-c", "nots", "--mode", "server")
    assert unknown.code == 1
    assert "qmd: error: Collection not found: nots" in unknown.err
    assert "Did you mean: notes" in unknown.err


def test_a_server_takes_the_options_that_the_command_takes(scratch: Scratch, up: Up) -> None:
    up.says("Everything is searchable by words")
    scratch.ok("up", "docs")
    for command, *options in (
        ("search", "--all"),
        ("search", "-c", "notes", "-c", "docs", "--no-spelling", "--no-rerank", "--intent", "x"),
        ("query", "--all", "--no-rerank", "--no-expand", "--candidates", "5", "-c", "docs"),
        ("query", "-c", "notes", "-c", "docs", "--intent", "plans", "--without", "words"),
    ):
        served, here = (
            scratch.ok(command, "the", *options, "--json", "--mode", mode).json()
            for mode in ("server", "local")
        )
        assert [hit["file"] for hit in served] == [hit["file"] for hit in here]
        assert served

"""On a disk without room everything can still be read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd.store.sqlite.library import dbapi
from tests.support.cli import Scratch
from tests.support.warm import warm

if sys.platform == "win32":
    pytest.skip("has no limit for the size of a file", allow_module_level=True)

LIMITED = """
import resource
from qmd.__main__ import run
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
run()
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    made = Scratch(tmp_path)
    made.write("notes/plan.md", "# Plan\n\nA boat.\n")
    made.ok("--db", "kb.sqlite", "collection", "add", "notes", "--no-index")
    made.ok("--db", "kb.sqlite", "index", "--no-embed")
    yield made


def run(scratch: Scratch, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that can write to no file, as on a full disk."""
    command = [sys.executable, "-c", LIMITED, "--db", "kb.sqlite", *arguments]
    return warm.run(command, cwd=scratch.root, env=scratch.environment, text=True)


@pytest.mark.parametrize("unfinished", [False, True], ids=["closed", "with a log"])
def test_what_is_indexed_is_found_and_read(scratch: Scratch, unfinished: bool) -> None:
    database = scratch.root / "kb.sqlite"
    if unfinished:  # as a process that was killed leaves the files
        connection = dbapi.connect(database)
        connection.execute("UPDATE collections SET name = 'later'")
        connection.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{database}{suffix}", f"{database}{suffix}.copy")
        connection.close()
        for suffix in ("", "-wal"):
            os.replace(f"{database}{suffix}.copy", f"{database}{suffix}")  # noqa: PTH105
    name = "later" if unfinished else "notes"
    for arguments, printed in (
        (("search", "boat"), f"{name}/plan.md:3"),
        (("query", "boat"), f"{name}/plan.md:3"),
        (("get", "plan"), "A boat."),
        (("ls",), f"{name}/plan.md"),
        (("status",), "Documents  1"),
        (("history",), ""),
    ):
        done = run(scratch, *arguments)
        assert (done.returncode, done.stderr.count("error")) == (0, 0), (arguments, done.stderr)
        assert printed in done.stdout


def test_a_server_that_no_command_could_find_is_not_started(scratch: Scratch) -> None:
    done = run(scratch, "server", "--daemon", "--port", "0")
    assert done.returncode == 1
    assert "The address of the server cannot be kept beside the database" in done.stderr
    assert "did not answer" not in done.stderr
    assert not list(scratch.root.glob(".kb.sqlite.server*"))


def test_what_cannot_be_written_is_refused_with_the_reason(scratch: Scratch) -> None:
    done = run(scratch, "index", "--no-embed")
    assert done.returncode == 1
    assert "disk" in done.stderr
    assert (scratch.root / "notes/plan.md").read_text("utf-8") == "# Plan\n\nA boat.\n"

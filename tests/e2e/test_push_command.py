"""``qmd server push`` to a real server, as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qmd.transfer.push import BATCH_FILES
from tests.support.http_server import qmd_server
from tests.support.live import put, until
from tests.support.warm import warm


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qmd", "push", *map(str, arguments)]
    return warm.run(command, env=os.environ | environment, text=True)


def test_a_folder_is_pushed_followed_and_searched(tmp_path: Path) -> None:
    notes, team = tmp_path / "notes", tmp_path / "team.sqlite"
    put(notes / "first.md", "# First\n\nquartz\n")
    put(notes / "draft.txt", "no document\n")
    (notes / "large.md").write_bytes(b"# Large\n\n" + os.urandom(1_500_000).hex().encode())
    token = {"QMD_PUSH_TOKEN": "s3cret"}
    with qmd_server(team, "--push-folder", str(tmp_path / "pushed"), "--token", "s3cret") as server:

        def hits(word: str) -> list[str]:
            answer = server.ask("POST", "/search", {"query": word}, Authorization="Bearer s3cret")
            return [hit["file"] for hit in answer.json()["results"]]

        refused = run(server.url, notes)
        assert (refused.returncode, "QMD_PUSH_TOKEN" in refused.stderr) == (1, True)
        first = run(server.url, notes, "--name", "alice", "--owner", "Alice", **token)
        assert first.returncode == 0, first.stderr
        assert first.stdout.startswith("Pushed 'alice': 2 stored · 0 deleted · 0 unchanged · ")
        assert hits("quartz") == ["alice/first.md"]
        again = run(server.url, notes, "--name", "alice", "--owner", "Alice", **token)
        assert again.stdout == "Pushed 'alice': 0 stored · 0 deleted · 2 unchanged · 0 B sent\n"
        listed = server.ask("GET", "/collections", Authorization="Bearer s3cret").json()
        assert listed["collections"][0]["owner"] == "Alice"

        command = [sys.executable, "-m", "qmd", "push", server.url, str(notes), "--name", "alice"]
        command += ["--owner", "Alice"]
        with warm.popen(
            [*command, "--watch"], env=os.environ | token, stdout=subprocess.DEVNULL
        ) as watching:
            put(notes / "second.md", "# Second\n\nfeldspar 石英\n")
            until(lambda: hits("石英") == ["alice/second.md"], "the new note is there")
            (notes / "first.md").unlink()
            until(lambda: hits("quartz") == [], "the old note is gone")
            watching.send_signal(signal.SIGINT)
            assert watching.wait(30) == 130


def test_a_folder_of_more_files_than_one_step_sends_is_pushed_moved_and_emptied(
    tmp_path: Path,
) -> None:
    notes, many = tmp_path / "notes", BATCH_FILES + 10
    for number in range(many):
        put(notes / "old" / f"{number}.md", f"# Note {number}\n")
    with qmd_server(tmp_path / "team.sqlite", "--push-folder", str(tmp_path / "pushed")) as server:
        first = run(server.url, notes)
        assert first.stdout.startswith(f"Pushed 'notes': {many} stored · 0 deleted · 0"), first
        (notes / "old").rename(notes / "new")
        moved = run(server.url, notes)
        assert moved.stdout == (
            f"Pushed 'notes': {many} stored · {many} deleted · 0 unchanged · 0 B sent\n"
        )
        for number in range(1, many):
            (notes / "new" / f"{number}.md").unlink()
        emptied = run(server.url, notes)
        assert f"0 stored · {many - 1} deleted · 1 unchanged" in emptied.stdout
        assert server.ask("GET", "/status").json()["total_documents"] == 1


def test_a_folder_that_the_server_refuses_stops_no_other(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        put(tmp_path / name / f"{name}.md", f"# {name}\n")
    with qmd_server(tmp_path / "team.sqlite", "--push-folder", str(tmp_path / "pushed")) as server:
        run(server.url, tmp_path / "c", "--name", "b", "--owner", "somebody else")
        both = run(server.url, *(tmp_path / name for name in ("a", "b", "c")))
        assert [line[:10] for line in both.stdout.splitlines()] == ["Pushed 'a'", "Pushed 'c'"]
        assert both.returncode == 1
        assert "error: b: The server says: The collection 'b' is the folder of" in both.stderr
        assert "hint: The other folders were pushed." in both.stderr
        none = run(server.url, tmp_path / "b", tmp_path / "b")
        assert (none.returncode, none.stdout) == (1, "")
        assert "hint: No folder was pushed." in none.stderr


@pytest.mark.skipif(os.name == "nt", reason="making links needs a right there")
def test_a_link_in_the_folder_is_no_failure_and_others_are_told_once(tmp_path: Path) -> None:
    notes, told = tmp_path / "notes", tmp_path / "told"
    put(notes / "a.md", "# A\n")
    (notes / "same.md").symlink_to(notes / "a.md")
    with qmd_server(tmp_path / "team.sqlite", "--push-folder", str(tmp_path / "pushed")) as server:

        def total() -> int:
            return int(server.ask("GET", "/status").json()["total_documents"])

        inside = run(server.url, notes)
        assert (inside.returncode, inside.stderr) == (0, "")
        put(tmp_path / "elsewhere.md", "# Elsewhere\n")
        (notes / "out.md").symlink_to(tmp_path / "elsewhere.md")
        outside = run(server.url, notes)
        assert (outside.returncode, outside.stderr.count("not pushed: out.md")) == (1, 1)
        command = [sys.executable, "-m", "qmd", "push", server.url, str(notes), "--watch"]
        with (
            told.open("wb") as stderr,
            warm.popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as watching,
        ):
            for number in (2, 3):
                put(notes / f"{number}.md", f"# {number}\n")
                until(lambda most=number: total() == most, "the new note is there")
            watching.send_signal(signal.SIGINT)
            watching.wait(30)
    assert told.read_text(encoding="utf-8").count("not pushed: out.md") == 1


def test_a_server_that_takes_nothing_or_is_none_says_so(tmp_path: Path) -> None:
    put(tmp_path / "notes" / "a.md", "# A\n")
    with qmd_server(tmp_path / "team.sqlite") as server:
        result = run(server.url, tmp_path / "notes")
        assert (result.returncode, "--push-folder DIR" in result.stderr) == (1, True)
    gone = run(server.url, tmp_path / "notes")
    assert (gone.returncode, "does not answer" in gone.stderr) == (1, True)
    plain = run("http://192.0.2.1:9", tmp_path / "notes", QMD_PUSH_TOKEN="x")
    assert (plain.returncode, "unencrypted" in plain.stderr) == (1, True)

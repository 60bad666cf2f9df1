"""The exiftool process: what gets to it, and what becomes of one that fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd.errors import ExifToolError
from qmd.files.photos.exiftool import ExifTool, escape
from tests.support import child
from tests.support.child import Stranger
from tests.support.photos import listed, make, tags

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs with #!, signals")


@pytest.fixture
def tool() -> Iterator[ExifTool]:
    opened = ExifTool()
    yield opened
    opened.close()


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    return make(tmp_path / "photo.jpg")


def write(tool: ExifTool, photo: Path, new: Path, *values: str) -> None:
    with tool.turn() as turn:
        turn.put("old.jpg", photo.read_bytes())
        turn.write("old.jpg", [f"-XMP-dc:Subject={escape(value)}" for value in values], "new.jpg")
        assert (turn.directory / "new.jpg").stat().st_mode & 0o077 == 0
        new.write_bytes(turn.get("new.jpg"))


def subjects(tool: ExifTool, photo: Path) -> bytes:
    with tool.turn() as turn:
        turn.put("photo.jpg", photo.read_bytes())
        return turn.read("photo.jpg", ["-XMP-dc:Subject", "-XMP-dc:Title"])


def program(path: Path, text: str) -> Path:
    """A program in the place of exiftool."""
    path.write_text(text)
    path.chmod(0o755)
    return path


HOSTILE = [
    *("-o", "-overwrite_original", "-execute", "-stay_open\nFalse", "-@", "@", "=", "=x", "+=x"),
    *("<y", "<=/etc/passwd", "#[CSTR]x", "# comment", "a\n-o\n/tmp/evil.jpg", "\n-execute\n"),
    *("$(touch x)", "`id`", "%d%f", "${filename}", "'; rm -rf ~; '", '"', "\\", "\\n", "&lt;"),
    *("&#10;", " leading", "trailing ", "\ttab", "True", "007", "1.10", "{ready1}", "海滩😀"),
]


def test_no_value_becomes_an_argument(tool: ExifTool, photo: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.jpg"
    before = sorted(tmp_path.iterdir())
    write(tool, photo, new, *HOSTILE)
    assert listed(tags(new)["XMP-dc:Subject"]) == HOSTILE
    assert sorted(tmp_path.iterdir()) == sorted([*before, new])


def test_what_a_photo_says_cannot_end_the_answer(tool: ExifTool, tmp_path: Path) -> None:
    photo = make(tmp_path / "liar.jpg")
    told = "\n".join(f"{{ready{number}}}\n{{end{number}}}" for number in ("", 0, 1, 10**17))
    write(tool, photo, tmp_path / "new.jpg", told)
    for _ in range(3):
        assert subjects(tool, tmp_path / "new.jpg").count(b"{ready1}") == 1


def test_the_users_own_configuration_is_not_run(
    photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / ".ExifTool_config"
    config.write_text(f"open(my $f, '>', '{tmp_path}/ran'); 1;")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EXIFTOOL_HOME", str(tmp_path))
    tool = ExifTool()
    try:
        subjects(tool, photo)
    finally:
        tool.close()
    assert not (tmp_path / "ran").exists()


def test_an_error_leaves_the_process_as_it_is(tool: ExifTool, photo: Path, tmp_path: Path) -> None:
    subjects(tool, photo)
    process = tool._process
    damaged = tmp_path / "damaged.jpg"
    damaged.write_bytes(b"no image")
    with pytest.raises(ExifToolError) as caught:
        write(tool, damaged, tmp_path / "new.jpg", "x")
    assert caught.value.cause == "refused"
    assert not (tmp_path / "new.jpg").exists()
    write(tool, photo, tmp_path / "new.jpg", "x")
    assert tool._process is process


def test_a_process_that_dies_is_started_again(tool: ExifTool, photo: Path) -> None:
    subjects(tool, photo)
    assert tool._process is not None
    os.kill(tool._process._child.pid, signal.SIGKILL)
    tool._process._child.wait()
    assert b"rdf:Description" in subjects(tool, photo)


SLEEPER = "#!/bin/sh\nexec sleep 1000\n"


def test_one_that_does_not_answer_is_killed(photo: Path, tmp_path: Path) -> None:
    tool = ExifTool(program(tmp_path / "slow", SLEEPER), timeout_s=0.3)
    with pytest.raises(ExifToolError) as caught:
        subjects(tool, photo)
    assert caught.value.cause == "timeout"
    assert tool._process is None


def test_one_that_ends_at_once_is_told(photo: Path, tmp_path: Path) -> None:
    for number, text in enumerate(("#!/bin/sh\nexit 3\n", "#!/bin/sh\nhead -c 200000 /dev/zero\n")):
        tool = ExifTool(program(tmp_path / f"gone{number}", text))
        with pytest.raises(ExifToolError) as caught:
            subjects(tool, photo)
        assert caught.value.cause == "ended"


def test_one_that_says_nonsense_is_no_answer(photo: Path, tmp_path: Path) -> None:
    nonsense = (
        "#!/bin/sh\nwhile read -r line; do case $line in -execute*) n=${line#-execute};"
        ' echo "<rdf:Description>{ready$n}"; echo "{end$n}" >&2;; esac; done\n'
    )
    tool = ExifTool(program(tmp_path / "liar", nonsense))
    try:
        assert subjects(tool, photo) == b"<rdf:Description>"
        with pytest.raises(ExifToolError) as caught:
            write(tool, photo, tmp_path / "new.jpg", "x")
        assert caught.value.cause == "refused"
    finally:
        tool.close()


def test_a_missing_one_says_how_to_get_it(photo: Path, tmp_path: Path) -> None:
    not_a_program = tmp_path / "text"
    not_a_program.write_text("x")
    for command in (tmp_path / "nowhere", not_a_program):
        with pytest.raises(ExifToolError) as caught:
            subjects(ExifTool(command), photo)
        assert caught.value.cause == "missing"
        assert caught.value.hint is not None
        for word in ("apt-get", "brew", "winget", "QMD_EXIFTOOL"):
            assert word in caught.value.hint


def test_without_a_temporary_directory_it_says_so(
    photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(ExifToolError) as caught:
        subjects(ExifTool(), photo)
    assert "temporary directory" in caught.value.reason


def test_requests_of_many_threads_get_their_own_answers(tool: ExifTool, tmp_path: Path) -> None:
    photos = [make(tmp_path / f"{number}.jpg") for number in range(6)]
    failed: list[object] = []

    def work(number: int) -> None:
        new = tmp_path / f"new{number}.jpg"
        write(tool, photos[number], new, f"tag{number}")
        if f">tag{number}<".encode() not in subjects(tool, new):
            failed.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []


def test_closing_ends_every_process_and_leaves_no_directory(
    photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    before = children()
    tool = ExifTool()
    subjects(tool, photo)
    assert len(children() - before) == 2
    assert len(list(own.iterdir())) == 1
    tool.close()
    tool.close()
    assert children() == before
    assert list(own.iterdir()) == []


def test_a_temporary_directory_that_is_tidied_away_is_made_again(
    photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tool = ExifTool()
    subjects(tool, photo)
    for directory in tmp_path.glob("qmd-exiftool-*"):
        directory.rmdir()
    assert b"rdf:Description" in subjects(tool, photo)
    tool.close()


KILLED = """
import os, sys, tempfile
from pathlib import Path
from qmd.files.photos.exiftool import ExifTool
tempfile.tempdir = sys.argv[2]
tool = ExifTool()
with tool.turn() as turn:
    turn.put("photo.jpg", Path(sys.argv[1]).read_bytes())
    turn.read("photo.jpg", ["-XMP-dc:Subject"])
print(tool._process._child.pid, tool._process._guard.pid, flush=True)
sys.stdin.readline()
"""


def test_it_does_not_outlive_a_program_that_is_killed(photo: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    process = child.start(KILLED, photo, own)
    assert process.stdout is not None and process.stdin is not None
    running = [Stranger(int(number)) for number in process.stdout.readline().split()]
    process.kill()
    process.wait()
    process.stdout.close()
    process.stdin.close()
    for each in running:
        each.wait()
    assert list(own.iterdir()) == []


SCRIPT = """#!/bin/sh
exec 3<&0
(cat <&3; true) | sh -c 'echo $$ > "$0"; exec exiftool "$@"' '%s' "$@" &
wait
"""


def test_a_script_in_its_place_leaves_nothing_behind(photo: Path, tmp_path: Path) -> None:
    noted = tmp_path / "number"
    tool = ExifTool(program(tmp_path / "script", SCRIPT % noted))
    subjects(tool, photo)
    running = Stranger(int(noted.read_text()))
    tool.close()
    running.wait()


def children() -> set[str]:
    done = subprocess.run(
        ["ps", "-o", "pid=,ppid=,comm=", "-A"], capture_output=True, text=True, check=True
    )
    rows = (line.split(None, 2) for line in done.stdout.splitlines())
    return {pid for pid, parent, name in rows if parent == str(os.getpid()) and name != "ps"}

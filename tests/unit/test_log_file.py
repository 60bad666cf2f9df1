"""The log of several servers in one file: nothing is mixed, lost or unbounded."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qmd.server.logs import log_to_file
from qmd.system.log_file import KEPT, LogReader, LogWriter, files_of_log

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state/server.log"


def test_lines_of_several_processes_are_whole_and_in_order(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from qmd.system.log_file import LogWriter\n"
        "writer = LogWriter(Path(sys.argv[1]), max_bytes=20_000)\n"
        "for number in range(300): writer.write(f'{sys.argv[2]} {number} ' + 'x' * 50)\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    files = files_of_log(path)
    assert 1 < len(files) <= KEPT + 1
    lines = [line.split() for each in files for line in LogReader(each).lines()]
    assert len(lines) == 900
    for name in ("a", "b", "c"):
        assert [int(line[1]) for line in lines if line[0] == name] == list(range(300))
    # Each process may look at the size before another one has written its line.
    line_bytes = len("a 299 ") + 50 + 1
    assert all(each.stat().st_size <= 20_000 + 3 * line_bytes for each in files)


def test_the_oldest_file_is_deleted(path: Path) -> None:
    writer = LogWriter(path, max_bytes=100)
    for number in range(100):
        writer.write(f"{number:03} " + "x" * 45)
    assert len(files_of_log(path)) == KEPT + 1
    lines = [line for each in files_of_log(path) for line in LogReader(each).lines()]
    assert [int(line[:3]) for line in lines] == list(range(100 - len(lines), 100))


def test_a_reader_follows_the_log_after_a_rotation(path: Path) -> None:
    reader = LogReader(path)
    assert list(reader.lines()) == []
    writer = LogWriter(path, max_bytes=50)
    read: list[str] = []
    for number in range(20):
        writer.write(f"line {number}")
        read += reader.lines()
    assert read == [f"line {number}" for number in range(20)]
    assert len(files_of_log(path)) > 1


def test_half_a_line_is_read_when_it_is_whole(path: Path) -> None:
    writer = LogWriter(path)
    reader = LogReader(path)
    with path.open("ab") as file:
        file.write(b"half ")
    assert list(reader.lines()) == []
    writer.write("of a line")
    assert list(reader.lines()) == ["half of a line"]


def test_a_deleted_log_is_made_anew(path: Path) -> None:
    writer = LogWriter(path)
    writer.write("one")
    path.unlink()
    writer.write("two")
    assert path.read_text() == "two\n"


@posix
def test_only_the_user_reads_the_log(path: Path) -> None:
    LogWriter(path).write("one")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@posix
def test_no_link_is_followed_and_no_pipe_waited_for(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError):
            LogWriter(tmp_path / name)
    assert not (tmp_path / "target").exists()


def test_a_log_that_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = logging.getLogger().handlers[:]
    (tmp_path / "file").write_text("")
    log_to_file(tmp_path / "file/server.log", None)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "cannot be written" in caplog.text
    assert logging.getLogger().handlers == before


def test_a_record_is_a_line_of_json(path: Path) -> None:
    root, qmd = logging.getLogger(), logging.getLogger("qmd")
    before = root.handlers[:], qmd.level
    log_to_file(path, Path("/db"))
    try:
        logging.getLogger("qmd.x").info("first\nline", extra={"fields": {"port": 1}})
        logging.getLogger("qmd.x").debug("not this")
    finally:
        root.handlers[:], qmd.level = before
    (line,) = path.read_text().splitlines()
    entry = json.loads(line)
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "level": "info",
        "logger": "qmd.x",
        "message": "first\nline",
        "pid": os.getpid(),
        "database": str(Path("/db")),
        "port": 1,
    }

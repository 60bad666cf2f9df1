"""``<database>.server.json``: which server runs for a database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qmd import running
from qmd.running import RunningServer


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "notes.sqlite"


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


OWN = RunningServer("http://127.0.0.1:1", os.getpid(), "s3cret", "1.0.0")


def test_what_was_announced_is_found_until_it_is_withdrawn(database: Path) -> None:
    assert running.find(database) is None
    assert running.announce(database, OWN)
    assert running.find(database) == OWN
    running.withdraw(database, OWN.pid)
    assert running.find(database) is None
    assert list(database.parent.iterdir()) == []


def test_the_token_is_for_the_user_alone(database: Path) -> None:
    running.file_for(database).write_text("{}")
    running.file_for(database).chmod(0o644)
    running.announce(database, OWN)
    if os.name == "posix":
        assert running.file_for(database).stat().st_mode & 0o777 == 0o600
    assert "s3cret" not in repr(OWN)


def test_a_dead_servers_entry_is_not_believed_and_is_replaced(database: Path) -> None:
    dead = RunningServer("http://127.0.0.1:1", dead_pid(), None, "1.0.0")
    assert running.announce(database, dead)
    assert running.find(database) is None
    assert running.announce(database, OWN)
    assert running.find(database) == OWN


def test_a_living_servers_entry_stays(database: Path) -> None:
    parent = RunningServer("http://127.0.0.1:2", os.getppid(), None, "1.0.0")
    assert running.announce(database, parent)
    assert not running.announce(database, OWN)
    running.withdraw(database, OWN.pid)
    assert running.find(database) == parent


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "nonsense", '{"url": "http://x", "pid": "1", "token": null, "version": "1"}',
     '{"url": "file:///etc", "pid": 1, "token": null, "version": "1"}', "\xff"],
)  # fmt: skip
def test_a_damaged_entry_is_none(database: Path, text: str) -> None:
    running.file_for(database).write_bytes(text.encode("latin-1"))
    assert running.find(database) is None
    assert running.announce(database, OWN)


def test_no_process_has_a_number_below_one() -> None:
    assert not running.is_alive(0)
    assert not running.is_alive(-1)
    assert running.is_alive(os.getpid())


def test_nobody_listening_is_an_os_error() -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, and nobody listens
        nobody = RunningServer(f"http://127.0.0.1:{free.getsockname()[1]}", 1, None, "1")
        with pytest.raises(OSError):
            running.call(nobody, "/embed", {}, timeout_s=5)

"""``<database>.server.json``: which server runs for a database."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.live_app import LiveApp

from qmd import KnowledgeBase
from qmd.system import running
from qmd.system.running import RunningServer


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "notes.sqlite"


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


posix = pytest.mark.skipif(sys.platform == "win32", reason="no users or modes as POSIX has them")

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


@posix
@pytest.mark.parametrize("kind", ["link", "file"])
def test_the_token_is_not_written_where_another_user_waits_for_it(
    database: Path, kind: str
) -> None:
    target = database.with_name("theirs")
    target.touch(0o666)
    draft = database.with_name(f"{running.file_for(database).name}.{OWN.pid}")
    if kind == "link":
        draft.symlink_to(target)
    else:
        draft.hardlink_to(target)
    assert running.announce(database, OWN)
    assert target.read_bytes() == b""
    assert running.find(database) == OWN
    assert running.file_for(database).stat().st_mode & 0o777 == 0o600


@posix
def test_an_entry_that_another_user_may_have_written_is_not_believed(database: Path) -> None:
    assert running.announce(database, OWN)
    file = running.file_for(database)
    file.chmod(0o622)
    assert running.find(database) is None
    file.chmod(0o600)
    assert running.find(database) == OWN
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can give a file away")
    database.touch()
    os.chown(file, 65534, 65534)
    assert running.find(database) is None
    os.chown(database, 65534, 65534)  # whose database it is may say where its server runs
    assert running.find(database) == OWN


@posix
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_an_entry_that_is_no_file_is_none(database: Path, kind: str) -> None:
    file = running.file_for(database)
    if kind == "link":
        running.announce(database, OWN)
        file.rename(database.with_name("elsewhere"))
        file.symlink_to("elsewhere")
    else:
        os.mkfifo(file)  # nobody writes, and reading it would wait for ever
    assert running.find(database) is None


@pytest.mark.parametrize(("token", "guard"), [("s3cret", "token"), (None, "everyone")])
def test_what_the_first_version_wrote_is_read(
    database: Path, token: str | None, guard: running.Audience
) -> None:
    old = {"url": OWN.url, "pid": OWN.pid, "token": token, "version": "1.0.0"}
    running.file_for(database).write_text(json.dumps(old))
    running.file_for(database).chmod(0o600)
    assert running.find(database) == RunningServer(OWN.url, OWN.pid, token, "1.0.0", guard)


def test_a_dead_servers_entry_is_not_believed_and_is_replaced(database: Path) -> None:
    dead = RunningServer("http://127.0.0.1:1", dead_pid(), None, "1.0.0")
    assert running.announce(database, dead)
    assert running.find(database) is None
    assert running.announce(database, OWN)
    assert running.find(database) == OWN


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells so")
def test_another_process_that_has_the_number_of_a_dead_server_is_not_it(database: Path) -> None:
    assert running.announce(database, OWN)
    file = running.file_for(database)
    entry = json.loads(file.read_text())
    file.write_text(json.dumps({**entry, "started": entry["started"] - 1}))
    assert running.find(database) is None
    assert running.announce(database, OWN)
    assert running.find(database) == OWN


def test_the_entry_of_a_server_that_answers_stays(database: Path) -> None:
    with KnowledgeBase.open(database, create=True) as kb, LiveApp(kb) as app:
        other = RunningServer(app.url, os.getppid(), None, "1.0.0")
        assert running.answers(other)
        assert running.announce(database, other)
        assert not running.announce(database, OWN)
        running.withdraw(database, OWN.pid)
        assert running.find(database) == other
    assert not running.answers(other)
    assert running.announce(database, OWN)  # a process of that number lives, and is no server


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\n\r\n[]", b"SSH-2.0-x\r\n", b"\0" * 99])
def test_another_programs_answer_is_none_of_ours(reply: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        other = threading.Thread(target=answer)
        other.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert not running.answers(RunningServer(url, os.getpid(), None, "1.0.0"))
        other.join()


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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, and nobody listens
        nobody = RunningServer(f"http://127.0.0.1:{free.getsockname()[1]}", 1, None, "1")
        with pytest.raises(OSError):
            running.call(nobody, "/embed", {}, timeout_s=60)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells so")
def test_only_a_process_of_the_user_who_wrote_the_entry_is_ended(database: Path) -> None:
    assert running.announce(database, OWN)
    written = running.find(database)
    assert written is not None and running.wrote_its_entry(database, written)
    file = running.file_for(database)
    entry = json.loads(file.read_text())
    file.write_text(json.dumps({**entry, "started": None}))  # as one who cannot know it
    copied = running.find(database)
    assert copied is not None and not running.wrote_its_entry(database, copied)
    if os.geteuid() == 0:
        file.write_text(json.dumps(entry))
        os.chown(file, 65534, 65534)
        assert not running.wrote_its_entry(database, written)

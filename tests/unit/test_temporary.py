"""Names beside a target, and what killed processes left under them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from qmd.health.restore import rescue
from qmd.kb import KnowledgeBase
from qmd.system.temporary import temporary_beside

LONG_AGO = time.time() - 7200


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leave(path: Path, *, at: float = LONG_AGO) -> Path:
    path.write_text("left", encoding="utf-8")
    os.utime(path, (at, at))
    return path


def test_what_ended_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "copy.sqlite"
    ended, running = ended_process(), os.getppid()
    gone = [
        leave(tmp_path / f".copy.sqlite.{ended}-1.tmp"),
        leave(tmp_path / f".copy.sqlite.{ended}-1.tmp-wal"),
        leave(tmp_path / f".copy.sqlite.{ended}.tmp"),  # of version 1.6
        # In a container each process may have the same id.
        leave(tmp_path / f".copy.sqlite.{os.getpid()}-999.tmp", at=time.time()),
    ]
    folder = tmp_path / f".copy.sqlite.{ended}-2.tmp"
    folder.mkdir()
    leave(folder / "contents")
    os.utime(folder, (LONG_AGO, LONG_AGO))
    mine = temporary_beside(target)
    mine.write_text("mine", encoding="utf-8")
    kept = [
        mine,
        leave(tmp_path / f".copy.sqlite.{running}-1.tmp"),
        leave(tmp_path / f".copy.sqlite.{ended}-3.tmp", at=time.time()),  # of another machine?
        leave(tmp_path / f".other.sqlite.{ended}-1.tmp"),
        leave(tmp_path / ".copy.sqlite.tmp"),
        leave(tmp_path / f"copy.sqlite.{ended}-1.tmp"),
    ]
    assert temporary_beside(target) != mine
    assert [path for path in (*gone, folder) if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    inside = tmp_path / "folder" / "note.md"
    inside.parent.mkdir()
    inside.write_text("A note.", encoding="utf-8")
    link = tmp_path / f".copy.{os.getpid()}-999.tmp"
    link.symlink_to(inside.parent)
    temporary_beside(tmp_path / "copy")
    assert not link.is_symlink()
    assert inside.exists()


def test_copies_remove_what_a_killed_copy_left(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# A\n", encoding="utf-8")
    database = tmp_path / "index.sqlite"
    ended = ended_process()
    left = [
        leave(tmp_path / f".{name}.{ended}-1.tmp")
        for name in ("copy.sqlite", "export", "export.zip", "index.sqlite", "index.sqlite.rescue")
    ]
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.index()
        kb.backup(tmp_path / "copy.sqlite")
        kb.export(tmp_path / "export", settings=None, force=False)
        kb.export(tmp_path / "export", settings=None, force=True)
        kb.export(tmp_path / "export.zip", settings=None, force=False)
    assert rescue(database).collections == 1
    assert [path for path in left if path.exists()] == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

"""Reading gives the bytes of the very file the scan found, or says why not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qmd.errors import FileTooLargeError, FileVanishedError, UnreadableFileError
from qmd.ingest.file_job import FileJob, NoDocument
from qmd.ingest.parse_file import parse_file
from qmd.ingest.read_file import read_file
from qmd.ingest.rules import Rules
from qmd.ingest.scan import ScannedFile, scan
from qmd.values import FileState


def find(root: Path) -> ScannedFile:
    (found,) = scan(root, Rules(root, "**/*.md"))
    assert isinstance(found, ScannedFile)
    return found


@pytest.mark.parametrize("data", [b"", b"x", b"\0\xff\r\n" * 1000, b"x" * 3_000_000])
def test_a_file_reads_back_byte_for_byte_with_its_state(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.md").write_bytes(data)
    found = find(tmp_path)
    assert read_file(tmp_path, "a.md") == (data, found.state)
    assert read_file(tmp_path, "a.md") == (data, found.state)


def test_the_limit_counts_the_bytes_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"x" * 10)
    assert read_file(tmp_path, "a.md", max_bytes=10)[1].bytes == 10
    with pytest.raises(FileTooLargeError):
        read_file(tmp_path, "a.md", max_bytes=9)


def test_a_file_replaced_since_the_scan_is_read_as_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"newer")
    (tmp_path / "new").rename(tmp_path / "a.md")
    data, state = read_file(tmp_path, "a.md")
    assert data == b"newer"
    assert state.inode == (tmp_path / "a.md").stat().st_ino


def test_a_file_that_is_gone_is_told_from_one_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"x")
    (tmp_path / "a.md").unlink()
    with pytest.raises(FileVanishedError):
        read_file(tmp_path, "a.md")
    with pytest.raises(FileVanishedError):
        read_file(tmp_path, "no/such.md")


def test_a_file_swapped_for_a_link_out_of_the_root_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "x").mkdir(parents=True)
    (root / "x/a.md").write_bytes(b"mine")
    (tmp_path / "a.md").write_bytes(b"secret")
    (root / "x/a.md").unlink()
    (root / "x/a.md").symlink_to(tmp_path / "a.md")
    with pytest.raises(UnreadableFileError, match="symbolic link"):
        read_file(root, "x/a.md")
    (root / "x/a.md").unlink()
    (root / "x").rmdir()
    (root / "x").symlink_to(tmp_path)
    with pytest.raises(UnreadableFileError, match="leads out"):
        read_file(root, "x/a.md")


@pytest.mark.parametrize("path", ["../a.md", "x/../../a.md", "a\0.md", ".", "x"])
def test_paths_that_name_no_file_inside_the_root_are_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "a.md").write_bytes(b"secret")
    (tmp_path / "root/x").mkdir(parents=True)
    with pytest.raises(UnreadableFileError):
        read_file(tmp_path / "root", path)


def test_a_fifo_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(UnreadableFileError, match="regular file"):
        read_file(tmp_path, "a.md")


def before_each_read(monkeypatch: pytest.MonkeyPatch, action: Callable[[int], None]) -> None:
    real_read = os.read
    calls = 0

    def read(descriptor: int, size: int) -> bytes:
        nonlocal calls
        calls += 1
        action(calls)
        return real_read(descriptor, size)

    monkeypatch.setattr(os, "read", read)


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"first half, ")

    def change(call: int) -> None:
        if call == 2:
            file.write_bytes(b"FIRST HALF, SECOND HALF")

    before_each_read(monkeypatch, change)
    data, state = read_file(tmp_path, "a.md")
    assert data == b"FIRST HALF, SECOND HALF"
    assert (state.bytes, state.mtime_ns) == (23, file.stat().st_mtime_ns)


def test_a_file_that_never_rests_is_read_in_the_end_and_looks_changed_to_the_next_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log.md"
    file.write_bytes(b"start\n")

    def grow(call: int) -> None:
        with file.open("ab") as log:
            log.write(b"line\n")
        os.utime(file, ns=(0, call * 1_000_000_000))

    before_each_read(monkeypatch, grow)
    data, state = read_file(tmp_path, "log.md")
    assert file.read_bytes().startswith(data)
    assert state.mtime_ns != file.stat().st_mtime_ns


def test_a_file_that_outgrows_the_limit_while_it_is_read_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"x" * 10)

    def grow(call: int) -> None:
        with file.open("ab") as log:
            log.write(b"y" * 50)

    before_each_read(monkeypatch, grow)
    with pytest.raises(FileTooLargeError):
        read_file(tmp_path, "a.md", max_bytes=40)


def test_a_link_replaced_while_it_is_followed_does_not_skip_the_file_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system says EINVAL to the reading of a link that has just become a directory."""
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("x")
    (tmp_path / "root" / "folder").symlink_to(tmp_path / "outside")

    def no_link_any_more(path: str) -> str:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)

    monkeypatch.setattr(os, "readlink", no_link_any_more)
    job = FileJob(
        str(tmp_path / "root"), ScannedFile("folder/a.md", FileState(1, 0, 1, 1)), 10, None
    )
    parsed = parse_file(job)
    assert isinstance(parsed, NoDocument)
    assert (parsed.reason, parsed.state) == ("vanished", None)

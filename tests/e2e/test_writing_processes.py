"""Several processes that write one file, processes killed in the middle of it, full disks."""

# Names are what counts here:
# ruff: noqa: PTH208

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.files.writing.locked_folder import locked
from tests.support import child, disk
from tests.support.dump import assert_sound

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9, mounts, permissions")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    return root


@pytest.fixture
def database(tmp_path: Path, notes: Path) -> Path:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(notes, name="notes")
    return path


# --- at once ---------------------------------------------------------------------------

APPEND = """
import sys
from qmd import KnowledgeBase
database, file, name, number = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with KnowledgeBase.open(database) as kb:
    for each in range(int(number)):
        line = f"{name} {each} " + name * 500 + "\\n"
        kb.files.rewrite(file, lambda old: (old or b"") + line.encode(), tool="test")
print("done")
"""

#: The same, and the index holds what was written.
APPEND_AND_READ = APPEND.replace(
    'tool="test")\n', 'tool="test")\n        assert line in kb.get("notes/log.md").text\n'
)

OVERWRITE = """
import sys
from qmd import KnowledgeBase
database, file, number = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with KnowledgeBase.open(database) as kb:
    for each in range(int(number)):
        kb.files.rewrite(file, lambda _: f"overwritten {each}\\n".encode(), tool="test")
print("done")
"""


def at_once(*processes: child.Child) -> None:
    """Let them begin together and wait for all."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        assert child.finish(process) == "done"


def lines_of(name: str, number: int) -> list[str]:
    return [f"{name} {each} " + name * 500 for each in range(number)]


@pytest.mark.unmeasured
def test_appends_of_several_processes_all_survive_whole(notes: Path, database: Path) -> None:
    path = notes / "log.md"
    with KnowledgeBase.open(database) as keeping:
        keeping.keep(embed=False)  # another process holds the keeper's lock
        at_once(*(child.start(APPEND_AND_READ, database, path, name, 15) for name in "abcd"))
    lines = path.read_text().splitlines()
    assert len(lines) == 60
    for name in "abcd":  # each whole, and in the order in which it was written
        assert [line for line in lines if line.startswith(name)] == lines_of(name, 15)
    assert os.listdir(notes) == ["log.md"]
    with KnowledgeBase.open(database) as kb:
        assert kb.get("notes/log.md").text == path.read_text()
    assert_sound(database)


def test_appends_survive_beside_a_process_that_overwrites(notes: Path, database: Path) -> None:
    """What was appended stands in the file, or in what was kept when it was overwritten."""
    path = notes / "log.md"
    at_once(
        child.start(APPEND, database, path, "a", 4),
        child.start(OVERWRITE, database, path, 6),
        child.start(APPEND, database, path, "b", 4),
    )
    with KnowledgeBase.open(database) as kb:
        history = [
            kb.revisions.content(path, revision.number).decode()
            for revision in kb.revisions.history(path)
            if revision.kind != "none"
        ]
    texts = [path.read_text(), *history]
    found = {line for text in texts for line in text.splitlines()}
    written = {*lines_of("a", 4), *lines_of("b", 4), *(f"overwritten {n}" for n in range(6))}
    assert found == written
    for text in texts:  # never two overwritten contents, never a piece
        assert len(re.findall(r"^overwritten \d$", text, re.MULTILINE)) <= 1
        assert "overwritten" not in text or text.startswith("overwritten")


def test_processes_with_databases_of_their_own_append_to_one_file(tmp_path: Path) -> None:
    code = APPEND.replace("open(database)", "open(database, create=True)")
    path = tmp_path / "log.md"
    at_once(*(child.start(code, tmp_path / f"{n}.sqlite", path, n, 12) for n in "xyz"))
    lines = path.read_text().splitlines()
    assert sorted(lines) == sorted(line for n in "xyz" for line in lines_of(n, 12))


def test_threads_append_to_one_file(notes: Path, database: Path) -> None:
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1]) as kb, ThreadPoolExecutor(8) as pool:
    def add(number):
        line = f"{number}\\n".encode()
        kb.files.rewrite(sys.argv[2], lambda old: (old or b"") + line, tool="test")
    list(pool.map(add, range(64)))
"""
    child.run(code, database, notes / "log.md")
    lines = (notes / "log.md").read_text().split()
    assert sorted(map(int, lines)) == list(range(64))


# --- killed ----------------------------------------------------------------------------

#: Dies before its n-th call of one of these, for n = 1, 2, … until it gets through.
KILLED = """
import os, signal, sys
import qmd.store.sqlite.store, qmd.files.writing.writer, qmd.files.writing.locked_folder
import qmd.ingest.collection_indexer
import qmd.parse.document
from qmd import KnowledgeBase
from qmd.files.writing.writer import NewMetadata
database, file, action = sys.argv[1:]

def work(fatal):
    count = 0
    def counted(function):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            if count == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return call
    with KnowledgeBase.open(database) as kb:
        for name in ("open", "write", "fsync", "replace", "fchmod", "unlink", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        files = kb.files
        if action == "write":
            files.rewrite(file, lambda _: b"new " * 10000, tool="test")
        elif action == "append":
            files.rewrite(file, lambda old: (old or b"") + b"more", tool="test")
        else:
            photo = NewMetadata(b"new " * 10000, b"{}", {}, {})
            files.rewrite(file, lambda _: photo, tool="test")

for fatal in range(1, 100):
    pid = os.fork()
    if not pid:
        work(fatal)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    print("killed" if os.WIFSIGNALED(status) else "done", flush=True)
    sys.stdin.readline()
    if not os.WIFSIGNALED(status):
        assert os.waitstatus_to_exitcode(status) == 0
        break
"""

OLD = b"old " * 10000


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("write", OLD, b"new " * 10000),
        pytest.param("append", OLD, OLD + b"more", marks=pytest.mark.nightly),
        pytest.param("metadata", OLD, b"new " * 10000, marks=pytest.mark.nightly),
        pytest.param("write", None, b"new " * 10000, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.unmeasured
def test_killed_at_any_moment_it_leaves_the_old_or_the_new_file_and_nothing_else(
    notes: Path, database: Path, action: str, before: bytes | None, after: bytes
) -> None:
    path = notes / "folder/x.md"
    killed, stray = 0, 0
    process = child.start(KILLED, database, path, action)
    assert process.stdout is not None
    assert process.stdin is not None

    def reset() -> None:
        if before is None:
            shutil.rmtree(path.parent, ignore_errors=True)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(before)

    try:
        reset()
        while True:
            ending = process.stdout.readline().strip()
            content = path.read_bytes() if path.exists() else None
            assert content == after if ending == "done" else content in (before, after)
            folder = path.parent
            stray += bool(folder.is_dir() and set(os.listdir(folder)) - {"x.md"})
            if killed % 2:  # the next start, which may be one that only reads
                KnowledgeBase.open(database, read_only=True).close()
                assert set(os.listdir(folder) if folder.is_dir() else []) <= {"x.md"}
            with KnowledgeBase.open(database) as kb:
                assert set(os.listdir(folder) if folder.is_dir() else []) <= {"x.md"}
                if content == after and before is not None and action != "metadata":
                    revision = kb.revisions.history(path)[0]
                    assert kb.revisions.content(path, revision.number) == before
                kb.index()
                if content is not None:
                    assert kb.get("notes/folder/x.md").text == content.decode()
            killed += ending == "killed"
            if ending == "done":
                break
            reset()
            process.stdin.write("\n")
            process.stdin.flush()
    finally:
        process.stdin.close()
        process.wait(child.WAIT_S)
        process.stdout.close()
    assert killed >= 6, killed
    assert stray >= 3, stray  # else nothing was cleaned up
    assert_sound(database)


def test_what_another_process_is_writing_just_now_is_left_alone(
    notes: Path, database: Path
) -> None:
    (notes / "x.jpg").write_bytes(b"old")
    code = """
import os, sys
from qmd import KnowledgeBase
fsync = os.fsync
def waiting(descriptor):
    os.fsync = fsync
    print("ready", flush=True)
    sys.stdin.readline()
    fsync(descriptor)
with KnowledgeBase.open(sys.argv[1]) as kb:
    os.fsync = waiting
    kb.files.rewrite(sys.argv[2], lambda _: b"new", tool="test")
"""
    process = child.start(code, database, notes / "x.jpg")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with KnowledgeBase.open(database):
        assert len(os.listdir(notes)) == 2
    child.finish(process)
    assert os.listdir(notes) == ["x.jpg"]
    assert (notes / "x.jpg").read_bytes() == b"new"


def test_the_next_writer_in_the_directory_clears_up_too(notes: Path, database: Path) -> None:
    """A server may run for weeks; what died was another process."""
    (notes / "x.jpg").write_bytes(b"old")
    code = """
import os, signal, sys
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1]) as kb:
    os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
    kb.files.rewrite(sys.argv[2], lambda _: b"new", tool="test")
"""
    with KnowledgeBase.open(database) as kb:
        process = child.start(code, database, notes / "x.jpg")
        process.communicate(timeout=child.WAIT_S)
        assert process.returncode == -signal.SIGKILL
        assert len(os.listdir(notes)) == 2
        kb.files.rewrite(notes / "y.md", lambda _: b"hello", tool="test")
        assert sorted(os.listdir(notes)) == ["x.jpg", "y.md"]
    assert (notes / "x.jpg").read_bytes() == b"old"


def test_a_writer_that_hangs_does_not_stop_the_others_for_ever(notes: Path, database: Path) -> None:
    (notes / "x.jpg").write_bytes(b"old")
    code = """
import sys
from functools import partial
from qmd import KnowledgeBase
from qmd.files.writing import locked_folder
locked_folder.locked = partial(locked_folder.locked, wait_s=0.1)
with KnowledgeBase.open(sys.argv[1]) as kb:
    try:
        kb.files.rewrite(sys.argv[2], lambda _: b"new", tool="test")
    except BlockingIOError as error:
        print(error.errno)
"""
    with locked(notes):
        assert child.run(code, database, notes / "y.md") == "16"  # EBUSY
    assert os.listdir(notes) == ["x.jpg"]


# --- the disk says no --------------------------------------------------------------------

WRITE = """
import sys
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1]) as kb:
    for file in sys.argv[2:]:
        try:
            kb.files.rewrite(file, lambda _: b"new" * 100_000, tool="test")
            print("written")
        except OSError as error:
            print(error.errno, error.filename)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disk.small(tmp_path / "disk", "64k") as directory:
        yield directory


def test_a_full_disk_leaves_the_file_as_it_was(small_disk: Path, database: Path) -> None:
    path = small_disk / "x.md"
    path.write_bytes(b"old")
    out = child.run(WRITE, database, path, small_disk / "folder/new.md")
    assert [line.split()[0] for line in out.splitlines()] == ["28", "28"]  # ENOSPC
    assert path.read_bytes() == b"old"
    assert os.listdir(small_disk) == ["x.md"]


def test_a_limit_on_the_size_of_files_leaves_the_file_as_it_was(
    notes: Path, database: Path
) -> None:
    (notes / "x.md").write_bytes(b"old")
    code = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
"""
    out = child.run(code + WRITE, database, notes / "x.md")
    assert out.split()[0] == "27"  # EFBIG
    assert (notes / "x.md").read_bytes() == b"old"
    assert os.listdir(notes) == ["x.md"]


def test_somebody_elses_file_is_not_made_ones_own_whatever_its_mode(
    notes: Path, database: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give a file away")
    path = notes / "x.md"
    path.write_bytes(b"old")
    path.chmod(0o666)
    os.chown(path, 12345, 23456)
    before = path.stat().st_ctime_ns
    assert child.unprivileged(WRITE, database, path) == f"1 {path}"  # EPERM
    assert (path.read_bytes(), path.stat().st_ctime_ns) == (b"old", before)
    assert os.listdir(notes) == ["x.md"]
    os.chown(path, 12345, 0)  # a group that can be kept keeps what it may
    assert child.unprivileged(WRITE, database, path) == "written"
    assert (path.stat().st_uid, path.stat().st_gid) == (0, 0)
    assert path.stat().st_mode & 0o777 == 0o666


def test_without_permission_nothing_changes_and_the_error_names_the_file(
    notes: Path, database: Path
) -> None:
    paths = [notes / "closed.md", notes / "hidden.md", notes / "folder/x.md", notes / "folder/n.md"]
    (notes / "folder").mkdir()
    for path in paths[:3]:
        path.write_bytes(b"old")
    paths[0].chmod(0o444)
    paths[1].chmod(0o000)
    (notes / "folder").chmod(0o555)
    out = child.unprivileged(WRITE, database, *paths)
    (notes / "folder").chmod(0o755)
    lines = [line.split(" ", 1) for line in out.splitlines()]
    assert [number for number, _ in lines] == ["13"] * 4  # EACCES
    named = [Path(name) for _, name in lines]
    assert named[:2] == paths[:2]
    assert all(name.parent == notes / "folder" for name in named[2:])
    for path in paths[:3]:
        path.chmod(0o644)
        assert path.read_bytes() == b"old"
    assert sorted(os.listdir(notes)) == ["closed.md", "folder", "hidden.md"]
    assert os.listdir(notes / "folder") == ["x.md"]


def test_directories_above_need_no_right_to_read(tmp_path: Path, database: Path) -> None:
    above = tmp_path / "above"
    (above / "mine").mkdir(parents=True)
    above.chmod(0o311)
    assert child.unprivileged(WRITE, database, above / "mine/x.md") == "written"
    above.chmod(0o755)
    assert (above / "mine/x.md").exists()


# --- other systems -----------------------------------------------------------------------

#: As on a network disk that knows no locks on directories.
NO_DIRECTORY_LOCKS = """
import errno, fcntl, os, stat
flock = fcntl.flock
def on_files_alone(descriptor, operation):
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        raise OSError(errno.ENOLCK, "No locks available")
    return flock(descriptor, operation)
fcntl.flock = on_files_alone
"""

#: As on Windows, where nothing can be named relative to an open directory.
NO_RELATIVE_NAMES = """
import os
os.supports_dir_fd = set()
"""


@pytest.mark.parametrize("system", [NO_DIRECTORY_LOCKS, NO_RELATIVE_NAMES])
@pytest.mark.cold  # the system is another one when qmd is imported
def test_appends_survive_where_directories_cannot_be_locked(
    tmp_path: Path, notes: Path, database: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    (tmp_path / "temp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temp"))
    path = notes / "folder/log.md"
    at_once(*(child.start(system + APPEND, database, path, name, 8) for name in "ab"))
    lines = path.read_text().splitlines()
    assert sorted(lines) == sorted(line for name in "ab" for line in lines_of(name, 8))
    assert os.listdir(path.parent) == ["log.md"]
    (locks,) = (tmp_path / "temp").glob("qmd-locks*")
    assert locks.stat().st_mode & 0o777 == 0o700


@pytest.mark.cold
def test_without_relative_names_a_write_does_the_same(notes: Path, database: Path) -> None:
    code = (
        NO_RELATIVE_NAMES
        + """
import sys
from pathlib import Path
from qmd import KnowledgeBase
from qmd.files.writing import locked_folder
assert not locked_folder._CAN_OPEN_RELATIVE
folder = Path(sys.argv[2])
def number_of(write):
    try:
        write()
    except OSError as error:
        return error.errno
with KnowledgeBase.open(sys.argv[1]) as kb:
    files = kb.files
    path = folder / "a/b/x.md"
    files.rewrite(path, lambda _: b"one", tool="test")
    path.chmod(0o640)
    files.rewrite(path, lambda old: old + b" two", tool="test")
    assert path.read_bytes() == b"one two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert kb.get("notes/a/b/x.md").text == "one two"
    path.chmod(0o444)
    assert number_of(lambda: files.rewrite(path, lambda _: b"x", tool="test")) == 13
    assert number_of(lambda: files.rewrite(path.parent, lambda _: b"x", tool="test")) == 21
    assert number_of(lambda: files.rewrite(path / "y.md", lambda _: b"x", tool="test")) in (17, 20)
    assert number_of(lambda: files.rewrite(folder / ("n" * 300), lambda _: b"x", tool="test")) == 36
    assert sorted(each.name for each in folder.rglob("*")) == ["a", "b", "x.md"]
"""
    )
    child.run(code, database, notes)

"""What a run reads, keeps, reports and resumes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.ingest import collection_indexer
from qmd.values import Progress
from tests.support import child
from tests.support.dump import dump
from tests.support.embedder import HashEmbedder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    (root / "sub").mkdir(parents=True)
    for number in range(12):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nbody {number}\n")
    (root / "sub/deep.md").write_text("# Deep\n")
    (root / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    age(root)
    return root


def age(root: Path) -> None:
    """Make all files old enough for their times to be trusted."""
    for path in root.rglob("*.md"):
        os.utime(path, ns=(1_600_000_000_000_000_001, 1_600_000_000_000_000_001))


@pytest.fixture
def kb(tmp_path: Path, root: Path) -> KnowledgeBase:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        yield kb


# As in a program that holds its own Python, whose worker process cannot be started: files are
# parsed in the process itself, which sees what it opens.
OPENED = """
import sys
sys.frozen = True
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1]) as kb:
    kb.index(verify=sys.argv[2] == "verify")
for name in opened:
    if name.endswith(".md"):
        print(name.rpartition("/")[2])
"""


def opened(kb: KnowledgeBase, how: str = "") -> list[str]:
    """The files that an index run in a process of its own opens."""
    return child.run(OPENED, kb.path, how).split()


def test_unchanged_files_are_not_opened(kb: KnowledgeBase, root: Path) -> None:
    assert opened(kb) == []
    (root / "3.md").write_text("# Changed\n")
    assert opened(kb) == ["3.md"]


def count_segments(kb: KnowledgeBase) -> int:
    """In another process: a second SQLite library in this one would drop the locks of the first."""
    program = (
        "import sqlite3, sys;"
        "print(sqlite3.connect(sys.argv[1]).execute("
        "'SELECT count(DISTINCT segid) FROM z_documents_fts_idx').fetchone()[0])"
    )
    return int(subprocess.check_output([sys.executable, "-c", program, str(kb.path)]))


def test_full_text_is_merged_after_many_changes(
    kb: KnowledgeBase, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection_indexer, "BATCH_DOCUMENTS", 4)
    for number in range(12):
        (root / f"{number}.md").write_text(f"# Changed {number}\n\nlemon {number}\n")
    (root / "new.md").write_text("# New\n\nlemon\n")
    kb.index()
    assert count_segments(kb) == 1
    (root / "newer.md").write_text("# Newer\n\nlemon\n")
    kb.index()  # one change is not worth it
    assert count_segments(kb) == 2
    assert len(kb.search("lemon", limit=None).hits) == 14


def test_touched_files_are_read_once(kb: KnowledgeBase, root: Path) -> None:
    os.utime(root / "3.md", ns=(1_600_000_009_000_000_001, 1_600_000_009_000_000_001))
    assert opened(kb) == ["3.md"]
    assert opened(kb) == []


def test_verify_opens_every_file(kb: KnowledgeBase) -> None:
    assert len(opened(kb, "verify")) == 14


def test_verify_finds_what_size_and_time_hide(kb: KnowledgeBase, root: Path) -> None:
    (root / "3.md").write_text("# Note 3\n\nBODY 3\n")
    age(root)
    assert kb.index().updated == 0
    assert kb.index(verify=True).updated == 1
    assert "BODY 3" in kb.get("notes/3.md").text


def test_a_second_write_within_one_tick_of_the_clock_is_found(
    kb: KnowledgeBase, root: Path
) -> None:
    """Both writes carry the same time, which was present when the first was read."""
    for name, first, second in (
        ("3.md", b"# A\n", b"# B\n"),
        ("picture.md", b"\x89PNG\r\n\x1a\n" + bytes(10), b"# now a text text\n"),
    ):
        now = time.time_ns() + 3_600_000_000_000  # whatever this machine does in between
        path = root / name
        path.write_bytes(first)
        os.utime(path, ns=(now, now))
        kb.index()
        assert len(first) == len(second)
        path.write_bytes(second)
        os.utime(path, ns=(now, now))
        kb.index()
        assert kb.get(f"notes/{name}").text == second.decode()


def test_a_progress_callback_that_is_interrupted_loses_no_finished_batch(
    tmp_path: Path, kb: KnowledgeBase, root: Path
) -> None:
    for number in range(600):
        (root / f"more{number}.md").write_text(f"# More {number}\n")

    def interrupt(tick: Progress) -> None:
        if tick.stage == "index" and tick.done == 400:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.index(progress=interrupt)
    stored = kb.status().total_documents
    assert stored >= 13 + 256
    report = kb.index()
    assert report.added == 613 - stored
    fresh = tmp_path / "fresh.sqlite"
    with KnowledgeBase.open(fresh, create=True) as other:
        other.add_collection(root, name="notes")
        other.index()
    assert dump(kb.path) == dump(fresh)


def test_an_interrupted_embed_goes_on_where_it_was(kb: KnowledgeBase, root: Path) -> None:
    for number in range(100):
        (root / f"more{number}.md").write_text(f"# More {number}\n")
    kb.index()

    def interrupt(tick: Progress) -> None:
        if tick.done >= 64:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.embed(progress=interrupt)
    done = kb.status().chunks_embedded
    assert done == 64
    report = kb.embed()
    assert (report.embedded, report.remaining) == (kb.status().chunks - done, 0)


@pytest.mark.parametrize("loss", ["gone", "a file", "replaced by an empty disk"])
def test_a_collection_whose_root_is_gone_keeps_its_documents_and_says_so(
    tmp_path: Path, kb: KnowledgeBase, root: Path, loss: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.md").write_text("# X\n")
    kb.add_collection(other)
    root.rename(tmp_path / "away")
    if loss == "a file":
        root.write_text("x")
    elif loss == "replaced by an empty disk":
        if not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == other.stat().st_dev:
            pytest.skip("no second file system here")
        empty = Path("/dev/shm") / f"qmd-empty-{os.getpid()}"
        empty.mkdir()
        root.symlink_to(empty)
    try:
        report = kb.index()
    finally:
        if root.is_symlink():
            root.resolve().rmdir()
    (error,) = report.errors
    assert error.startswith("notes: ")
    assert (report.added, report.removed) == (1, 0)
    assert kb.collection("notes").documents == 13
    assert kb.search("deep").hits


def test_files_that_vanish_during_the_run_are_no_documents_and_no_errors(
    kb: KnowledgeBase, root: Path
) -> None:
    for number in range(5):
        (root / f"new{number}.md").write_text("# New\n")
    (root / "3.md").write_text("# Changed\n")

    def vanish(tick: Progress) -> None:
        if tick.stage == "index" and tick.done == 0:
            (root / "new3.md").unlink()
            (root / "3.md").unlink()
            (root / "new4.md").unlink()
            (root / "new4.md").mkdir()

    report = kb.index(progress=vanish)
    assert report.errors == ()
    assert report.added == 3
    assert {d.path for d in kb.documents()} >= {"new0.md", "new1.md", "new2.md"}
    kb.index()
    paths = {d.path for d in kb.documents()}
    assert not paths & {"3.md", "new3.md", "new4.md"}


def test_one_bad_collection_does_not_stop_the_others(tmp_path: Path, kb: KnowledgeBase) -> None:
    for name in ("aa", "zz"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "x.md").write_text("# X\n")
        kb.add_collection(folder)
    shutil.rmtree(tmp_path / "aa")
    report = kb.index()
    assert [error.split(":")[0] for error in report.errors] == ["aa"]
    assert kb.collection("zz").documents == 1


UNREADABLE = """
import sys
from pathlib import Path
from qmd import KnowledgeBase
root = Path(sys.argv[2])
with KnowledgeBase.open(sys.argv[1]) as kb:
    (root / "new.md").write_text("# New\\n")
    (root / "new.md").chmod(0)
    (root / "sub").chmod(0)
    report = kb.index()
    assert {skip.path: skip.reason for skip in report.skipped if skip.path != "picture.md"} == {
        "new.md": "unreadable", "sub": "unreadable"}, report
    assert (report.added, report.removed, report.errors) == (0, 0, ())
    assert kb.get("notes/sub/deep.md").text  # unknown is not gone
    for path in ("new.md", "sub", "sub/deep.md"):
        why = kb.why(root / path)
        assert "ermission" in why.reason + (why.remedy or ""), why
    (root / "new.md").chmod(0o644)
    (root / "sub").chmod(0o755)
    report = kb.index()
    assert report.added == 1, report
    assert [skip.path for skip in report.skipped] == ["picture.md"]
    assert kb.why(root / "new.md").indexed
    root.chmod(0)
    report = kb.index()
    assert report.errors and report.removed == 0, report
    root.chmod(0o755)
    assert kb.index().unchanged == 14
print("done")
"""


def test_unreadable_files_and_folders_are_skipped_until_they_are_readable(
    kb: KnowledgeBase, root: Path
) -> None:
    assert child.unprivileged(UNREADABLE, kb.path, root) == "done"


def test_a_text_that_was_embedded_before_is_never_embedded_again(
    kb: KnowledgeBase, root: Path
) -> None:
    kb.embed()
    (root / "sub/deep.md").rename(root / "moved.md")
    (root / "0.md").unlink()
    shutil.copy(root / "1.md", root / "copy.md")
    kb.index()
    assert kb.embed().embedded == 0
    (root / "0.md").write_text("# Note 0\n\nbody 0\n")
    kb.index()
    assert kb.embed().embedded == 0


def test_forced_embedding_of_one_collection_leaves_no_other_without_its_vectors(
    tmp_path: Path, kb: KnowledgeBase, root: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(root / "1.md", other / "same.md")
    kb.add_collection(other)
    kb.index()
    kb.embed()

    def interrupt(tick: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.embed(["notes"], force=True, progress=interrupt)
    waiting = kb.status()
    assert waiting.chunks_embedded == 0
    assert waiting.needs_embedding == 13
    assert kb.embed().remaining == 0
    hits = kb.vsearch("Note 1 body 1", limit=2).hits
    assert {hit.file for hit in hits} == {"notes/1.md", "other/same.md"}


def test_files_that_an_older_parser_refused_or_read_are_read_again(
    kb: KnowledgeBase, root: Path
) -> None:
    assert opened(kb) == []
    kb._store.write(
        lambda writer: writer.connection.execute("UPDATE skipped_files SET parser_version = 1")
    )
    assert opened(kb) == ["picture.md"]
    kb._store.write(
        lambda writer: writer.connection.execute(
            "UPDATE documents SET parser_version = 1 WHERE id = 1"
        )
    )
    assert len(opened(kb)) == 1
    assert opened(kb) == []

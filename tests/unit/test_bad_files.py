"""
One bad file is a reported skip, whatever it does to its parser, and the rest is indexed.

No parser of ours should do any of this, so the worker processes run one here that does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.ingest import parse_workers
from qmd.ingest.file_job import FileJob, NoDocument
from qmd.ingest.rules import MAX_BYTES
from qmd.ingest.scan import ScannedFile
from qmd.system.worker.jobs import MB, JobBudget
from qmd.system.worker.pool import WorkerPool
from qmd.values import FileState
from tests.support import child
from tests.support.dump import assert_sound
from tests.support.embedder import HashEmbedder
from tests.support.live import Kept, kept, until
from tests.support.processes import children_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")

PARSE = "tests.support.bad_jobs:parse"
BAD = {
    "spin.md": ("over budget", "It took more than 0.5 s of CPU time."),
    "eat.md": ("over budget", "It took more than 200 MB of memory."),
    "recurse.md": (
        "parser failed",
        "RecursionError: maximum recursion depth exceeded (bad_jobs.py, line 53)",
    ),
    "segfault.md": ("parser failed", "The process that read it was ended by SIGSEGV."),
    "block.md": ("no answer", "Nothing came of it for 6 s."),
}


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    workers = WorkerPool(PARSE, silence_s=1.0)
    monkeypatch.setattr(parse_workers, "workers", workers)
    monkeypatch.setattr(parse_workers, "budget_of", lambda path, size: JobBudget(0.5, 200 * MB))
    yield workers
    workers.close()


def write(root: Path, *names: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = root / name
        path.write_text(f"# {name}\n\nsourdough\n")
        os.utime(path, ns=(1_600_000_000_000_000_001,) * 2)


@pytest.mark.usefixtures("parser")
@pytest.mark.unmeasured
def test_every_bad_file_is_a_skip_with_its_reason(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    write(root, *BAD, "a.md", "f.md", "t.md", "z.md")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        report = kb.index()
        assert report.added == 4
        assert report.errors == ()
        for told in (report.skipped, kb.status().skipped):
            skipped = {skip.path: (skip.reason, skip.detail) for skip in told}
            assert skipped.keys() == BAD.keys()
            for name, (reason, detail) in BAD.items():
                assert skipped[name][0] == reason
                assert skipped[name][1].startswith(detail)
        for name, (reason, detail) in BAD.items():
            explained = kb.why(root / name)
            assert not explained.indexed
            assert f"it is no document: {reason}. {detail}" in explained.reason
            assert explained.remedy
    assert_sound(tmp_path / "kb.sqlite")


def test_a_bad_file_is_not_tried_again_until_it_changes(tmp_path: Path, parser: WorkerPool) -> None:
    root = tmp_path / "notes"
    lasting = [name for name in BAD if name != "block.md"]
    write(root, *lasting)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        parser.close()
        again = kb.index()
        assert len(again.skipped) == len(lasting)
        assert not parser.is_running, "no file had to be read"
        (root / "spin.md").rename(root / "mended.md")
        report = kb.index()
        assert (report.added, len(report.skipped)) == (1, len(lasting) - 1)


def test_an_unchanged_folder_starts_no_process(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    write(root, "a.md", "b.md")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        parse_workers.workers.close()
        assert kb.index().unchanged == 2
        assert not parse_workers.workers.is_running


@pytest.mark.usefixtures("parser")
def test_a_document_that_becomes_too_much_for_its_parser_is_one_no_more(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    write(root, "a.md")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        (root / "a.md").rename(root / "recurse.md")
        report = kb.index()
        assert (report.removed, len(report.skipped)) == (1, 1)
        assert kb.documents() == []


@pytest.mark.usefixtures("parser")
def test_a_keeper_answers_while_a_file_is_too_much_and_indexes_what_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_workers, "budget_of", lambda path, size: JobBudget(2.0, 200 * MB))
    with kept(tmp_path, {"a.md": "# A\n\nsourdough\n"}) as notes:
        notes.write("spin.md", "# Spin\n")
        until(lambda: notes.kb.freshness().indexing or _skipped(notes), "it is read")
        notes.finds("sourdough", "a.md")  # the interpreter's lock is free
        notes.write("b.md", "# B\n\nrye\n")
        notes.settles_as("a.md", "b.md")
        until(lambda: _skipped(notes) == ["spin.md"], "it is told")


def _skipped(notes: Kept) -> list[str]:
    return [skip.path for skip in notes.kb.status().skipped]


INDEX = """
import sys
from pathlib import Path
from qmd.ingest import parse_workers
from qmd.system.worker.pool import WorkerPool
parse_workers.workers = WorkerPool("tests.support.bad_jobs:parse")
from qmd.cli.main import main
sys.exit(main(["--db", sys.argv[1], *sys.argv[2:]]))
"""


def _index(database: Path, root: Path) -> subprocess.Popen[bytes]:
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(root, name="notes")
    return subprocess.Popen(
        [sys.executable, "-c", INDEX, str(database), "index", "--no-embed"],
        cwd=child.REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("deed", ["spin.md", "sleep.md"])
def test_an_index_run_that_is_ended_leaves_no_process_and_no_damage(
    tmp_path: Path, ending: signal.Signals, deed: str
) -> None:
    write(tmp_path / "notes", "a.md", deed)
    run = _index(tmp_path / "kb.sqlite", tmp_path / "notes")
    with run:
        until(lambda: children_of(run.pid), "it starts one")
        [number] = children_of(run.pid)
        worker = child.Stranger(number)
        run.send_signal(ending)
        _, err = run.communicate(timeout=child.WAIT_S)
        worker.wait()
    assert run.returncode == {signal.SIGINT: 130}.get(ending, -ending)
    if ending is signal.SIGINT:
        assert b"Traceback" not in err
    assert_sound(tmp_path / "kb.sqlite")
    with KnowledgeBase.open(tmp_path / "kb.sqlite") as kb:
        assert kb.index().total_documents == 2


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")
def test_a_worker_killed_again_and_again_costs_no_good_file(tmp_path: Path) -> None:
    names = [f"{number:04}.md" for number in range(2000)]
    write(tmp_path / "notes", *names)
    run = _index(tmp_path / "kb.sqlite", tmp_path / "notes")
    with run:
        killed = set()
        while run.poll() is None and len(killed) < 3:
            for number in children_of(run.pid):
                killed.add(number)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        _, err = run.communicate(timeout=child.WAIT_S)
    assert run.returncode == 0, err
    with KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(embedder=HashEmbedder())) as kb:
        status = kb.status()
        # One that ended two processes is skipped, and can be no more than the one in work then.
        assert status.total_documents + len(status.skipped) == len(names)
        assert len(status.skipped) <= 1


def test_budgets_grow_with_the_file_and_not_with_a_photo() -> None:
    def budget(path: str, size: int) -> JobBudget:
        return parse_workers.budget_of(
            path, parse_workers.size_to_parse(ScannedFile(path, FileState(size, 0, 0, 0)))
        )

    assert budget("a.md", 1000) == budget("b.md", 0) == JobBudget(5.0, 512 * MB)
    assert budget("a.md", 20 * MB) == JobBudget(45.0, 1512 * MB)
    assert budget("a.heic", 5000 * MB) == JobBudget(5.0, 512 * MB)


def test_where_no_process_can_be_started_that_is_told_everywhere(
    tmp_path: Path, parser: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "Files are parsed in this process, where nothing limits them."
    with kept(tmp_path, {"a.md": "# A\n"}) as notes:
        (good,) = [check for check in notes.kb.doctor() if check.name == "parser"]
        assert (good.status, notes.kb.freshness().notices) == ("ok", ())
        parser.close()
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python-that-is-not-there"))
        notes.write("b.md", "# B\n")
        notes.write("recurse.md", "# R\n")
        notes.settles_as("a.md", "b.md")
        until(lambda: _skipped(notes) == ["recurse.md"], "a skip all the same")
        until(lambda: any(each.startswith(told) for each in notes.kb.freshness().notices))
        notes.write("c.md", "# C\n")
        report = notes.kb.index()
        assert any(warning.startswith(told) for warning in report.warnings)
        (bad,) = [check for check in notes.kb.doctor() if check.name == "parser"]
        assert bad.status == "warning" and bad.message.startswith(told) and bad.remedy


@pytest.mark.unmeasured
@pytest.mark.nightly
def test_a_text_of_the_largest_size_is_a_document(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    line = "每天备份数据库 😀, see [[Some note|alias]] and [text](other/file.md#part) #tag\n"
    (root / "large.md").write_text(("# Large\n\n" + line * 30 + "\n## Part\n\n") * 7500)
    assert MAX_BYTES * 0.9 < (root / "large.md").stat().st_size < MAX_BYTES
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        report = kb.index()
        assert (report.added, report.skipped) == (1, ())


def test_a_disk_that_hangs_ends_the_run_and_what_was_indexed_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = WorkerPool(PARSE, silence_s=0.2)
    monkeypatch.setattr(parse_workers, "workers", workers)
    monkeypatch.setattr(parse_workers, "budget_of", lambda path, size: JobBudget(0.1, 200 * MB))
    root = tmp_path / "notes"
    write(root, "0.md")
    other = tmp_path / "other"
    write(other, "a.md")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        for number in range(1, 6):
            write(root / str(number), "block.md")
        write(root, "0.md")
        (root / "1.md").write_text("# New\n")
        kb.add_collection(other, name="other")
        report = kb.index()
        (error,) = report.errors
        assert error.startswith(f"notes: Files below {root} give no answer")
        assert report.added == 1
        assert sorted(each.file for each in kb.documents()) == [
            "notes/0.md", "notes/1.md", "other/a.md",
        ]  # fmt: skip
    workers.close()


def test_a_fifo_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "note.md")
    found = ScannedFile("note.md", FileState(10, 0, 1, 1))  # what a scan saw just before
    [parsed] = parse_workers.parse_files([FileJob(str(tmp_path), found, 1000, None)])
    assert isinstance(parsed, NoDocument)
    assert (parsed.reason, parsed.state) == ("unreadable", None)
    assert "Not a regular file" in parsed.detail

"""A server, and what in its folders is too much for a parser: it answers, and indexes the rest."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from tests.support import child
from tests.support.http_server import WITHOUT_MODEL, Serving
from tests.support.live import until
from tests.support.processes import children_of
from tests.unit.test_photo_bombs import heic_file

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
    pytest.mark.unmeasured,  # other tests take the same branches
]

#: ``qmd`` with a parser that does what no parser should; see `tests.support.bad_jobs`.
QMD = """
import sys
sys.path.insert(0, sys.argv[1])
from qmd.ingest import parse_workers
from qmd.system.worker.jobs import JobBudget
from qmd.system.worker.pool import WorkerPool
parse_workers.budget_of = lambda path, size: JobBudget(0.5, 200_000_000)  # less CPU than usual
parse_workers.workers = WorkerPool("tests.support.bad_jobs:parse")
from qmd.cli.main import main
sys.exit(main(sys.argv[2:]))
"""
BAD = ["eat.md", "recurse.md", "segfault.md", "spin.md"]
GOOD = ["a.md", "latin.md", "z.md"]


def _fill(root: Path) -> None:
    root.mkdir()
    for name in (*BAD, "a.md", "z.md"):
        (root / name).write_text(f"# {name}\n\nsourdough\n")
    image = b"![](data:image/png;base64," + b"iVBORw0KGgoAAAANSUhEUg" * 12_000 + b")\n"
    (root / "latin.md").write_bytes(b"caf\xe9 sourdough\n\n" + image)
    item = bytes(4) + (0xFFFF).to_bytes(2, "big")  # 65,535 places of no width
    places = b"\0\0" + (100).to_bytes(2, "big") + item * 100
    (root / "bomb.heic").write_bytes(heic_file([b"mime"] * 100, places))


def _server(tmp_path: Path, *before: str) -> Serving:
    database = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes", mask="**/*.{md,heic}")
    program = [sys.executable, "-c", QMD, str(child.REPOSITORY), "--db", str(database)]
    options = ["server", "--transport", "http", "--port", "0"]
    return Serving([*before, *program, *options], environment={**os.environ, **WITHOUT_MODEL})


def _found(serving: Serving, word: str) -> list[str]:
    answer = serving.ask("POST", "/search", {"query": word, "limit": 100})
    assert answer.status == 200, answer.body
    return sorted(hit["file"] for hit in answer.json()["results"])


@pytest.mark.parametrize(
    "before",
    [
        [],
        pytest.param(
            ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh"],
            marks=pytest.mark.nightly,
            id="limit",
        ),
    ],
)
def test_bad_files_cost_only_themselves(tmp_path: Path, before: Sequence[str]) -> None:
    _fill(tmp_path / "notes")
    with _server(tmp_path, *before) as serving:
        documents = [f"notes/{name}" for name in GOOD]

        def is_indexed() -> bool:
            assert serving.ask("GET", "/health").status == 200
            return _found(serving, "sourdough") == documents

        until(is_indexed, "the good files are found")
        (tmp_path / "notes/later.md").write_text("# Later\n\nrye\n")
        until(lambda: _found(serving, "rye") == ["notes/later.md"], "and what comes later")
        assert serving.stop() == 0
    with KnowledgeBase.open(tmp_path / "kb.sqlite") as kb:
        status = kb.status()
    skipped = {skip.path: skip.reason for skip in status.skipped}
    assert {name: skipped.pop(name) for name in BAD} == {
        "eat.md": "over budget",
        "recurse.md": "parser failed",
        "segfault.md": "parser failed",
        "spin.md": "over budget",
    }
    assert skipped.keys() <= {"bomb.heic"}  # a photo that says nothing, or a skip


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_ends_while_a_file_is_in_work(tmp_path: Path, ending: signal.Signals) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/sleep.md").write_text("# Blocks for an hour\n")
    with _server(tmp_path) as serving:
        assert serving.url
        until(lambda: children_of(serving.process.pid), "it is in work")
        [number] = children_of(serving.process.pid)
        worker = child.Stranger(number)
        assert serving.ask("GET", "/health").status == 200
        code = serving.stop(ending)
        assert code == {signal.SIGTERM: 0, signal.SIGINT: 130}.get(ending, -ending)
        worker.wait()


@pytest.mark.nightly
@pytest.mark.cold  # what is open there is counted
def test_the_worker_of_a_server_ends_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    """Memory of a server that idles is its own."""
    (tmp_path / "notes").mkdir()
    code = QMD.replace('parse")', 'parse", idle_s=0.2)')
    (tmp_path / "notes/a.md").write_text("# A\n\nsourdough\n")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes")
    program = [sys.executable, "-c", code, str(child.REPOSITORY)]
    options = ["--db", str(tmp_path / "kb.sqlite"), "server", "--transport", "http", "--port", "0"]
    with Serving([*program, *options]) as serving:
        for number in range(2):
            (tmp_path / f"notes/{number}.md").write_text(f"# N\n\nword{number}\n")
            until(lambda: _found(serving, f"word{number}"), "it is found")  # noqa: B023
            until(lambda: not children_of(serving.process.pid), "no process is left, no zombie")
        # Its database and its clients have others, which come and go.
        before = _pipes(serving.process.pid)
        for number in range(2, 5):
            (tmp_path / f"notes/{number}.md").write_text(f"# N\n\nword{number}\n")
            until(lambda: _found(serving, f"word{number}"), "it is found")  # noqa: B023
            until(lambda: not children_of(serving.process.pid), "no process is left")
        until(lambda: _pipes(serving.process.pid) <= before, "their pipes are closed")
        assert serving.stop() == 0


def _pipes(pid: int) -> int:
    """How many descriptors lead to pipes, or to memory that is shared with a worker."""
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += str(entry.readlink()).startswith(("pipe:", "/memfd:"))
    return found

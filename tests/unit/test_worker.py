"""Whatever a job does to its process, the others are done, and the one fails with the reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.system.worker import pool as pool_module
from qmd.system.worker.jobs import MB, Job, JobAnswer, JobBudget, JobFailure, JobResult
from qmd.system.worker.pool import WorkerPool
from tests.support import child
from tests.support.live import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")

DO = "tests.support.bad_jobs:do"
SMALL = JobBudget(cpu_s=0.5, memory_bytes=100 * MB)


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    made = WorkerPool(DO, silence_s=1.0)
    yield made
    made.close()


def run(workers: WorkerPool, *arguments: object, budget: JobBudget = SMALL) -> list[JobResult]:
    return list(workers.run(Job(each, 10, budget) for each in arguments))


def echo(value: object) -> list[object]:
    return ["echo", value]


def facts(workers: WorkerPool) -> dict[str, Any]:
    [result] = run(workers, "facts")
    assert isinstance(result, JobAnswer)
    found: dict[str, Any] = result.value
    return found


def failures(results: Sequence[JobResult]) -> list[str]:
    """Their kinds, and "" for an answer."""
    return [each.kind if isinstance(each, JobFailure) else "" for each in results]


def test_jobs_are_answered_in_order_by_one_process(workers: WorkerPool) -> None:
    values = [None, True, 7, 2**80, 1.5, "text 中文 \ud800", b"\0", (1, [2, {"a": "b"}])]
    assert run(workers, *map(echo, values)) == [JobAnswer(value) for value in values]
    first = facts(workers)["pid"]
    assert facts(workers)["pid"] == first != os.getpid()


@pytest.mark.parametrize(
    ("deed", "kind", "detail"),
    [
        ("spin", "cpu", "It took more than 0.5 s of CPU time."),
        ("eat", "memory", "It took more than 100 MB of memory."),
        ("recurse", "error", "RecursionError: maximum recursion depth exceeded"),
        ("segfault", "crash", "The process that read it was ended by SIGSEGV."),
        ("abort", "memory", "It took more than 100 MB of memory."),
        (
            "assert",
            "crash",
            "The process that read it was ended by SIGABRT. Its last words: glyph.c:7: draw: "
            "Assertion `width > 0' failed.",
        ),
        ("leave", "crash", "The process that read it ended with exit code 3."),
        ("interrupt", "crash", "The process that read it was ended by SIGINT."),
        (["raise", "what  is\nthis?"], "error", "ValueError: what is this?"),
        (["raise", "x" * 10_000], "error", "ValueError: xxx"),
        ("unfit", "error", "ValueError: unmarshallable object"),
    ],
)
@pytest.mark.unmeasured
def test_a_job_that_fails_costs_only_itself(
    workers: WorkerPool, deed: object, kind: str, detail: str
) -> None:
    results = run(workers, echo(1), echo(2), deed, echo(3), deed, echo(4))
    assert [each for each in results if isinstance(each, JobAnswer)] == [
        JobAnswer(value) for value in (1, 2, 3, 4)
    ]
    assert failures(results) == ["", "", kind, "", kind, ""]
    for number in (2, 4):
        failure = results[number]
        assert isinstance(failure, JobFailure)
        assert failure.detail.startswith(detail)
        assert len(failure.detail) <= 300


def test_a_read_that_blocks_is_given_up(workers: WorkerPool) -> None:
    results = run(workers, echo(1), "block", echo(2), budget=JobBudget(0.1, 100 * MB))
    assert results == [
        JobAnswer(1),
        JobFailure("silence", "Nothing came of it for 2 s."),
        JobAnswer(2),
    ]


@pytest.mark.nightly
@pytest.mark.unmeasured
@settings(max_examples=10)
@given(st.lists(st.sampled_from(["ok", "segfault", "leave", "recurse", "eat"]), max_size=12))
def test_every_job_has_its_own_result(deeds: list[str]) -> None:
    kinds = {"ok": "", "segfault": "crash", "leave": "crash", "recurse": "error", "eat": "memory"}
    workers = WorkerPool(DO)
    try:
        arguments = [echo(n) if deed == "ok" else deed for n, deed in enumerate(deeds)]
        results = run(workers, *arguments)
    finally:
        workers.close()
    assert failures(results) == [kinds[deed] for deed in deeds]
    assert [each.value for each in results if isinstance(each, JobAnswer)] == [
        n for n, deed in enumerate(deeds) if deed == "ok"
    ]


def test_each_job_has_the_whole_budget_to_itself(workers: WorkerPool) -> None:
    sizes = [["take", 60 * MB]] * 5
    assert run(workers, *sizes) == [JobAnswer(60 * MB)] * 5
    large = JobBudget(0.5, 300 * MB)
    assert run(workers, ["take", 200 * MB], budget=large) == [JobAnswer(200 * MB)]
    assert failures(run(workers, ["take", 200 * MB])) == ["memory"]


def test_a_process_killed_from_outside_is_not_the_fault_of_the_file(
    workers: WorkerPool, tmp_path: Path
) -> None:
    results = run(workers, echo(1), ["die once", str(tmp_path / "marker")], echo(2))
    assert results == [JobAnswer(1), JobAnswer("done"), JobAnswer(2)]


def test_large_answers_and_more_jobs_than_pipes_hold(workers: WorkerPool) -> None:
    texts = ["x" * 3_000_000, *(f"{number:0500}" for number in range(3000)), "y" * 3_000_000]
    asked = 0

    def jobs() -> Iterator[Job]:
        nonlocal asked
        for text in texts:
            asked += 1
            yield Job(echo(text), len(text), JobBudget(5.0, 300 * MB))

    for number, result in enumerate(workers.run(jobs())):
        assert result == JobAnswer(texts[number])
        assert asked - number <= pool_module.AHEAD_JOBS
    assert asked == len(texts)


def test_what_a_library_prints_comes_between_no_answers(workers: WorkerPool) -> None:
    assert run(workers, "print", echo(1)) == [JobAnswer(""), JobAnswer(1)]


@pytest.mark.unmeasured
def test_the_process_has_nothing_of_what_it_does_not_need(workers: WorkerPool) -> None:
    found = facts(workers)
    assert found["directory"] == "/"
    assert found["session"] == found["pid"]
    assert found["interrupt"]
    assert found["core"] == 0
    assert all(Path(path).is_absolute() for path in found["path"])
    assert not {"sqlite3", "numpy", "pydantic", "site"} & set(found["modules"])


def test_modules_in_the_working_directory_are_not_run(tmp_path: Path) -> None:
    """An index run inside a stranger's vault must not execute what lies there."""
    for name in ("marshal", "select", "dataclasses", "qmd", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    code = """
import os, sys
sys.path.remove("")  # the installed command has no such entry
os.chdir(sys.argv[1])
from qmd.system.worker.jobs import JobBudget, Job
from qmd.system.worker.pool import WorkerPool
workers = WorkerPool("qmd.system.worker.child:frame")
print(list(workers.run([Job(b"x", 1, JobBudget(5, 10**8))])), workers.problem)
"""
    assert child.run(code, tmp_path) == r"[JobAnswer(value=b'\x01\x00\x00\x00x')] None"


def test_an_idle_process_ends_and_the_next_job_starts_another() -> None:
    workers = WorkerPool(DO, idle_s=0.05)
    try:
        pid = facts(workers)["pid"]
        until(lambda: not _exists(pid), "the idle process goes on")
        assert facts(workers)["pid"] != pid
    finally:
        workers.close()


def test_two_threads_do_not_wait_for_each_other(workers: WorkerPool, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    results: list[JobResult] = []
    job = Job(["read", str(fifo)], 1, JobBudget(60, 100 * MB))
    thread = threading.Thread(target=lambda: results.extend(workers.run([job])))
    thread.start()
    with fifo.open("w") as file:  # opens when the other end is open
        pid = facts(workers)["pid"]
        file.write("something")
    thread.join()
    [result] = results
    assert isinstance(result, JobAnswer)
    assert result.value[1] == "something"
    assert result.value[0] != pid


def test_a_run_that_is_given_up_leaves_nothing_behind(workers: WorkerPool) -> None:
    pid = facts(workers)["pid"]
    results = workers.run(Job(echo(number), 1, SMALL) for number in range(3))
    assert next(results) == JobAnswer(0)
    results.close()
    until(lambda: not _exists(pid), "the process goes on")
    assert run(workers, echo(2)) == [JobAnswer(2)]


def test_who_waits_can_give_up(workers: WorkerPool) -> None:
    class EnoughError(Exception):
        pass

    def waiting() -> None:
        raise EnoughError

    pid = facts(workers)["pid"]
    with pytest.raises(EnoughError):
        list(workers.run([Job("sleep", 1, SMALL)], waiting))
    until(lambda: not _exists(pid), "the process sleeps on")


def test_a_forked_process_has_workers_of_its_own(workers: WorkerPool) -> None:
    pid = facts(workers)["pid"]
    reading, writing = os.pipe()
    forked = os.fork()
    if not forked:
        try:
            os.write(writing, str(facts(workers)["pid"]).encode())
            workers.close()
        finally:
            os._exit(0)
    os.waitpid(forked, 0)
    other = int(os.read(reading, 100))
    assert other != pid
    assert facts(workers)["pid"] == pid
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("deed", ["spin", "sleep"])
def test_the_process_dies_with_its_parent(ending: signal.Signals, deed: str) -> None:
    code = f"""
import sys
from qmd.system.worker.jobs import JobBudget, Job
from qmd.system.worker.pool import WorkerPool
workers = WorkerPool({DO!r})
budget = JobBudget(1000, 10**9)
[facts] = workers.run([Job("facts", 1, budget)])
print(facts.value["pid"], flush=True)
list(workers.run([Job({deed!r}, 1, budget)]))
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=child.REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with parent:
        assert parent.stdout is not None
        worker = child.Stranger(int(parent.stdout.readline()))
        parent.send_signal(ending)
        worker.wait()


def test_where_no_process_starts_the_work_is_done_here_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    workers = WorkerPool(DO)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python-that-is-not-there"))
    here = facts(workers)
    assert here["pid"] == os.getpid()
    assert workers.problem is not None and "does not start" in workers.problem
    assert failures(run(workers, "recurse", echo(1))) == ["error", ""]


def test_a_program_that_is_no_python_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = WorkerPool(DO)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert facts(workers)["pid"] == os.getpid()
    assert workers.problem is not None and "no Python interpreter" in workers.problem


def test_a_process_that_ends_before_it_is_ready_is_a_process_that_cannot_start(
    tmp_path: Path,
) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    workers = WorkerPool(DO)
    code = """
import os, sys
from qmd.system.worker.jobs import JobBudget, Job
from qmd.system.worker.pool import WorkerPool
sys.executable = sys.argv[1]
workers = WorkerPool("tests.support.bad_jobs:do")
[result] = workers.run([Job("facts", 1, JobBudget(5, 10**8))])
print(result.value["pid"] == os.getpid(), workers.problem)
"""
    assert child.run(code, tmp_path / "python3").startswith("True Each ends, or hangs, before")
    workers.close()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

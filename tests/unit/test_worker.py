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

from qmd.system.worker import workers as workers_module
from qmd.system.worker.jobs import MB, Answer, Budget, Failure, Job, Result
from qmd.system.worker.workers import Workers
from tests.support import child
from tests.support.live import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")

DO = "tests.support.bad_jobs:do"
SMALL = Budget(cpu_s=0.5, memory_bytes=100 * MB)


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(DO, silence_s=1.0)
    yield made
    made.close()


def run(workers: Workers, *arguments: object, budget: Budget = SMALL) -> list[Result]:
    return list(workers.run(Job(each, 10, budget) for each in arguments))


def echo(value: object) -> list[object]:
    return ["echo", value]


def facts(workers: Workers) -> dict[str, Any]:
    [result] = run(workers, "facts")
    assert isinstance(result, Answer)
    found: dict[str, Any] = result.value
    return found


def failures(results: Sequence[Result]) -> list[str]:
    """Their kinds, and "" for an answer."""
    return [each.kind if isinstance(each, Failure) else "" for each in results]


def test_jobs_are_answered_in_order_by_one_process(workers: Workers) -> None:
    values = [None, True, 7, 2**80, 1.5, "text 中文 \ud800", b"\0", (1, [2, {"a": "b"}])]
    assert run(workers, *map(echo, values)) == [Answer(value) for value in values]
    first = facts(workers)["pid"]
    assert facts(workers)["pid"] == first != os.getpid()


@pytest.mark.parametrize(
    ("deed", "kind", "detail"),
    [
        ("spin", "cpu", "It took more than 0.5 s of CPU time."),
        ("eat", "memory", "It took more than 100 MB of memory."),
        ("recurse", "error", "RecursionError: maximum recursion depth exceeded"),
        ("segfault", "crash", "The process that read it was ended by SIGSEGV."),
        ("abort", "crash", "The process that read it was ended by SIGABRT."),
        ("leave", "crash", "The process that read it ended with exit code 3."),
        ("interrupt", "crash", "The process that read it was ended by SIGINT."),
        (["raise", "what  is\nthis?"], "error", "ValueError: what is this?"),
        (["raise", "x" * 10_000], "error", "ValueError: xxx"),
        ("unfit", "error", "ValueError: unmarshallable object"),
    ],
)
def test_a_job_that_fails_costs_only_itself(
    workers: Workers, deed: object, kind: str, detail: str
) -> None:
    results = run(workers, echo(1), echo(2), deed, echo(3), deed, echo(4))
    assert [each for each in results if isinstance(each, Answer)] == [
        Answer(value) for value in (1, 2, 3, 4)
    ]
    assert failures(results) == ["", "", kind, "", kind, ""]
    for number in (2, 4):
        failure = results[number]
        assert isinstance(failure, Failure)
        assert failure.detail.startswith(detail)
        assert len(failure.detail) <= 300


def test_a_read_that_blocks_is_given_up(workers: Workers) -> None:
    results = run(workers, echo(1), "block", echo(2), budget=Budget(0.1, 100 * MB))
    assert results == [Answer(1), Failure("silence", "Nothing came of it for 2 s."), Answer(2)]


@settings(max_examples=10)
@given(st.lists(st.sampled_from(["ok", "segfault", "leave", "recurse", "eat"]), max_size=12))
def test_every_job_has_its_own_result(deeds: list[str]) -> None:
    kinds = {"ok": "", "segfault": "crash", "leave": "crash", "recurse": "error", "eat": "memory"}
    workers = Workers(DO)
    try:
        arguments = [echo(n) if deed == "ok" else deed for n, deed in enumerate(deeds)]
        results = run(workers, *arguments)
    finally:
        workers.close()
    assert failures(results) == [kinds[deed] for deed in deeds]
    assert [each.value for each in results if isinstance(each, Answer)] == [
        n for n, deed in enumerate(deeds) if deed == "ok"
    ]


def test_each_job_has_the_whole_budget_to_itself(workers: Workers) -> None:
    sizes = [["take", 60 * MB]] * 5
    assert run(workers, *sizes) == [Answer(60 * MB)] * 5
    large = Budget(0.5, 300 * MB)
    assert run(workers, ["take", 200 * MB], budget=large) == [Answer(200 * MB)]
    assert failures(run(workers, ["take", 200 * MB])) == ["memory"]


def test_a_process_killed_from_outside_is_not_the_fault_of_the_file(
    workers: Workers, tmp_path: Path
) -> None:
    results = run(workers, echo(1), ["die once", str(tmp_path / "marker")], echo(2))
    assert results == [Answer(1), Answer("done"), Answer(2)]


def test_large_answers_and_more_jobs_than_pipes_hold(workers: Workers) -> None:
    texts = ["x" * 3_000_000, *(f"{number:0500}" for number in range(3000)), "y" * 3_000_000]
    asked = 0

    def jobs() -> Iterator[Job]:
        nonlocal asked
        for text in texts:
            asked += 1
            yield Job(echo(text), len(text), Budget(5.0, 300 * MB))

    for number, result in enumerate(workers.run(jobs())):
        assert result == Answer(texts[number])
        assert asked - number <= workers_module.AHEAD_JOBS
    assert asked == len(texts)


def test_what_a_library_prints_comes_between_no_answers(workers: Workers) -> None:
    assert run(workers, "print", echo(1)) == [Answer(""), Answer(1)]


def test_the_process_has_nothing_of_what_it_does_not_need(workers: Workers) -> None:
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
from qmd.system.worker.jobs import Budget, Job
from qmd.system.worker.workers import Workers
workers = Workers("qmd.system.worker.child:frame")
print(list(workers.run([Job(b"x", 1, Budget(5, 10**8))])), workers.problem)
"""
    assert child.run(code, tmp_path) == r"[Answer(value=b'\x01\x00\x00\x00x')] None"


def test_an_idle_process_ends_and_the_next_job_starts_another() -> None:
    workers = Workers(DO, idle_s=0.05)
    try:
        pid = facts(workers)["pid"]
        until(lambda: not _exists(pid), "the idle process goes on")
        assert facts(workers)["pid"] != pid
    finally:
        workers.close()


def test_two_threads_do_not_wait_for_each_other(workers: Workers, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    results: list[Result] = []
    job = Job(["read", str(fifo)], 1, Budget(60, 100 * MB))
    thread = threading.Thread(target=lambda: results.extend(workers.run([job])))
    thread.start()
    with fifo.open("w") as file:  # opens when the other end is open
        pid = facts(workers)["pid"]
        file.write("something")
    thread.join()
    [result] = results
    assert isinstance(result, Answer)
    assert result.value[1] == "something"
    assert result.value[0] != pid


def test_a_run_that_is_given_up_leaves_nothing_behind(workers: Workers) -> None:
    pid = facts(workers)["pid"]
    results = workers.run(Job(echo(number), 1, SMALL) for number in range(3))
    assert next(results) == Answer(0)
    results.close()
    until(lambda: not _exists(pid), "the process goes on")
    assert run(workers, echo(2)) == [Answer(2)]


def test_who_waits_can_give_up(workers: Workers) -> None:
    class EnoughError(Exception):
        pass

    def waiting() -> None:
        raise EnoughError

    pid = facts(workers)["pid"]
    with pytest.raises(EnoughError):
        list(workers.run([Job("sleep", 1, SMALL)], waiting))
    until(lambda: not _exists(pid), "the process sleeps on")


def test_a_forked_process_has_workers_of_its_own(workers: Workers) -> None:
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
from qmd.system.worker.jobs import Budget, Job
from qmd.system.worker.workers import Workers
workers = Workers({DO!r})
budget = Budget(1000, 10**9)
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
    workers = Workers(DO)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python-that-is-not-there"))
    here = facts(workers)
    assert here["pid"] == os.getpid()
    assert workers.problem is not None and "does not start" in workers.problem
    assert failures(run(workers, "recurse", echo(1))) == ["error", ""]


def test_a_program_that_is_no_python_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(DO)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert facts(workers)["pid"] == os.getpid()
    assert workers.problem is not None and "no Python interpreter" in workers.problem


def test_a_process_that_ends_before_it_is_ready_is_a_process_that_cannot_start(
    tmp_path: Path,
) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    workers = Workers(DO)
    code = """
import os, sys
from qmd.system.worker.jobs import Budget, Job
from qmd.system.worker.workers import Workers
sys.executable = sys.argv[1]
workers = Workers("tests.support.bad_jobs:do")
[result] = workers.run([Job("facts", 1, Budget(5, 10**8))])
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

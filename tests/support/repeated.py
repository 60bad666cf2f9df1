"""
Find the tests whose branches others take.

Coverage doubles what a test costs, so it does not count them: tests/conftest.py marks those that
stand in tests/repeated.txt ``unmeasured``. This writes the file anew, in twenty minutes:

    .venv-tests/bin/python -m tests.support.repeated

A test that is not in it is counted, so nothing has to be done for a new one.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import coverage
import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/repeated.txt"
#: Tests that cost less, in seconds of CPU, are counted: they are many, and it costs little.
LEAST_S = 0.1
#: Names the folder for what each test has cost.
_COSTS = "QMD_COSTS_OF_TESTS"
_CONFIG = "COVERAGE_PROCESS_CONFIG"
_HEAD = """\
# Tests each of whose branches is taken by two others: coverage does not count them.
# tests/support/repeated.py writes this file.
"""


def names() -> frozenset[str]:
    """The tests of the file, as ``tests/unit/test_a.py::test_b``."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def name_of(item: pytest.Item) -> str:
    """That of all cases of a test."""
    return item.nodeid.partition("[")[0]


def repeated(taken: Mapping[str, set[object]], costs: Mapping[str, float]) -> list[str]:
    """
    The tests that can be left out: each branch that one takes is taken by two that stay.

    Not by one alone, for what a process takes before it is killed differs from run to run.

    Args:
        taken: The branches that each test takes.
        costs: What each test costs, in seconds of CPU; the dearest are left out first.
    """
    takers = Counter(branch for branches in taken.values() for branch in branches)
    found = []
    for test in sorted(costs, key=lambda test: (-costs[test], test)):
        if test not in taken or costs[test] < LEAST_S:
            continue
        if all(takers[branch] > 2 for branch in taken[test]):
            takers.subtract(taken[test])
            found.append(test)
    return sorted(found)


# --- as a plugin of pytest: who takes which branch, and what it costs ----------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    start = sum(os.times()[:4])
    result = yield
    with (Path(os.environ[_COSTS]) / f"{os.getpid()}.costs").open("a", encoding="utf-8") as file:
        file.write(f"{sum(os.times()[:4]) - start:.3f} {name_of(item)}\n")
    return result  # type: ignore[return-value]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tell coverage which test it is, in this process and in those that it starts."""
    measured = coverage.Coverage.current()
    if measured is None or _CONFIG not in os.environ:
        return
    measured.switch_context(name_of(item))
    config = json.loads(base64.b64decode(os.environ[_CONFIG])) | {"context": name_of(item)}
    os.environ[_CONFIG] = base64.b64encode(json.dumps(config).encode()).decode()


# --- the command ----------------------------------------------------------------------------


def _branches(database: Path) -> dict[str, set[object]]:
    found: dict[str, set[object]] = defaultdict(set)
    query = "SELECT context, file_id, fromno, tono FROM arc JOIN context ON id = context_id"
    with closing(sqlite3.connect(database)) as connection:
        for test, *branch in connection.execute(query):
            found[test].add(tuple(branch))
    return found


def _costs(folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for file in folder.glob("*.costs"):
        for line in file.read_text(encoding="utf-8").splitlines():
            seconds, _, test = line.partition(" ")
            found[test] += float(seconds)
    return found


def main() -> None:
    FILE.write_text(_HEAD, encoding="utf-8")
    with TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, _COSTS: name, "COVERAGE_FILE": str(folder / ".coverage")}
        program = [sys.executable, "-m", "coverage"]
        tests = ["-p", __spec__.name, "-m", "not nightly and not unmeasured", "-q", "-n", "3"]
        subprocess.run(
            [*program, "run", "-m", "pytest", *tests], cwd=ROOT, env=environment, check=True
        )
        subprocess.run([*program, "combine", "--quiet"], cwd=ROOT, env=environment, check=True)
        taken = _branches(folder / ".coverage")
        taken.pop("", None)  # what was no test's
        found = repeated(taken, _costs(folder))
    FILE.write_text(_HEAD + "".join(f"{test}\n" for test in found), encoding="utf-8")
    print(f"{len(found)} of {len(taken)} tests take branches that others take.")


if __name__ == "__main__":
    main()

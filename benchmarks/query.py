"""
How long a question takes, warm: `search`, `vsearch` and `query` in one process.

    python benchmarks/query.py DATABASE FIXTURE [--beside PYTHON DATABASE] [--rounds 3]

The questions of a fixture of `qmd bench`, each once after ten to warm up; milliseconds on the
clock and of CPU. Each round is a process of its own, and a question counts with its shortest time.
With `--beside` the rounds alternate with those of another version, that is, of the Python of its
environment, on a database that it has made.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from measure import Row, percentile, report, run

WARM = 10
SEARCHES = ("search", "vsearch", "query")
Times = dict[str, list[float]]
"""Milliseconds of each question, by search and clock."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("database", type=Path)
    parser.add_argument("fixture", type=Path)
    parser.add_argument("--beside", nargs=2, metavar=("PYTHON", "DATABASE"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        print(json.dumps(probe(arguments.database, arguments.fixture, arguments.limit)))
        return

    versions = [(sys.executable, str(arguments.database))]
    if arguments.beside:
        versions.append(tuple(arguments.beside))
    rounds: list[list[Times]] = [[] for _ in versions]
    for _ in range(arguments.rounds):
        for (python, database), times in zip(versions, rounds, strict=True):
            command = [python, __file__, "--probe", database, arguments.fixture]
            done = run([*command, "--limit", str(arguments.limit)])
            times.append(json.loads(done.stdout))

    best = [shortest(times) for times in rounds]
    questions = len(next(iter(best[0].values())))
    rows = []
    for name in SEARCHES:
        for what in ("", ", CPU"):
            for percent in (50, 95):
                figures = [percentile(times[name + what], percent) for times in best]
                rows.append(
                    Row(
                        f"{name}{what}, p{percent}",
                        figures[0],
                        figures[1] if arguments.beside else None,
                        "ms",
                        "the other version" if arguments.beside else "",
                        count=f"{questions} questions",
                    )
                )
    # Paths of this machine mean nothing elsewhere.
    sys.argv[1:] = [Path(argument).name for argument in sys.argv[1:]]
    report(f"query-{arguments.fixture.stem}", rows, {"ours": rounds[0], "beside": rounds[1:]})


def shortest(rounds: list[Times]) -> Times:
    """Of each question the shortest time of all rounds; other programs only make it longer."""
    return {
        what: [min(times) for times in zip(*(one[what] for one in rounds), strict=True)]
        for what in rounds[0]
    }


def probe(database: Path, fixture: Path, limit: int) -> Times:
    """The times of one process."""
    from qmd import KnowledgeBase

    entries = json.loads(fixture.read_text(encoding="utf-8"))["queries"]
    questions = [entry["query"] for entry in entries]
    times: Times = {}
    with KnowledgeBase.open(database) as kb:
        for name in SEARCHES:
            ask = getattr(kb, name)
            for question in questions[:WARM]:
                ask(question, limit=limit)
            for question in questions:
                began, spent = time.perf_counter(), time.process_time()
                ask(question, limit=limit)
                cpu, clock = time.process_time() - spent, time.perf_counter() - began
                times.setdefault(name, []).append(round(clock * 1000, 2))
                times.setdefault(name + ", CPU", []).append(round(cpu * 1000, 2))
    return times


if __name__ == "__main__":
    main()

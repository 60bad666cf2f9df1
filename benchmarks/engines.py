"""
SQLite and PostgreSQL beside each other: hits, nDCG@10, and how long a question takes, warm.

    python benchmarks/engines.py DATABASE URL FIXTURE [--rounds 2] [--limit 10]

DATABASE is a SQLite file with vectors, which is brought up to date with its folders. URL is a
database on a server, to which the file is copied. The questions are those of a fixture of
`qmd bench`; if it brings documents, they are written into a folder beside DATABASE, which is made
of them. Each question goes to both engines in turn, after ten to warm up, and counts with its
shortest time: milliseconds on the clock.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from measure import Row, percentile, report

from qmd import KnowledgeBase
from qmd.evaluate import fixtures
from qmd.evaluate.fixtures import Judgments
from qmd.evaluate.run import run
from qmd.values.location import ServerDatabase, database_location

WARM = 10
SEARCHES = ("search", "vsearch", "query")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("database", type=Path)
    parser.add_argument("url")
    parser.add_argument("fixture", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=int, default=10)
    arguments = parser.parse_args()
    location = database_location(arguments.url)
    if not isinstance(location, ServerDatabase):
        parser.error("the second database must be a URL")
    judgments = fixtures.read(arguments.fixture, None)
    ids = fill(arguments.database, arguments.url, judgments)
    questions = [question.text for question in judgments.questions]
    with (
        KnowledgeBase.open(arguments.database) as sqlite,
        KnowledgeBase.open(location) as postgres,
    ):
        engines = {"SQLite": sqlite, "PostgreSQL": postgres}
        rows, raw, notes = [], {}, []
        qualities = {
            engine: run(kb, judgments, systems=SEARCHES, ids=ids).systems
            for engine, kb in engines.items()
        }
        for name in SEARCHES:
            times, same = measure(engines, name, questions, arguments.rounds, arguments.limit)
            raw[name] = times
            for percent in (50, 95):
                ours, reference = (percentile(times[engine], percent) for engine in reversed(times))
                count = f"{len(questions)} questions"
                rows.append(
                    Row(f"{name}, p{percent}", ours, reference, "ms", "SQLite", None, count)
                )
            ours, reference = (
                qualities[engine][name].means["nDCG@10"] for engine in ("PostgreSQL", "SQLite")
            )
            rows.append(Row(f"{name}, nDCG@10", ours, reference, "", "SQLite"))
            notes.append(
                f"{name}: the same {arguments.limit} hits in the same order for {same} of"
                f" {len(questions)} questions."
            )
    # Paths of this machine mean nothing elsewhere, and a URL may have a password.
    sys.argv[1:3] = [arguments.database.name, "postgresql://…"]
    sys.argv[3] = arguments.fixture.name
    report(f"engines-{arguments.fixture.stem}", rows, raw, notes)


def measure(
    engines: dict[str, KnowledgeBase], name: str, questions: list[str], rounds: int, limit: int
) -> tuple[dict[str, list[float]], int]:
    """The times by engine, and for how many questions both give the same hits in the same order."""
    times = {engine: [float("inf")] * len(questions) for engine in engines}
    same = 0
    for round_number in range(-1, rounds):  # the first is to warm up
        for number, question in enumerate(questions[:WARM] if round_number < 0 else questions):
            answers = []
            for engine, kb in engines.items():
                began = time.perf_counter()
                reply = getattr(kb, name)(question, limit=limit)
                took_ms = (time.perf_counter() - began) * 1000
                answers.append([hit.file for hit in reply.hits])
                if round_number >= 0:
                    times[engine][number] = min(times[engine][number], round(took_ms, 2))
            same += round_number == 0 and answers[0] == answers[1]
    return times, same


def fill(database: Path, url: str, judgments: Judgments) -> dict[str, str] | None:
    """
    Bring the file up to date, and copy it to the server.

    Returns:
        Judged id → ``collection/path``, if the judgments brought the documents.
    """
    brought = judgments.documents
    folder = database.absolute().with_suffix("")
    ids = None if brought is None else fixtures.write(brought, folder)
    with KnowledgeBase.open(database, create=brought is not None) as kb:
        if brought is not None and not kb.collections():
            kb.add_collection(folder, name=fixtures.COLLECTION)
        kb.index()
        if brought is not None:
            kb.embed()
        began = time.perf_counter()
        kb.copy_to(url)
        print(f"copied to the server in {time.perf_counter() - began:.1f} s")
    return ids


if __name__ == "__main__":
    main()

"""
How long the questions about the graph take: links, backlinks, orphans, broken, tags, recent.

    python benchmarks/graph.py [--documents 100000] [--rounds 5]

Five links a note, of all usual forms. Beside each figure, of the same run: a plain SQL count of all
links of the database.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from measure import Row, report

from qmd import KnowledgeBase
from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.store import open_store
from qmd.values import FileState, NewDocument

COUNT = "SELECT count(*), count(DISTINCT target_key) FROM links"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "index.sqlite"
        fill(path, arguments.documents)
        with closing(sqlite3.connect(path)) as plain, KnowledgeBase.open(path) as kb:
            reference = median(lambda: plain.execute(COUNT).fetchone(), arguments.rounds)
            questions: dict[str, Callable[[], object]] = {
                "links": lambda: kb.links("Note 101.md"),
                "backlinks": lambda: kb.backlinks("Note 101.md"),
                "tags": kb.tags,
                "recent": kb.recent,
                "orphans": kb.orphans,
                "broken": kb.broken_links,
            }
            rows = [
                Row(what, median(ask, arguments.rounds), reference, "ms", "a count of all links")
                for what, ask in questions.items()
            ]
    report("graph", rows, {"documents": arguments.documents, "rounds": arguments.rounds})


def median(ask: Callable[[], object], rounds: int) -> float:
    """The median of several calls, in ms, after one that is not counted."""
    ask()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        ask()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def fill(path: Path, count: int) -> None:
    chance = random.Random(1)
    with closing(open_store(path, create=True)) as store:
        notes = store.write(
            lambda writer: (
                writer.collections.add(name="notes", path="/notes", pattern="**/*.md", ignore=[]).id
            )
        )
        for start in range(0, count, 2000):
            numbers = range(start, min(count, start + 2000))
            batch = [(note(chance, number, count), None) for number in numbers]
            store.write(lambda writer, batch=batch: writer.files.put_all(notes, batch))


def note(chance: random.Random, number: int, count: int) -> NewDocument:
    links = " and ".join(link(chance, count) for _ in range(5))
    tags = f"#plain{chance.randrange(300)} #root{chance.randrange(20)}/sub{chance.randrange(20)}"
    data = f"# Note {number}\n\n{tags}\n\nA line with {links}.\n".encode()
    path = place(number)
    state = FileState(len(data), 1_700_000_000_000_000_000 + number * 10**9, 1, 1)
    return new_document(path, parse_document(path, data), hashlib.sha256(data).hexdigest(), state)


def place(number: int) -> str:
    return f"area{number % 50}/topic{number % 1000}/Note {number}.md"


def link(chance: random.Random, count: int) -> str:
    target = int(count * chance.random() ** 2)
    forms = (
        f"[[Note {target}]]",
        f"[[Note {target}]]",
        f"[[{place(target).removesuffix('.md')}|shown]]",
        f"[md](../../{place(target).replace(' ', '%20')})",
        f"[[Note {target}#Note {target}]]",
        f"[[Missing {target}]]",
    )
    return chance.choices(forms, weights=(30, 25, 15, 15, 10, 5))[0]


if __name__ == "__main__":
    main()

"""
How the searches and indexing of PostgreSQL and SQLite grow with the same generated documents.

    python benchmarks/engines_scale.py URL [--sizes 10000,100000] [--words 130] [--questions 10]

URL is an empty database on a server; each size gets a schema of it. `scale_corpus.py` makes the
documents and the questions of each kind. `qmd index` fills both engines. Each search goes to both
in turn, warm, and counts with the shorter of two times: milliseconds on the clock, as the server's
work is in another process.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measure
from measure import Row, percentile, report
from scale_corpus import Corpus, make_files

from qmd import KnowledgeBase

PERCENTS = (50, 95, 99)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("url")
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--words", type=int, default=130, help="in a document, on average")
    parser.add_argument("--questions", type=int, default=10, help="of each kind")
    parser.add_argument("--work", type=Path, help="keeps the documents and files for next time")
    arguments = parser.parse_args()
    rows: list[Row] = []
    raw: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        for size in map(int, arguments.sizes.split(",")):
            figures = measure_size(
                work / str(size), arguments.url, size, arguments.words, arguments.questions
            )
            raw[str(size)] = figures
            for what, (ours, reference) in figures.items():
                unit = what.rpartition(", ")[2]
                name = what.rpartition(", ")[0]
                rows.append(Row(name, ours, reference, unit, "SQLite", None, f"{size:,} documents"))
    sys.argv[1] = "postgresql://…"
    report("engines-scale", rows, raw, [])


def measure_size(
    root: Path, url: str, size: int, words: int, questions: int
) -> dict[str, tuple[float, float]]:
    """What → the figures of PostgreSQL and of SQLite."""
    corpus = Corpus(words)
    notes = root / "notes"
    root.mkdir(parents=True, exist_ok=True)
    make_files(notes, size, corpus)
    databases = {"PostgreSQL": in_schema(url, f"qmd_{size}"), "SQLite": str(root / "e.sqlite")}
    figures: dict[str, list[float]] = {}
    for database in databases.values():
        command = measure.qmd(database, "collection", "add", notes, "--name", "notes", "--no-index")
        measure.run(command)
        for name in ("index, s", "index again, s"):
            took = measure.run(measure.qmd(database, "index", "--no-embed")).wall_s
            figures.setdefault(name, []).append(took)
    changed = next(notes.rglob("*.md"))
    changed.write_text(changed.read_text() + "\nOne more line.\n")
    for database in databases.values():
        took = measure.run(measure.qmd(database, "index", "--no-embed")).wall_s
        figures.setdefault("index, one file changed, s", []).append(took)
    print(f"{size:,}: " + ", ".join(f"{k} {v[0]:.1f}/{v[1]:.1f}" for k, v in figures.items()))
    with (
        KnowledgeBase.open(databases["PostgreSQL"]) as postgres,
        KnowledgeBase.open(databases["SQLite"]) as sqlite,
    ):
        every: list[list[float]] = [[], []]
        for kind, texts in corpus.questions(questions).items():
            times: list[list[float]] = [[], []]
            for text in texts:
                for number, kb in enumerate((postgres, sqlite)):
                    kb.search(text)  # reads its pages
                    times[number].append(min(timed(kb, text), timed(kb, text)))
            for number in range(2):
                every[number] += times[number]
            for percent in PERCENTS[:2]:
                figures[f"search, {kind}, p{percent}, ms"] = [percentile(t, percent) for t in times]
        for percent in PERCENTS:
            figures[f"search, all kinds, p{percent}, ms"] = [percentile(t, percent) for t in every]
    return {name: (ours, reference) for name, (ours, reference) in figures.items()}


def in_schema(url: str, schema: str) -> str:
    """The URL of a new schema of the database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema},public"


def timed(kb: KnowledgeBase, text: str) -> float:
    began = time.perf_counter()
    kb.search(text)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()

"""
What a condition on a property costs, in a database of 100,000 documents.

    python benchmarks/properties.py [--documents 100000] [--rounds 20] [--work DIR]

A filter's time is that of counting the documents that meet it. Beside it, by turns, the same
question to a table made for it: one column for each property, one value for each document, an index
for each column. The two must give the same count. Searches are measured with and without the
condition.
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
from datetime import date, timedelta
from pathlib import Path

from measure import Row, report

from qmd import KnowledgeBase
from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.store import Store, open_store
from qmd.values import FileState, Filters

TARGET_MS = 20.0
AT_ONCE = 2000
WORDS = [
    "river",
    "stone",
    "boat",
    "light",
    "paper",
    "engine",
    "market",
    "garden",
    "winter",
    "signal",
    "copper",
    "theory",
]

#: The condition, and the same in SQL.
CONDITIONS = {
    "status:draft": "status = 'draft'",
    "status:archived": "status = 'archived'",
    "rating:>4": "rating > 4",
    "due:<2021-02-01": "due < '2021-02-01'",
    "due:2026-12": "due >= '2026-12-01' AND due <= '2026-12-31'",
    'author:"author 17"': "author = 'author 17'",
    "nothing:*": "status = ''",
}
SEARCHES = ("river boat", "river boat status:draft", "river boat rating:>4", "status:archived")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--work", type=Path, help="keep the databases here")
    arguments = parser.parse_args()
    rows: list[Row] = []
    raw: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = (arguments.work or Path(scratch)).resolve()
        database, plain = folder / "index.sqlite", folder / "plain.sqlite"
        if not database.exists():
            fill(database, plain, arguments.documents)
        reference = sqlite3.connect(plain)
        store = open_store(database, read_only=True)
        for condition, sql in CONDITIONS.items():
            rows.append(compare(store, reference, condition, sql, arguments.rounds, raw))
        store.close()
        with KnowledgeBase.open(database, read_only=True) as kb:
            for query in SEARCHES:
                seconds = timed(lambda query=query: kb.search(query), arguments.rounds)
                raw[f"search {query}"] = seconds
                bare = statistics.median(raw[f"search {SEARCHES[0]}"])  # type: ignore[arg-type]
                rows.append(
                    Row(
                        f"search {query}",
                        statistics.median(seconds) * 1000,
                        bare * 1000,
                        "ms",
                        "river boat",
                        count=f"{len(kb.search(query, limit=None).hits):,} hits",
                    )
                )
    slowest = max(row.ours for row in rows[: len(CONDITIONS)])
    report("properties", rows, raw, [f"target: ≤ {TARGET_MS:g} ms; slowest filter {slowest:.1f}"])


def fill(database: Path, plain: Path, count: int) -> None:
    """Make the same documents in both databases."""
    chance = random.Random(12)
    reference = sqlite3.connect(plain)
    reference.execute(
        "CREATE TABLE plain (id INTEGER PRIMARY KEY, status, rating REAL, due, author)"
    )
    for column in ("status", "rating", "due", "author"):
        reference.execute(f"CREATE INDEX plain_{column} ON plain ({column})")
    store = open_store(database, create=True)
    collection = store.write(
        lambda writer: writer.collections.add(name="n", path="/n", pattern="**", ignore=[])
    )
    for start in range(0, count, AT_ONCE):
        documents, values = [], []
        for number in range(start, min(start + AT_ONCE, count)):
            status = chance.choices(
                ("draft", "review", "done", "archived"), weights=(20, 9, 70, 1)
            )[0]
            rating, author = chance.randint(0, 50) / 10, f"author {chance.randrange(500)}"
            due = (date(2021, 1, 1) + timedelta(days=chance.randrange(2400))).isoformat()
            values.append((status, rating, due, author))
            text = (
                f"---\nstatus: {status}\nrating: {rating}\ndue: {due}\nauthor: {author}\n"
                f"aliases: [note {number}]\n---\n# Note {number}\n\n"
                + " ".join(chance.choices(WORDS, k=60))
            )
            path, data = f"{number // 1000}/{number}.md", text.encode()
            state = FileState(len(data), 1_700_000_000_000_000_000 + number, number, 1)
            digest = hashlib.sha256(data).hexdigest()
            documents.append((new_document(path, parse_document(path, data), digest, state), None))
        ids = store.write(
            lambda writer, documents=documents: writer.files.put_all(collection.id, documents)
        )
        rows = [(document_id, *row) for document_id, row in zip(ids, values, strict=True)]
        reference.executemany("INSERT INTO plain VALUES (?, ?, ?, ?, ?)", rows)
    reference.commit()
    reference.close()
    store.close()


def compare(
    store: Store,
    reference: sqlite3.Connection,
    condition: str,
    sql: str,
    rounds: int,
    raw: dict[str, object],
) -> Row:
    def ours() -> int:
        with store.reading() as reader:
            selection = reader.select(Filters(properties=(condition,)))
            return reader.documents.count_selected(selection)

    def theirs() -> int:
        (count,) = reference.execute(f"SELECT count(*) FROM plain WHERE {sql}").fetchone()
        return int(count)

    assert ours() == theirs(), condition
    our_times, their_times = [], []
    for _ in range(rounds):
        our_times += timed(ours, 1)
        their_times += timed(theirs, 1)
    raw[condition] = {"qmd": our_times, "plain": their_times}
    return Row(
        condition,
        statistics.median(our_times) * 1000,
        statistics.median(their_times) * 1000,
        "ms",
        "a plain table",
        count=f"{ours():,} documents",
    )


def timed(work: Callable[[], object], rounds: int) -> list[float]:
    """The seconds of each round."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    main()

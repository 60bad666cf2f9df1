"""
Did indexing, starting, searching or the file become dearer?

    python benchmarks/guard.py           # exit code 1 if a figure is 10 % above the kept one
    python benchmarks/guard.py --keep    # keeps today's figures: a change is worth its price

Each figure is a ratio to what a bare Python does in the same run. The two take turns, and the least
of all rounds counts, because what else a machine has to do only adds time. A figure that is too
high is measured again before it is believed. From Python 3.10 to 3.13 the ratios differ by less
than a tenth. Those of CPU time may differ more on another processor than the one that they were
kept on, so they may be 50 % above them there.
"""

from __future__ import annotations

import argparse
import compileall
import json
import sys
import tempfile
from pathlib import Path

from measure import machine, qmd, run
from tree import make_tree

import qmd as package

KEPT = Path(__file__).with_name("kept.json")
NOTES = 600
#: A figure may grow by this share; one of CPU time by the second on another processor.
TOLERANCE, ELSEWHERE = 0.10, 0.50
FILE = "file, of the documents"
FEWEST_ROUNDS, MOST_ROUNDS = 3, 16
WORD = "project"
QUESTIONS = 200

#: Reads all notes, and makes a full-text index of them.
INDEX = """
import sqlite3, sys
from pathlib import Path
db = sqlite3.connect(sys.argv[2])
db.execute("CREATE VIRTUAL TABLE notes USING fts5(path, text)")
files = sorted(Path(sys.argv[1]).rglob("*.md"))
db.executemany("INSERT INTO notes VALUES (?, ?)", ((str(f), f.read_text("utf-8")) for f in files))
db.commit()
"""
#: Opens the database of qmd, and runs one statement.
SEARCH = """
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
sql = "SELECT rowid FROM z_documents_fts WHERE z_documents_fts MATCH ? ORDER BY rank LIMIT 10"
db.execute(sql, (sys.argv[2],)).fetchall()
"""
#: Prints how much more CPU time searches of a warm process take than their statements alone.
WARM = """
import sqlite3, sys, time
from qmd import KnowledgeBase
words = [row[0] for row in sqlite3.connect(sys.argv[1]).execute(
    "SELECT lower(title) FROM documents WHERE title <> '' ORDER BY id LIMIT ?", (sys.argv[2],))]
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
sql = ("SELECT d.title, d.text FROM z_documents_fts f JOIN documents d ON d.id = f.rowid"
       " WHERE z_documents_fts MATCH ? ORDER BY bm25(z_documents_fts) LIMIT 10")
def spent(ask):
    start = time.process_time()
    for title in words:
        ask(title)
    return time.process_time() - start
def bare(title):
    tokens = "".join(c if c.isalnum() else " " for c in title).split()
    db.execute(sql, [" OR ".join(f'"{token}"' for token in tokens)]).fetchall()
with KnowledgeBase.open(sys.argv[1], read_only=True) as kb:
    kb.search(words[0])
    print(min(spent(kb.search) for _ in range(3)) / min(spent(bare) for _ in range(3)))
"""


class Least:
    """The least cost of each thing so far, in CPU seconds, or as the ratio that it is."""

    def __init__(self) -> None:
        self._costs: dict[str, float] = {}

    def note(self, what: str, cost: float) -> None:
        self._costs[what] = min(cost, self._costs.get(what, cost))

    def figures(self) -> dict[str, float]:
        costs = self._costs
        return {
            "index, of a bare full-text index": costs["index"] / costs["bare index"],
            "`qmd search`, of a bare Python with one MATCH": costs["start"] / costs["bare search"],
            "warm search, of the statement alone": costs["warm"],
            FILE: costs["size"],
        }


def measure(notes: Path, work: Path, least: Least) -> None:
    """One round."""
    database, bare = work / "index.sqlite", work / "bare.sqlite"
    for file in [*work.glob("index.sqlite*"), *work.glob("bare.sqlite*")]:
        file.unlink()
    run(qmd(database, "collection", "add", notes, "--name", "notes", "--no-index"))
    least.note("index", run(qmd(database, "index", "--no-embed")).cpu_s)
    least.note("bare index", run([sys.executable, "-c", INDEX, notes, bare]).cpu_s)
    for _ in range(3):
        least.note("start", run(qmd(database, "search", WORD)).cpu_s)
        least.note("bare search", run([sys.executable, "-c", SEARCH, database, WORD]).cpu_s)
    warm = run([sys.executable, "-c", WARM, database, str(QUESTIONS)]).stdout
    least.note("warm", float(warm))
    documents = sum(file.stat().st_size for file in notes.rglob("*.md"))
    least.note("size", sum(file.stat().st_size for file in work.glob("index.sqlite*")) / documents)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--keep", action="store_true", help="keep the figures of this run")
    keep = parser.parse_args().keep
    record = json.loads(KEPT.read_text()) if KEPT.exists() else {"processor": "", "figures": {}}
    kept: dict[str, float] = record["figures"]
    processor = machine()["processor"]
    is_elsewhere = processor != record["processor"]
    most = {
        what: figure * (1 + (ELSEWHERE if is_elsewhere and what != FILE else TOLERANCE))
        for what, figure in kept.items()
    }
    # An installed program is compiled; a checkout is not, where Python may write no bytecode.
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)
    least = Least()
    with tempfile.TemporaryDirectory() as directory:
        notes, work = Path(directory, "notes"), Path(directory, "work")
        work.mkdir()
        make_tree(notes, NOTES)
        for number in range(1, MOST_ROUNDS + 1):
            measure(notes, work, least)
            figures = least.figures()
            dearer = [
                what for what, figure in figures.items() if figure > most.get(what, float("inf"))
            ]
            if number >= (MOST_ROUNDS // 2 if keep else FEWEST_ROUNDS) and (keep or not dearer):
                break
    print("| what | kept | now | at most |\n|---|---:|---:|---:|")
    for what, figure in figures.items():
        limit = most.get(what, figure)
        print(f"| {what} | {kept.get(what, figure):.2f} | {figure:.2f} | {limit:.2f} |")
    if keep:
        figures = {what: round(figure, 3) for what, figure in figures.items()}
        KEPT.write_text(json.dumps({"processor": processor, "figures": figures}, indent=1) + "\n")
    elif dearer:
        sys.exit(
            f"Dearer than they may be: {'; '.join(dearer)}."
            " If that is worth its price: python benchmarks/guard.py --keep"
        )


if __name__ == "__main__":
    main()

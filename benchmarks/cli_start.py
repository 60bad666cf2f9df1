"""
What one `qmd search` costs as a process, against the least that Python could do.

The floor is a bare Python that opens the same database and runs one MATCH. Both are started
in turn, so that a busy machine slows both; the ratio is what counts.

    python benchmarks/cli_start.py            # 2,000 made-up notes
    python benchmarks/cli_start.py --db FILE --word WORD
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tree import make_tree

FLOOR = """
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
sql = "SELECT rowid FROM z_documents_fts WHERE z_documents_fts MATCH ? ORDER BY rank LIMIT 10"
print(db.execute(sql, (sys.argv[2],)).fetchall())
"""
TARGET = 4.0


def build(folder: Path, database: Path, notes: int) -> None:
    make_tree(folder / "notes", notes)
    subprocess.run(
        [*command(), "--db", str(database), "collection", "add", str(folder / "notes")],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def command() -> list[str]:
    found = shutil.which("qmd", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-m", "qmd"]


def measure(commands: dict[str, Sequence[str]], rounds: int) -> dict[str, list[float]]:
    """Seconds of wall time of each command, started in turn."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, line in commands.items():
            start = time.perf_counter()
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL, env=os.environ)
            taken[name].append(time.perf_counter() - start)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--db", type=Path)
    parser.add_argument("--word", default="however")
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        database = options.db or Path(scratch, "index.sqlite")
        if options.db is None:
            build(Path(scratch), database, options.notes)
        here = ["--db", str(database)]
        taken = measure(
            {
                "bare Python, one MATCH": [
                    sys.executable,
                    "-c",
                    FLOOR,
                    str(database),
                    options.word,
                ],
                "python -c 'import click'": [sys.executable, "-c", "import click"],
                "qmd search": [*command(), *here, "search", options.word],
                "qmd search --json": [*command(), *here, "search", options.word, "--json"],
                "qmd status --json": [*command(), *here, "status", "--json"],
                "qmd --help": [*command(), "--help"],
            },
            options.rounds,
        )
    floor = next(iter(taken.values()))
    print(f"{'':28}{'median ms':>10}{'best ms':>9}{'ratio':>7}  (target for search: ≤ {TARGET})")
    for name, seconds in taken.items():
        middle = statistics.median(seconds)
        ratio = middle / statistics.median(floor)
        print(f"{name:28}{middle * 1e3:10.1f}{min(seconds) * 1e3:9.1f}{ratio:7.2f}")


if __name__ == "__main__":
    main()

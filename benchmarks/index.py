"""
Index and re-index a generated tree or a folder: CPU time, memory and size, beside tobi/qmd
and bare Python.

    python benchmarks/index.py [--language en|zh] [--files 10000] [--rounds 3] [--work DIR]
    python benchmarks/index.py --tree FOLDER …

No vectors on either side. The bare Python reads each file, hashes it and puts it into a table
and an ordinary FTS5 table, all in one transaction (index), or walks the tree and asks for
each file's state (re-index): what no program with these data structures can go below.
CPU time is user + system of the whole process; the programs take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import measure
from measure import Cost, Row, median
from peer import Peer, install
from tree import make_tree

BARE_INDEX = """
import hashlib, os, sys
from qmd.store.sqlite.library import dbapi
root, database = sys.argv[1:]
db = dbapi.connect(database, isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("CREATE TABLE documents (id INTEGER PRIMARY KEY, path, hash, text)")
db.execute("CREATE VIRTUAL TABLE fts USING fts5 (body, tokenize = 'porter unicode61')")
db.execute("BEGIN IMMEDIATE")
count = 0
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            data = file.read()
        row = (path, hashlib.sha256(data).hexdigest(), data.decode())
        db.execute("INSERT INTO documents (path, hash, text) VALUES (?, ?, ?)", row)
        db.execute("INSERT INTO fts (body) VALUES (?)", row[2:])
        count += 1
db.execute("COMMIT")
db.close()
print(count)
"""
BARE_REINDEX = """
import os, sys
count, folders = 0, [sys.argv[1]]
while folders:
    with os.scandir(folders.pop()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                count += 1
print(count)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--language", choices=("en", "zh"), default="en")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument(
        "--tree", type=Path, help="a folder of Markdown, instead of a generated one"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, help="keeps the tree and the peer for next time")
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        benchmark(arguments, (arguments.work or Path(temporary)).resolve())


def benchmark(arguments: argparse.Namespace, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    if arguments.tree is None:
        tree = work / f"tree-{arguments.language}-{arguments.files}"
        make_tree(tree, arguments.files, arguments.language)
    else:
        tree = arguments.tree.resolve()
    peer = None if arguments.no_peer else install(work / "peer", work / "peer-state")
    rows, raw = compare(tree, peer, arguments.rounds, 2.7 if arguments.language == "en" else 5)
    kind = arguments.language if arguments.tree is None else tree.name
    notes = [
        f"{raw['files']:,} files, {raw['corpus'] / 1e6:.1f} MB, {kind}; {arguments.rounds} rounds"
    ]
    measure.report(f"index-{kind}", rows, raw, notes)


def compare(
    tree: Path, peer: Peer | None, rounds: int, largest: float
) -> tuple[list[Row], dict[str, Any]]:
    """
    Index and re-index a folder of Markdown by each program in turn.

    Args:
        tree: The folder, absolute.
        peer: None leaves it out. Its index is that of ``tree`` afterwards.
        largest: The target for the size of the database, as a multiple of the Markdown.

    Returns:
        The rows of the report, and the raw figures: costs, sizes, ``files`` and ``corpus`` (bytes).
    """
    pages = [page for page in tree.rglob("*.md") if page.is_file()]
    corpus, count = sum(page.stat().st_size for page in pages), len(pages)
    costs: dict[str, list[Cost]] = {}
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(rounds):
            database, bare = Path(scratch, f"{number}.sqlite"), Path(scratch, f"b{number}.sqlite")
            steps: dict[str, list[str | Path]] = {
                "qmd index": measure.qmd(database, "collection", "add", tree, "--name", "t"),
                "bare index": [sys.executable, "-c", BARE_INDEX, tree, bare],
                "qmd re-index": measure.qmd(database, "index", "--no-embed"),
                "bare re-index": [sys.executable, "-c", BARE_REINDEX, tree],
            }
            for name, command in steps.items():
                costs.setdefault(name, []).append(measure.run(command))
                if peer is not None and name.startswith("qmd"):
                    if name == "qmd index":
                        peer.fresh()
                        theirs = peer.command("collection", "add", tree, "--name", "t")
                    else:
                        theirs = peer.command("update")
                    costs.setdefault(name.replace("qmd", "peer"), []).append(
                        measure.run(theirs, peer.env)
                    )
            sizes["qmd"] = database.stat().st_size
            sizes["bare"] = bare.stat().st_size
            if peer is not None:
                sizes["peer"] = peer.database.stat().st_size
            database.unlink()
            bare.unlink()
            print(f"round {number + 1} of {rounds}", flush=True)
    rows = []
    files, bare_name = f"{count:,} files", "bare Python"
    for step, target in (("index", 0.5), ("re-index", 0.2)):
        ours = costs[f"qmd {step}"]
        others = [("bare", bare_name, None)]
        if peer is not None:
            others.insert(0, ("peer", peer.name, target))
        for key, against, limit in others:
            theirs = costs[f"{key} {step}"]
            rows.append(
                Row(
                    f"{step}, CPU time",
                    median(ours, "cpu_s"),
                    median(theirs, "cpu_s"),
                    "s",
                    against,
                    limit,
                    files,
                )
            )
        against = peer.name if peer is not None else bare_name
        theirs = costs[f"{'peer' if peer is not None else 'bare'} {step}"]
        rows.append(
            Row(
                f"{step}, peak RSS", median(ours, "rss_mb"), median(theirs, "rss_mb"), "MB", against
            )
        )
    rows.append(
        Row("index, peak RSS", median(costs["qmd index"], "rss_mb"), 200, "MB", "the promise", 1)
    )
    rows.append(Row("database", sizes["qmd"] / 1e6, corpus / 1e6, "MB", "the corpus", largest))
    for key, against in (("peer", peer.name if peer is not None else ""), ("bare", bare_name)):
        if key in sizes:
            rows.append(Row("database", sizes["qmd"] / 1e6, sizes[key] / 1e6, "MB", against))
    raw = {"[wall s, CPU s, RSS MB]": costs, "sizes": sizes, "corpus": corpus, "files": count}
    return rows, raw


if __name__ == "__main__":
    main()

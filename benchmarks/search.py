"""
`qmd search` as a process and warm, beside bare SQL and tobi/qmd.

    python benchmarks/search.py [--files 10000] [--rounds 15] [--queries 60] [--work DIR]

As a process: the whole command, beside a bare Python that opens the same database and runs
one MATCH, and beside tobi/qmd's command. Warm: `KnowledgeBase.search` with limit 10, beside
the plain statement for the same expression and limit in the same process; for each kind of
query on an English and a Chinese tree, in CPU time of the calling thread, which does all the
work. They take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import measure
from measure import Cost, Row, median, percentile
from peer import Peer, install
from tree import Writer, make_tree

LIMIT = 10
BARE = """
import sys
from sqlite3 import connect
db = connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
print(db.execute(
    "SELECT d.path, d.title FROM z_documents_fts JOIN documents d ON d.id = z_documents_fts.rowid"
    " WHERE z_documents_fts MATCH ? ORDER BY bm25(z_documents_fts) LIMIT 10", [sys.argv[2]]
).fetchall())
"""
STATEMENT = (
    "SELECT d.path, d.title, bm25(z_documents_fts) FROM z_documents_fts"
    " JOIN documents d ON d.id = z_documents_fts.rowid"
    " WHERE z_documents_fts MATCH ? ORDER BY bm25(z_documents_fts) LIMIT 10"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--queries", type=int, default=60, help="of each kind")
    parser.add_argument("--work", type=Path, help="keeps the trees and the peer for next time")
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        benchmark(arguments, (arguments.work or Path(temporary)).resolve())


def benchmark(arguments: argparse.Namespace, work: Path) -> None:
    from qmd import KnowledgeBase

    work.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    raw: dict[str, object] = {}
    peer = None if arguments.no_peer else install(work / "peer", work / "peer-state")
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        for language in ("en", "zh"):
            tree = work / f"tree-{language}-{arguments.files}"
            make_tree(tree, arguments.files, language)
            database = Path(scratch, f"{language}.sqlite")
            with KnowledgeBase.open(database, create=True) as kb:
                kb.add_collection(tree, name="t")
                kb.index()
            queries = make_queries(language, arguments.files, arguments.queries)
            if language == "en":
                if peer is not None:
                    measure.run(peer.command("collection", "add", tree, "--name", "t"), peer.env)
                rows += as_a_process(database, queries["one word"], peer, arguments.rounds, raw)
            rows += warm(database, language, queries, raw)
    measure.report("search", rows, raw, [f"{arguments.files:,} files in each language"])


def make_queries(language: str, files: int, count: int) -> dict[str, list[str]]:
    writer = Writer(language)
    for _ in writer.documents(min(files, 50)):
        pass
    return writer.queries(count)


def as_a_process(
    database: Path, words: list[str], peer: Peer | None, rounds: int, raw: dict[str, object]
) -> list[Row]:
    costs: dict[str, list[Cost]] = {"qmd": [], "bare": [], "import": [], "peer": []}
    for word in words[:rounds]:
        costs["qmd"].append(measure.run(measure.qmd(database, "search", word, "--json")))
        costs["bare"].append(measure.run([sys.executable, "-c", BARE, database, f'"{word}"']))
        costs["import"].append(measure.run([sys.executable, "-c", "import click, json"]))
        if peer is not None:
            command = peer.command("search", word, "--json")
            costs["peer"].append(measure.run(command, peer.env))
    raw["process: wall s, CPU s, RSS MB"] = costs
    count = f"{len(costs['qmd'])} words"
    names = {
        "bare": ("bare Python, one MATCH", 4.0),
        "import": ("bare Python, import click and json", None),
        "peer": (peer.name if peer is not None else "", 0.33),
    }
    rows = []
    for field, label in (("wall_s", "whole process"), ("cpu_s", "whole process, CPU")):
        for key, (against, target) in names.items():
            if costs[key]:
                ours, theirs = (median(costs[k], field) * 1000 for k in ("qmd", key))
                rows.append(
                    Row(f"`qmd search`, {label}", ours, theirs, "ms", against, target, count)
                )
    return rows


def warm(
    database: Path, language: str, queries: dict[str, list[str]], raw: dict[str, object]
) -> list[Row]:
    from qmd import KnowledgeBase
    from qmd.store.sqlite.library import connect

    rows = []
    with KnowledgeBase.open(database, read_only=True) as kb:
        bare = connect(database, read_only=True)
        for kind, texts in queries.items():
            ours: list[float] = []
            theirs: list[float] = []
            hits = plain_hits = 0
            for text in texts:
                expression = fts_expression(kind, text)
                for _ in range(2):  # the second time everything is in memory
                    spent, reply = timed(lambda: kb.search(text, limit=LIMIT))  # noqa: B023
                    plain, found = timed(lambda: bare.execute(STATEMENT, [expression]).fetchall())  # noqa: B023
                ours.append(spent * 1000)
                theirs.append(plain * 1000)
                hits += len(reply.hits)  # type: ignore[attr-defined]
                plain_hits += len(found)  # type: ignore[arg-type]
            raw[f"warm, {language}, {kind}: qmd CPU ms, bare CPU ms"] = [
                [round(a, 3), round(b, 3)] for a, b in zip(ours, theirs, strict=True)
            ]
            for percent in (50, 95):
                rows.append(
                    Row(
                        f"warm search, CPU, {language}, {kind}, p{percent}",
                        percentile(ours, percent),
                        percentile(theirs, percent),
                        "ms",
                        "the bare statement",
                        None,
                        f"{hits} and {plain_hits} hits of {len(texts)} queries",
                    )
                )
        bare.close()
    return rows


def fts_expression(kind: str, text: str) -> str:
    """What a person would write for SQLite by hand: questions as their words joined by OR."""
    from qmd.parse.segment import cjk_runs, pairs_of
    from qmd.search.words import phrase
    from qmd.store.full_text import Phrase, all_of, any_of
    from qmd.store.sqlite.fts5 import render

    nothing = Phrase("")

    if kind == "phrase":
        return render(phrase(text.strip('"')) or nothing)
    if kind == "question":
        runs = [match[0] for match in cjk_runs(text)]
        words = [pair for run in runs for pair in pairs_of(run)] if runs else text.split()
        return render(any_of(*map(Phrase, words)))
    return render(all_of(*(phrase(word) or nothing for word in text.split())))


def timed(action: Callable[[], object]) -> tuple[float, object]:
    start = time.thread_time()
    result = action()
    return time.thread_time() - start, result


if __name__ == "__main__":
    main()

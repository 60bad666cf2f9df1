"""
The goals of version 2 in one run, beside tobi/qmd and the limits of the machine.

    python benchmarks/goals.py FOLDER FIXTURE [--chinese FOLDER] [--postgres URL] [--rounds 3]
        [--files 10000] [--work DIR]

FOLDER holds English Markdown and nothing else (the goals were set for 11,760 pages of Windows
documentation), FIXTURE long questions (`judgments/report-en.json`), URL is an empty database of a
PostgreSQL server. With `--files 100000` so many generated files are indexed, in PostgreSQL as well,
which takes minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
from pathlib import Path

import embed
import engines_scale
import index
import knn
import measure
import search
from mcp_overhead import Searches
from measure import Row
from peer import install
from tree import make_tree

#: Ratios to tobi/qmd's CPU time, and to the Markdown's size.
INDEX, RE_INDEX, SIZE, SIZE_ELSEWHERE = 0.30, 0.08, 2.0, 3.5
#: CPU of a `qmd search` beside a bare Python with one MATCH, and of a nearest-neighbour search
#: beside numpy.
PROCESS, KNN = 1.6, 0.4
#: PostgreSQL beside a file, on the clock: a first index, and the p95 of searches of all kinds.
POSTGRES = {"index": (2, "s"), "search, all kinds, p95": (1.5, "ms")}
#: CPU of a vector beside bare onnxruntime, which is what one took before.
VECTOR = 0.5
#: p50 and p95 of a search beside the server's simplest reply: 4 and 8 ms beside .9 ms of `/health`,
#: 5 and 9 ms beside 1.4 ms of a ping.
REST = {50: 4 / 0.9, 95: 8 / 0.9}
MCP = {50: 5 / 1.4, 95: 9 / 1.4}
#: MB of the first index of FOLDER, of that of `--files`, and of a server after the searches.
PEAK_MB, PEAK_OF_MANY_MB, SERVER_MB = 70, 90, 75
TEN_HITS_BYTES = 3.5 * 1024
CALLS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("fixture", type=Path)
    parser.add_argument("--chinese", type=Path, help="a folder of Chinese Markdown")
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=10_000, help="generated ones")
    parser.add_argument("--work", type=Path, help="keeps the trees and the peer for next time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        benchmark(arguments, (arguments.work or Path(temporary)).resolve())


def benchmark(arguments: argparse.Namespace, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    peer = install(work / "peer", work / "peer-state")
    raw: dict[str, object] = {}
    folder = arguments.folder.resolve()
    rows, raw["index"] = index.compare(folder, peer, arguments.rounds, SIZE)
    rows = [set_goal(row) for row in rows if row.against != "bare Python"]
    generated = work / f"tree-en-{arguments.files}"
    make_tree(generated, arguments.files)
    for tree in (generated, arguments.chinese and arguments.chinese.resolve()):
        if tree is None:
            continue
        others, raw[tree.name] = index.compare(tree, None, 1, SIZE_ELSEWHERE)
        for row in others:
            if row.against in ("the corpus", "the promise"):
                rows.append(set_goal(row, tree.name))
    questions = mixed_questions(folder, arguments.fixture)
    words = [question for question in questions if question.isalpha()][: 5 * arguments.rounds]
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch, "index.sqlite")
        measure.run(measure.qmd(database, "collection", "add", folder, "--name", "t"))
        for row in search.as_a_process(database, words, peer, len(words), raw):
            if "CPU" in row.what and not row.against.endswith("json"):
                goal = PROCESS if row.against.startswith("bare") else None
                rows.append(row.with_target(goal))
        searches = Searches(database, CALLS, questions, peer)
    raw["searches, clock ms"], raw["searches, CPU ms"] = searches.clock, searches.cpu
    rows += served(searches, None if peer is None else peer.name)
    nearest, raw["knn"] = knn.searched([100_000], 40)
    rows += [row.with_target(KNN) for row in nearest]
    with tempfile.TemporaryDirectory() as cache:
        variants = embed.compare(Path(cache), 60, arguments.rounds, embed.available_cores())
    ours, bare = variants[embed.QMD].cpu_ms, variants[embed.BARE].cpu_ms
    rows.append(
        Row("vector of a text, CPU", ours, bare, "ms", "bare onnxruntime", VECTOR, "60 texts")
    )
    if arguments.postgres:
        rows += in_postgres(arguments.postgres, work / "engines", arguments.files, raw)
        sys.argv[sys.argv.index(arguments.postgres)] = "postgresql://…"
    measure.report("goals", rows, raw, [f"{arguments.rounds} rounds, {CALLS} questions"])


def in_postgres(url: str, work: Path, size: int, raw: dict[str, object]) -> list[Row]:
    """What PostgreSQL takes for ``size`` generated documents, beside a file."""
    figures = engines_scale.measure_size(work, url, size, words=130, questions=10)
    raw["PostgreSQL and SQLite"] = figures
    return [
        Row(f"PostgreSQL: {what}", *figures[f"{what}, {unit}"], unit, "SQLite", goal, f"{size:,}")
        for what, (goal, unit) in POSTGRES.items()
    ]


def mixed_questions(folder: Path, fixture: Path) -> list[str]:
    """As many words, pairs of words and phrases of its pages as long questions of the fixture."""
    rng = random.Random(24)
    each = CALLS // 4
    pages = sorted(folder.rglob("*.md"))
    words, pairs, phrases = [], [], []
    for page in rng.sample(pages, min(len(pages), 8 * each)):
        text = page.read_text(encoding="utf-8", errors="replace")
        of_page = re.findall(r"[A-Za-z]{4,}", text)
        lines = [line.split() for line in text.splitlines() if line[:1].isalpha()]
        lines = [line for line in lines if len(line) > 8]
        if len(of_page) < 60 or not lines:
            continue
        words.append(rng.choice(of_page))
        pairs.append(" ".join(rng.sample(of_page, 2)))
        line = rng.choice(lines)
        start = rng.randrange(len(line) - 3)
        phrase = " ".join(line[start : start + 3]).replace('"', "")
        phrases.append(f'"{phrase}"')
    entries = json.loads(fixture.read_text(encoding="utf-8"))["queries"]
    long = [entry["query"] for entry in rng.sample(entries, min(len(entries), each))]
    return [*words[:each], *pairs[:each], *phrases[:each], *long]


def set_goal(row: Row, tree: str = "") -> Row:
    """The row with the goal of version 2 as its target."""
    what = f"{row.what} ({tree})" if tree else row.what
    if row.against == "the promise":
        goal_mb = PEAK_OF_MANY_MB if tree.endswith("00000") else PEAK_MB
        return Row(what, row.ours, goal_mb, "MB", "the goal", 1, row.count)
    goals = {"index, CPU time": INDEX, "re-index, CPU time": RE_INDEX}
    target = row.target if row.against == "the corpus" else goals.get(row.what)
    return Row(what, row.ours, row.reference, row.unit, row.against, target, row.count)


def served(searches: Searches, peer: str | None) -> list[Row]:
    """A row for each percentile of the searches of a running server, and what it takes."""
    rows = []
    count = f"{CALLS} questions"
    for face, floor, goals in (("REST", "GET /health", REST), ("MCP", "ping", MCP)):
        for percent, goal in goals.items():
            what = f"warm search over {face}, clock, p{percent}"
            ours = searches.ms(f"search over {face}", percent)
            least = searches.ms(floor, 50)
            rows.append(Row(what, ours, least, "ms", f"{floor}, p50", goal, count))
            if face == "MCP" and peer is not None:
                theirs = searches.ms(peer, percent)
                rows.append(Row(what, ours, theirs, "ms", peer, None, count))
    for face in ("REST", "MCP"):
        ours = searches.memory_mb[face]
        what = f"server memory after searches, {face}"
        rows.append(Row(what, ours, SERVER_MB, "MB", "the goal", 1, count))
        if face == "MCP" and peer is not None:
            rows.append(Row(what, ours, searches.memory_mb[peer], "MB", peer))
    size = statistics.median(searches.bytes_of_ten)
    ten = f"{len(searches.bytes_of_ten)} replies"
    rows.append(
        Row("ten hits, what a model reads", size, TEN_HITS_BYTES, "bytes", "the goal", 1, ten)
    )
    return rows


if __name__ == "__main__":
    main()

"""
How long a search of posts takes: any literal, in all texts, with every hit counted.

    python benchmarks/posts.py [--files 10000] [--rounds 5] [--work DIR]

Beside it, by turns, a bare Python program's scan for the same literal: walk, open, decode,
fold the letter case, look into each line. Both must count the same hits. Also the search of
an archive that was never indexed, whose files are read.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from measure import Row, report
from tree import make_tree

from qmd import KnowledgeBase, Settings

TARGET_S = 1.0

T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, help="keep the trees here")
    arguments = parser.parse_args()
    rows: list[Row] = []
    raw: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for language in ("zh", "en"):
            archive = (arguments.work or Path(scratch)).resolve() / f"posts-{language}"
            archive.mkdir(parents=True, exist_ok=True)
            size = make_tree(archive / "author", arguments.files, language)
            database = Path(scratch) / f"{language}.sqlite"
            with KnowledgeBase.open(database, Settings(posts_dir=archive), create=True) as kb:
                what = f"{language}, {size / 1e6:.0f} MB"
                literals = queries(archive, language)
                rounds = arguments.rounds
                unread = f"{what}, not indexed"
                unindexed = compare(kb, archive, unread, literals[:1], rounds, raw)
                kb.posts.adopt()
                kb.index()
                rows += compare(kb, archive, what, literals, rounds, raw)
                rows += unindexed
    slowest = max(row.ours for row in rows) / 1000
    report("posts", rows, raw, [f"target: ≤ {TARGET_S:g} s; the slowest {slowest:.2f} s"])


def queries(archive: Path, language: str) -> list[tuple[str, str]]:
    """What kind each is, and the literal: a rare one, a common one, one sign, one that is not."""
    sample = sorted((archive / "author").rglob("*.md"))[:200]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sample)
    if language == "zh":
        pairs = Counter(
            a + b for a, b in itertools.pairwise(text) if "一" <= a <= "龥" and "一" <= b <= "龥"
        )
        ordered = [pair for pair, _ in pairs.most_common()]
        return [
            ("two characters, rare", ordered[len(ordered) // 2]),
            ("two characters, common", ordered[0]),
            (
                "one character, common",
                Counter(c for c in text if "一" <= c <= "龥").most_common(1)[0][0],
            ),
            ("a word of ASCII", "data"),
            ("not there", "不存在的词组甲乙丙"),
        ]
    words = [word for word, _ in Counter(text.lower().split()).most_common() if word.isalpha()]
    return [
        ("a word, rare", words[len(words) // 2]),
        ("a word, common", words[0]),
        ("one letter", "e"),
        ("signs", "C++"),
        ("not there", "zqxjkzqxjk"),
    ]


def compare(
    kb: KnowledgeBase,
    archive: Path,
    what: str,
    literals: list[tuple[str, str]],
    rounds: int,
    raw: dict[str, object],
) -> list[Row]:
    rows = []
    for kind, literal in literals:
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(rounds):
            ours_s, total = timed(search, kb, literal)
            bare_s, expected = timed(scan, archive, literal)
            if total != expected:
                raise SystemExit(f"{literal!r}: {total} hits, {expected} by the scan")
            ours.append(ours_s)
            bare.append(bare_s)
        raw[f"{what}, {kind}"] = {"literal": literal, "ours_s": ours, "bare_s": bare}
        rows.append(
            Row(
                f"{what}: {kind}",
                statistics.median(ours) * 1000,
                statistics.median(bare) * 1000,
                "ms",
                "a bare scan of the files",
                count=f"{total:,} hits",
            )
        )
    return rows


def timed(work: Callable[[T, str], int], where: T, literal: str) -> tuple[float, int]:
    start = time.perf_counter()
    result = work(where, literal)
    return time.perf_counter() - start, result


def search(kb: KnowledgeBase, literal: str) -> int:
    return kb.posts.search(literal).total


def scan(archive: Path, literal: str) -> int:
    wanted = literal.casefold()
    total = 0
    for folder, _, names in os.walk(archive):
        for name in names:
            if name.endswith(".md"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
                    text = file.read().casefold()
                if wanted in text:
                    total += sum(wanted in line for line in text.split("\n"))
    return total


if __name__ == "__main__":
    main()

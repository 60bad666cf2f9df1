"""
How well does `relevance` hold: how often did a best hit answer, of those that claim so much?

    python benchmarks/relevance.py SOURCE … [--language zh] [--ten 30] [--rows FILE] [--fit]

A SOURCE is ``DATABASE=FIXTURE[,FIXTURE…]``, or a FIXTURE that brings its documents. All must be of
one language, because every question is put to every database: where its page is not, no page
answers it. `relevance_questions` adds titles, words, gibberish and collections of ten documents.

For each search it prints a table of predictions, the expected calibration error, and the quantiles
of relevance; which right answers the default minimum of `vsearch` drops; and how often a notice
below a threshold is wrong or missing. ``--rows`` writes every best hit as a line of JSON, and a
file that such a run has written is a SOURCE, too. ``--fit`` prints the constants that fit best.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import relevance_report as report
from relevance_fit import BestHit
from relevance_questions import (
    Question,
    Source,
    generated,
    judged,
    load_small,
    read_source,
    small_collections,
)

if TYPE_CHECKING:
    from qmd import KnowledgeBase

SEARCHES = ("search", "vsearch", "query")
FIRST = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--language", choices=("en", "zh"), default="en")
    parser.add_argument("--seed", default="report", help="what titles, words and tens depend on")
    parser.add_argument("--ten", type=int, default=30, metavar="N", help="collections of ten")
    parser.add_argument("--keep", type=Path, help="where databases of fixtures are kept")
    parser.add_argument("--rows", type=Path, help="write the best hits to this file")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--features", default="", help="fit these (a,b,c) instead of all")
    parser.add_argument(
        "--times",
        action="append",
        default=[],
        metavar="SOURCE=N",
        help="how often it counts in a fit",
    )
    arguments = parser.parse_args()
    written = [name for name in arguments.sources if name.endswith(".jsonl")]
    hits = [hit for name in written for hit in read_rows(Path(name))]
    with TemporaryDirectory() as folder:
        keep = arguments.keep or Path(folder)
        sources = [read_source(name, keep) for name in arguments.sources if name not in written]
        for source in sources:
            hits += ask(source, sources, arguments.language, arguments.seed, arguments.ten)
    if arguments.rows:
        lines = (json.dumps(hit._asdict(), ensure_ascii=False) for hit in hits)
        arguments.rows.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for search in SEARCHES:
        report.show(search, [hit for hit in hits if hit.search == search])
    if arguments.fit:
        times = (text.rpartition("=") for text in arguments.times)
        report.fit(
            hits,
            [name for name in arguments.features.split(",") if name],
            {source: float(number) for source, _, number in times},
        )


def read_rows(path: Path) -> Iterator[BestHit]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield BestHit(**json.loads(line))


def ask(
    source: Source, sources: Sequence[Source], language: str, seed: str, tens: int
) -> Iterator[BestHit]:
    """Put every question to one database, and to collections of ten of its documents."""
    from qmd import KnowledgeBase

    with KnowledgeBase.open(source.database) as kb:
        questions = judged(kb, source, sources)
        if not source.ids:
            questions += generated(kb, seed, language)
        yield from best_hits(kb, source.name, "whole", questions)
        if source.ids:
            return
        smalls = list(small_collections(kb, questions, seed, tens))
    with TemporaryDirectory() as folder:
        copy = Path(folder, source.database.name)
        shutil.copyfile(source.database, copy)
        with KnowledgeBase.open(copy) as kb:
            for small in smalls:
                with load_small(kb, small):
                    yield from best_hits(kb, source.name, "ten", small.questions)


def best_hits(
    kb: KnowledgeBase, source: str, size: str, questions: Iterable[Question]
) -> Iterator[BestHit]:
    """The best hit of each search for each question, where there is one."""
    for question in questions:
        for search in SEARCHES:
            ask = getattr(kb, search)
            hits = ask(question.text, limit=FIRST, min_score=0.0, explain=True).hits
            if not hits:
                continue
            dropped = None
            if search == "vsearch" and question.relevant & {hit.file for hit in hits}:
                kept = {hit.file for hit in ask(question.text, limit=FIRST).hits}
                dropped = not question.relevant & kept
            yield BestHit(
                search,
                source,
                size,
                question.kind,
                question.text,
                bool(question.relevant),
                hits[0].file in question.relevant,
                hits[0].relevance,
                measured_features(hits[0].explain["relevance"]),
                dropped,
                hits[0].explain["relevance"]["script"],
            )


def measured_features(explained: Mapping[str, Any]) -> dict[str, float]:
    from qmd.search.judge import Grounds, features

    return features(Grounds(*(explained[name] for name in Grounds._fields)))


if __name__ == "__main__":
    main()

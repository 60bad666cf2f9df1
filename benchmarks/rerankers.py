"""
Is `query` ever worse with a reranker than without?

    python benchmarks/rerankers.py DATABASE=FIXTURE[,FIXTURE…] …

Rerankers that know nothing (random, the same for all), that know too little (words in common, the
length of the passage) and one that knows the answers with much noise are asked beside `query`
without any. It prints MRR@10 and success@10 of every fixture without a reranker, and for each of
them the difference with its 95 % interval by paired bootstrap.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import exp
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from order import FIRST, bootstrap

from qmd import KnowledgeBase
from qmd.settings import BackendSettings, Settings

_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+")
#: What the right answer has more than others, in standard deviations of the noise: a reranker that
#: by itself would put it first in about a third of the questions.
KNOWN = 2.0


class Question(NamedTuple):
    text: str
    files: frozenset[str]


class Scorer:
    """A reranker of a function of question and passage, 0..1."""

    def __init__(self, name: str, score: Callable[[str, str], float]) -> None:
        self.name, self._score = name, score

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> list[float]:
        return [self._score(query, passage) for passage in passages]


def chance(query: str, passage: str) -> float:
    """Evenly distributed, and the same in every run."""
    digest = hashlib.sha256(f"{query}\n{passage}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def overlap(query: str, passage: str) -> float:
    words = set(_WORD.findall(query.lower()))
    return len(words & set(_WORD.findall(passage.lower()))) / max(1, len(words))


def length(query: str, passage: str) -> float:
    return len(passage) / (len(passage) + 1000)


def knowing(answers: Mapping[str, Sequence[str]]) -> Callable[[str, str], float]:
    """The right titles of each question count `KNOWN` more; the rest is noise."""

    def score(query: str, passage: str) -> float:
        title = passage.partition("\n")[0]
        known = KNOWN if title in answers.get(query, ()) else 0.0
        noise = NormalDist().inv_cdf(min(max(chance(query, passage), 1e-9), 1 - 1e-9))
        return 1 / (1 + exp(-known - noise))

    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    for source in parser.parse_args().sources:
        database, _, fixtures = source.partition("=")
        for fixture in map(Path, fixtures.split(",")):
            compare(database, fixture)


def compare(database: str, fixture: Path) -> None:
    """Print the figures of one fixture."""
    entries = json.loads(fixture.read_text(encoding="utf-8"))["queries"]
    with KnowledgeBase.open(database) as kb:
        names = [each.name for each in kb.collections()]
        titles = {info.file: info.title for info in kb.documents(limit=1_000_000)}
        questions = [
            Question(
                entry["query"], frozenset(f"{name}/{file}" for name in names for file in files)
            )
            for entry in entries
            for files in [entry["file"] if isinstance(entry["file"], list) else [entry["file"]]]
        ]
        before = ranks(kb, questions)
    print(f"\n{fixture.stem}: {before.mean():.3f} / {(before > 0).mean():.3f} without a reranker")
    answers = {each.text: [titles[f] for f in each.files if f in titles] for each in questions}
    scorers = (
        Scorer("random", chance),
        Scorer("the same for all", lambda query, passage: 0.5),
        Scorer("words in common", overlap),
        Scorer("length", length),
        Scorer("knows, with noise", knowing(answers)),
    )
    for scorer in scorers:
        settings = Settings(reranker=scorer, backends=BackendSettings(budget_s=60))
        with KnowledgeBase.open(database, settings) as kb:
            after = ranks(kb, questions)
        low, high = bootstrap(after - before, np.mean)
        found = (after > 0).mean() - (before > 0).mean()
        print(
            f"  {scorer.name:<20} {(after - before).mean():+.3f} [{low:+.3f}, {high:+.3f}]"
            f" / {found:+.3f}; moved {np.count_nonzero(after != before)}",
            flush=True,
        )


def ranks(
    kb: KnowledgeBase, questions: Sequence[Question]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The reciprocal rank of each question's page among the first ten."""
    found = []
    for question in questions:
        hits = [hit.file for hit in kb.query(question.text, limit=FIRST, min_score=0.0).hits]
        places = [place for place, file in enumerate(hits, 1) if file in question.files]
        found.append(1 / places[0] if places else 0.0)
    return np.array(found)


if __name__ == "__main__":
    main()

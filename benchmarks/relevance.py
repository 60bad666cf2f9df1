"""
How well does `relevance` hold: how often did a best hit answer, of those that claim so much?

    python benchmarks/relevance.py DATABASE=FIXTURE[,FIXTURE…] … [--fit]

Every question of all fixtures is put to every database by `search`, `vsearch` and `query`. Where
its page is in the database it is answerable, elsewhere it is not; so give databases of one
language. Answerable and other questions weigh the same. ``--fit`` prints the constants of
`qmd.search.present.relevance` that fit best, and the table for them, each database left out in
turn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SYSTEMS = ("search", "vsearch", "query")
BINS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.001)


class Best(NamedTuple):
    """The best hit for a question."""

    system: str
    database: str
    answerable: bool
    answers: bool
    relevance: float
    coverage: float
    near: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("sources", nargs="+", metavar="DATABASE=FIXTURE[,FIXTURE…]")
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    best = list(ask([source.split("=", 1) for source in arguments.sources]))
    for system in SYSTEMS:
        some = [hit for hit in best if hit.system == system]
        table(system, some, np.array([hit.relevance for hit in some]))
    if arguments.fit:
        fit("WORDS", best, lambda hit: (hit.coverage,))
        near = [hit for hit in best if hit.near is not None]
        fit("BOTH", near, lambda hit: (hit.coverage, hit.near))


def ask(sources: Sequence[Sequence[str]]) -> list[Best]:
    from qmd import KnowledgeBase

    questions: dict[str, dict[str, None]] = {}
    for _, fixtures in sources:
        for fixture in fixtures.split(","):
            for entry in json.loads(Path(fixture).read_text(encoding="utf-8"))["queries"]:
                files = entry.get("relevant") or ([entry["file"]] if "file" in entry else [])
                questions.setdefault(entry["query"], {}).update(dict.fromkeys(files))
    best = []
    for name in dict.fromkeys(database for database, _ in sources):
        with KnowledgeBase.open(Path(name)) as kb:
            there = {info.path for info in kb.documents(limit=1_000_000)}
            for question, files in questions.items():
                for system in SYSTEMS:
                    hits = getattr(kb, system)(question, limit=1, min_score=0.0, explain=True).hits
                    if hits:
                        (hit,) = hits
                        said: dict[str, Any] = hit.explain["relevance"]
                        best.append(
                            Best(
                                system,
                                name,
                                any(file in there for file in files),
                                hit.path in files,
                                hit.relevance,
                                said["coverage"] or 0.0,
                                said["nearness"],
                            )
                        )
    return best


def weights(best: Sequence[Best]) -> NDArray[np.float64]:
    """Answerable and other questions of each database weigh the same."""
    groups = [(hit.database, hit.answerable) for hit in best]
    sizes = {group: groups.count(group) for group in set(groups)}
    return np.array([1 / sizes[group] for group in groups])


def table(name: str, best: Sequence[Best], predicted: NDArray[np.float64]) -> None:
    weight = weights(best)
    answers = np.array([hit.answers for hit in best], float)
    answerable = np.array([hit.answerable for hit in best])
    print(f"\n{name}: {len(best)} questions")
    for what, chosen in (
        ("the hit answers", answers > 0),
        ("answerable", answerable),
        ("not answerable", ~answerable),
    ):
        if chosen.any():
            some = predicted[chosen]
            low, middle, high = np.quantile(some, (0.1, 0.5, 0.9))
            print(f"  {what:16} mean {some.mean():.2f}  10 % {low:.2f}  50 % {middle:.2f}"
                  f"  90 % {high:.2f}")  # fmt: skip
    print("  | relevance | predicted | observed | n |\n  |---|---:|---:|---:|")
    for low, high in pairwise(BINS):
        inside = (predicted >= low) & (predicted < high)
        if inside.any():
            part = weight[inside]
            said = np.average(predicted[inside], weights=part)
            true = np.average(answers[inside], weights=part)
            claimed = f"{low:.1f} to {min(high, 1):.1f}"
            print(f"  | {claimed} | {said:.2f} | {true:.2f} | {inside.sum()} |")


def fit(name: str, best: Sequence[Best], features: Any) -> None:
    values = np.array([(1.0, *features(hit)) for hit in best])
    answers = np.array([hit.answers for hit in best], float)
    weight = weights(best)
    databases = np.array([hit.database for hit in best])
    print(f"\n{name} = {np.round(regression(values, answers, weight), 2).tolist()}")
    if len(set(databases)) > 1:
        predicted = np.zeros(len(best))
        for left_out in set(databases):
            used = databases != left_out
            constants = regression(values[used], answers[used], weight[used])
            predicted[~used] = 1 / (1 + np.exp(-values[~used] @ constants))
        table(f"{name}, each database left out in turn", best, predicted)


def regression(
    values: NDArray[np.float64], answers: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Logistic, by Newton's method, with a little of a ridge."""
    constants = np.zeros(values.shape[1])
    weight = weight * len(weight) / weight.sum()
    for _ in range(50):
        predicted = 1 / (1 + np.exp(-values @ constants))
        slope = values.T @ (weight * (predicted - answers)) + 1e-3 * constants
        bend = (values * (weight * predicted * (1 - predicted))[:, None]).T @ values
        constants -= np.linalg.solve(bend + 1e-3 * np.eye(len(constants)), slope)
    return constants


if __name__ == "__main__":
    main()

"""
What should the parts of the evidence weigh, by which `query` orders its hits?

    python benchmarks/order.py SOURCE … [--rows FILE] [--fit] [--weights words=1.25,…]

A SOURCE is ``DATABASE=FIXTURE[,FIXTURE…]``, or a file of rows that an earlier run has written. Each
question is asked once, and what ``--explain`` tells of its best `DEPTH` hits is all that is needed:
the order by any other weights follows from it. (Documents that only other weights would have
measured are missed, so the last word has ``qmd bench`` with the new weights.)

It prints MRR@10 and success@10 of every fixture as qmd orders now and by ``--weights``, with the
paired bootstrap of the difference. ``--fit`` prints the weights of a softmax regression: they make
the right page likely among the hits of each question (listwise, with an L2 penalty). The figures of
a fit are those of questions that it has not seen, by cross-validation over pages, and again over
sources (a kind of question of one fixture), which shows what it would do for questions of another
kind; keywords, and what `order_pairs.py` makes of the pages, count less than questions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from qmd import KnowledgeBase
from qmd.search.evidence import WEIGHTS
from qmd.values.search import EvidencePart

PARTS = get_args(EvidencePart)
#: Hits that are asked for: as many as have all parts measured, and some more.
DEPTH = 60
FIRST = 10
FOLDS = 5
PENALTY = 3.0
#: How often a question of a kind counts in a fit. A kind is the beginning of a question's id.
TIMES = {"link": 0.6} | dict.fromkeys(("anchor", "description", "heading", "alias", "keyword"), 0.2)


class Asked(NamedTuple):
    """
    A question with its hits as they are now.

    Attributes:
        parts: float[hits, parts]: what each part of the evidence would add with the weight 1.
        right: bool[hits]: whether the hit answers.
        page: The page that answers.
    """

    fixture: str
    id: str
    parts: NDArray[np.float64]
    right: NDArray[np.bool_]
    page: str

    @property
    def source(self) -> str:
        """The fixture, and the kind of question if the fixture has several."""
        kind = self.id.split("-")[0]
        return f"{self.fixture} ({kind})" if kind in TIMES else self.fixture

    @property
    def times(self) -> float:
        kind = "keyword" if "keyword" in self.fixture else self.id.split("-")[0]
        return TIMES.get(kind, 1.0)

    def reciprocal_rank(self, weights: NDArray[np.float64]) -> float:
        sums = self.parts @ weights
        order = np.argsort(-sums, kind="stable")[:FIRST]
        places = np.flatnonzero(self.right[order])
        return 1 / (1 + float(places[0])) if len(places) else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--rows", type=Path, help="write the hits to this file")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--weights", default="", help="compare these with those of qmd")
    arguments = parser.parse_args()
    rows = [row for source in arguments.sources for row in read(source)]
    if arguments.rows:
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        arguments.rows.write_text(text + "\n", encoding="utf-8")
    asked = [_asked(row) for row in rows]
    now = np.array([WEIGHTS[part] for part in PARTS])
    ranks = np.array([each.reciprocal_rank(now) for each in asked])
    show("now", asked, ranks, None)
    if arguments.weights:
        others = dict(pair.split("=") for pair in arguments.weights.split(","))
        other = np.array([float(others.get(part, WEIGHTS[part])) for part in PARTS])
        show("then", asked, np.array([each.reciprocal_rank(other) for each in asked]), ranks)
    if arguments.fit:
        pages = folds(sorted({each.page for each in asked}))
        by_page = cross_validated(asked, [pages[each.page] for each in asked])
        show("fitted without the page", asked, by_page, ranks)
        by_source = cross_validated(asked, [each.source for each in asked])
        show("fitted without the source", asked, by_source, ranks)
        fitted = fit(asked)
        scale = WEIGHTS["words"] / fitted[PARTS.index("words")]
        print({part: round(float(w * scale), 2) for part, w in zip(PARTS, fitted, strict=True)})


def read(source: str) -> Iterator[dict[str, Any]]:
    """The rows of a source: see `ask`."""
    if source.endswith(".jsonl"):
        for line in Path(source).read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
        return
    database, _, fixtures = source.partition("=")
    with KnowledgeBase.open(database) as kb:
        collections = [each.name for each in kb.status().collections]
        for fixture in map(Path, fixtures.split(",")):
            for query in json.loads(fixture.read_text(encoding="utf-8"))["queries"]:
                files = query["file"] if isinstance(query["file"], list) else [query["file"]]
                yield ask(kb, fixture.stem, query, collections, files)


def ask(
    kb: KnowledgeBase,
    fixture: str,
    query: dict[str, Any],
    collections: Sequence[str],
    files: Sequence[str],
) -> dict[str, Any]:
    """The hits of one question, without the page that the question was taken from."""
    right, left_out = (
        {f"{name}/{file}" for name in collections for file in each}
        for each in (files, query.get("exclude", []))
    )
    hits = []
    for hit in kb.query(query["query"], limit=DEPTH, min_score=0.0, explain=True).hits:
        if hit.file in left_out:
            continue
        added = dict.fromkeys(PARTS, 0.0)
        for part in (hit.explain or {}).get("parts", []):  # type: ignore[attr-defined]
            added[part["part"]] += part["standardised"] + part["place"]
        hits.append([hit.file in right, [round(value, 5) for value in added.values()]])
    return {"fixture": fixture, "id": query["id"], "page": files[0], "hits": hits}


def _asked(row: dict[str, Any]) -> Asked:
    parts = np.array([added for _, added in row["hits"]], np.float64).reshape(-1, len(PARTS))
    right = np.array([is_right for is_right, _ in row["hits"]], np.bool_)
    return Asked(row["fixture"], row["id"], parts, right, row["page"])


def folds(pages: Sequence[str]) -> dict[str, int]:
    """Page → its fold; the questions to a page stay together."""
    drawn = np.random.default_rng(0).integers(FOLDS, size=len(pages))
    return dict(zip(pages, drawn.tolist(), strict=True))


def cross_validated(asked: Sequence[Asked], parts: Sequence[Hashable]) -> NDArray[np.float64]:
    """
    Reciprocal ranks, each by weights that were fitted without the part that the question is in.

    Args:
        parts: Of each question.
    """
    ranks = np.zeros(len(asked))
    for part in set(parts):
        weights = fit([each for each, other in zip(asked, parts, strict=True) if other != part])
        for index, each in enumerate(asked):
            if parts[index] == part:
                ranks[index] = each.reciprocal_rank(weights)
    return ranks


def fit(asked: Sequence[Asked]) -> NDArray[np.float64]:
    """The weights under which the right page is most likely, by Newton's method."""
    known = [each for each in asked if each.right.any()]
    weights = np.zeros(len(PARTS))
    for _ in range(30):
        gradient, hessian = PENALTY * weights, PENALTY * np.eye(len(PARTS))
        for each in known:
            chances = _softmax(each.parts @ weights)
            answers = np.where(each.right, chances, 0.0)
            answers /= max(answers.sum(), 1e-300)
            mean = chances @ each.parts
            gradient += each.times * ((chances - answers) @ each.parts)
            centred = each.parts - mean
            hessian += each.times * (centred.T * chances) @ centred
        step = np.linalg.solve(hessian, gradient)
        weights = weights - step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-5:
            break
    return weights


def _softmax(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(sums - sums.max())
    chances: NDArray[np.float64] = raised / raised.sum()
    return chances


def show(
    name: str,
    asked: Sequence[Asked],
    ranks: NDArray[np.float64],
    before: NDArray[np.float64] | None,
) -> None:
    """Print MRR@10 and success@10 of each fixture, and the differences."""
    groups: dict[str, list[int]] = {}
    for index, each in enumerate(asked):
        groups.setdefault(each.source, []).append(index)
    print(f"\n{name}")
    for group, places in groups.items():
        these = ranks[places]
        line = f"  {group:<32}{len(places):>5}  {these.mean():.3f} / {(these > 0).mean():.3f}"
        if before is not None:
            difference = these - before[places]
            low, high = bootstrap(difference, np.mean)
            found = (these > 0).mean() - (before[places] > 0).mean()
            line += f"  {difference.mean():+.3f} [{low:+.3f}, {high:+.3f}] / {found:+.3f}"
        print(line)


def bootstrap(values: NDArray[np.float64], statistic: Callable[..., Any]) -> tuple[float, float]:
    """The 95 % interval of a statistic."""
    drawn = np.random.default_rng(0).choice(values, (2000, len(values)))
    low, high = np.quantile(statistic(drawn, axis=1), (0.025, 0.975))
    return float(low), float(high)


if __name__ == "__main__":
    main()

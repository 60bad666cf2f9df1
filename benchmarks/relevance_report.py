"""What `relevance.py` prints about best hits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from relevance_fit import (
    TABLE_BINS,
    Array,
    BestHit,
    balance,
    bins,
    calibration_error,
    chance_error,
    left_out,
    log_loss,
    regression,
    values,
)

#: The features of the estimates in `qmd.search.judge`, in the order of constants.
WORDS = ("coverage", "lead", "fewness", "title", "held")
BOTH = ("coverage", "lead", "fewness", "title", "nearness")
THRESHOLDS = (0.05, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)


def show(title: str, hits: Sequence[BestHit], predicted: Array | None = None) -> None:
    """Print all tables about the best hits of one search."""
    if not hits:
        return
    if predicted is None:
        predicted = np.array([hit.relevance for hit in hits])
    answers = np.array([hit.answers for hit in hits], float)
    print(f"\n## {title}: {len(hits)} best hits\n")
    _kinds(hits, predicted, answers)
    for source in dict.fromkeys(hit.source for hit in hits):
        judged = np.array([is_judged(hit) and hit.source == source for hit in hits])
        if judged.any():
            print(f"\nThe questions of the fixtures about {source}, answerable or not:")
            _table(predicted[judged], answers[judged])
    print("\nAll kinds, weighted as in a fit:")
    _table(predicted, answers, balance(hits))
    _notices(hits, predicted)
    _dropped(hits)


def is_judged(hit: BestHit) -> bool:
    return hit.size == "whole" and hit.kind in ("question", "absent")


def _kinds(hits: Sequence[BestHit], predicted: Array, answers: Array) -> None:
    print("| collection | questions | n | answers | mean relevance | 10 % | 50 % | 90 % | ECE |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    groups = [(f"{hit.source}, {hit.size}", hit.kind) for hit in hits]
    for group in dict.fromkeys(groups):
        inside = np.array([other == group for other in groups])
        _kind_row(*group, predicted[inside], answers[inside])
        if 0 < answers[inside].sum() < inside.sum():
            _kind_row(group[0], f"{group[1]}: the hit answers", predicted[inside & (answers > 0)])


def _kind_row(source: str, kind: str, predicted: Array, answers: Array | None = None) -> None:
    low, middle, high = np.quantile(predicted, (0.1, 0.5, 0.9))
    share, error = ("", "") if answers is None else (
        f"{answers.mean():.2f}", f"{calibration_error(predicted, answers):.3f}"
    )  # fmt: skip
    print(f"| {source} | {kind} | {len(predicted)} | {share} | {predicted.mean():.2f}"
          f" | {low:.2f} | {middle:.2f} | {high:.2f} | {error} |")  # fmt: skip


def _table(predicted: Array, answers: Array, weight: Array | None = None) -> None:
    print("\n| relevance | predicted | observed | n |\n|---|---:|---:|---:|")
    part = np.ones(len(predicted)) if weight is None else weight
    for low, high, inside in bins(predicted, TABLE_BINS):
        mean = np.average(predicted[inside], weights=part[inside])
        share = np.average(answers[inside], weights=part[inside])
        print(f"| {low:.1f} to {high:.1f} | {mean:.2f} | {share:.2f} | {inside.sum()} |")
    error, chance = calibration_error(predicted, answers, weight), chance_error(predicted)
    print(f"\nExpected calibration error {error:.3f} (a perfect prediction: {chance:.3f})")


def _notices(hits: Sequence[BestHit], predicted: Array) -> None:
    """How often a notice is wrong: the hit answers; or missing: nothing answers the question."""
    whole = np.array([hit.size == "whole" for hit in hits])
    right = np.array([hit.answers for hit in hits])
    answerable = np.array([hit.answerable for hit in hits])
    absent = np.array([is_judged(hit) and hit.kind == "absent" for hit in hits])
    print("\n| threshold | notice: hit answers | answerable | nothing answers | "
          "no notice: absent |\n|---:|---:|---:|---:|---:|")  # fmt: skip
    for threshold in THRESHOLDS:
        below = predicted < threshold
        shares = (
            below[whole & right], below[whole & answerable], below[whole & ~answerable],
            ~below[absent],
        )  # fmt: skip
        print(f"| {threshold} | " + " | ".join(_share(share) for share in shares) + " |")


def _share(chosen: Array) -> str:
    return f"{100 * chosen.mean():.0f} %" if len(chosen) else ""


def _dropped(hits: Iterable[BestHit]) -> None:
    by_group: dict[str, list[bool]] = {}
    for hit in hits:
        if hit.dropped is not None:
            by_group.setdefault(f"{hit.source}, {hit.size}, {hit.kind}", []).append(hit.dropped)
    if by_group:
        print("\nRight answers among the first ten that the default minimum of vsearch drops:\n")
    for group, dropped in by_group.items():
        print(f"- {group}: {sum(dropped)} of {len(dropped)} ({100 * np.mean(dropped):.0f} %)")


def part_of(hit: BestHit) -> str:
    """The same for all hits for a question, as other collections ask it, too."""
    return hashlib.sha256(hit.question.encode()).hexdigest()[0]


def fit(hits: Sequence[BestHit], features: Sequence[str], times: Mapping[str, float]) -> None:
    """
    Print the constants of `qmd.search.judge`, and how well others would do.

    ``times``: As for `balance`.
    """
    for script in dict.fromkeys(hit.script for hit in hits):
        of_script = [hit for hit in hits if hit.script == script]
        by_words = [hit for hit in of_script if "nearness" not in hit.features]
        near = [hit for hit in of_script if "nearness" in hit.features]
        by_evidence, others = (
            [hit for hit in near if (hit.search == "query") is is_query]
            for is_query in (True, False)
        )
        _fit(f"WORDS, {script}, for a search without vectors", by_words, WORDS, times)
        for name, some in (("EVIDENCE", by_evidence), ("BOTH", others)):
            if some:
                _fit(f"{name}, {script}, for a search with vectors", some, features or BOTH, times)


def _fit(
    title: str, hits: Sequence[BestHit], features: Sequence[str], times: Mapping[str, float]
) -> None:
    table, answers = values(hits, features), np.array([hit.answers for hit in hits], float)
    weight = balance(hits, times)
    print(f"\n# {title}: {len(hits)} best hits\n")
    print("| features | constants | log loss, a sixteenth left out in turn | judged: ECE |")
    print("|---|---|---:|---:|")
    judged = np.array([is_judged(hit) for hit in hits])
    choices = [list(features)]
    if len(features) > 1:
        choices += [[name for name in features if name != without] for without in features]
    for chosen in choices:
        constants = regression(values(hits, chosen), answers, weight)
        predicted = left_out(hits, chosen, part_of, times)
        loss = log_loss(predicted, answers, weight)
        error = calibration_error(predicted[judged], answers[judged])
        numbers = ", ".join(f"{constant:.2f}" for constant in constants)
        print(f"| {', '.join(chosen)} | {numbers} | {loss:.4f} | {error:.3f} |")
    constants = regression(table, answers, weight)
    predicted = left_out(hits, features, part_of, times)
    for search in dict.fromkeys(hit.search for hit in hits):
        chosen_rows = np.array([hit.search == search for hit in hits])
        some = [hit for hit in hits if hit.search == search]
        show(
            f"{search}, a sixteenth of the questions left out in turn", some, predicted[chosen_rows]
        )
    print("\nconstants:", dict(zip(["constant", *features], constants.round(3), strict=True)))

"""What all rerankers share: they cut passages to a length, and score as many as time allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from qmd.errors import TransientInferenceError

#: No call begins that would end too late if each passage took this many times the longest so far.
_RESERVE = 1.25
#: A call that ends this many seconds before the time is up, or later, has used it up.
_TOLERANCE_S = 0.01

#: Scores a batch of passages within a number of seconds: a score for each, in their order.
Score = Callable[[Sequence[str], float], Sequence[float]]


def score_in_time(
    name: str,
    score: Score,
    passages: Sequence[str],
    timeout_s: float,
    *,
    first: int,
    most: int,
    clock: Callable[[], float] = monotonic,
) -> list[float | None]:
    """
    Score passages from the first to the last, until the time is up.

    The first call tells how long a passage takes. Each later one has as many passages as should
    take half of the time that is left, so that little is lost if they take longer.

    Args:
        name: The model, for messages.
        score: Raises TransientInferenceError if its seconds are over.
        passages: The most important first.
        first: How many passages the first call has.
        most: The most passages of one call.

    Returns:
        A score for each passage in their order; None for those that were not reached.

    Raises:
        TransientInferenceError: The time was up before any passage had a score.
        InferenceError: ``score`` failed for another reason than time.
    """
    end = clock() + timeout_s
    scores: list[float] = []
    longest_s = 0.0  # per passage
    while len(scores) < len(passages):
        began = clock()
        left_s = end - began
        if left_s <= _RESERVE * longest_s:
            break
        count = min(most, int(left_s / 2 / longest_s)) if longest_s else first
        batch = passages[len(scores) : len(scores) + max(1, count)]
        try:
            scores += score(batch, left_s)
        except TransientInferenceError:
            if not scores or clock() < end - _TOLERANCE_S:
                raise
            break
        longest_s = max(longest_s, (clock() - began) / len(batch))
    if passages and not scores:
        raise TransientInferenceError(
            f"{name} has scored none of {len(passages)} passages within {timeout_s:.1f} s.",
            hint="Use a smaller model, or a larger model_budget (QMD_MODEL_BUDGET).",
        )
    return [*scores, *[None] * (len(passages) - len(scores))]


def cut(text: str, tokens: int) -> str:
    """The beginning of a text; four letters count as a token, and so does a Chinese character."""
    if len(text) <= tokens:
        return text
    used = 0.0
    for place, character in enumerate(text):
        used += 1.0 if character >= "\u2e80" else 0.25
        if used > tokens:
            return text[:place]
    return text

"""
Estimates how many tokens a text is for a language model, and fits texts into a budget of tokens.

Each model has its own tokenizer, and qmd cannot know which one its caller has. So the estimate aims
at the middle of six: those of GPT-4o, Qwen 3, DeepSeek V3, Gemma 3 and Llama 3, and that of the
built-in model. ``benchmarks/tokens.py`` measures it: for each folder of English and of Chinese
documents, and for each of these tokenizers, the estimate is at most 15 % off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, TypeAlias, TypeVar

from qmd.errors import InputError
from qmd.records import NamedTuple
from qmd.values.facts import Describe, Obvious, Range

ItemT = TypeVar("ItemT")

#: The least budget of an answer: one hit with a short snippet, or a paragraph.
MIN_TOKENS = 300
#: The most bytes of a reply of `multi_get`, and over MCP of `get`, as JSON. Some MCP clients read
#: 1 MiB of a reply at most.
MAX_TOTAL_BYTES = 200_000

MaxTokens: TypeAlias = Annotated[
    int | None,
    Range(MIN_TOKENS),
    Describe("Most tokens to return", zh="最多返回多少 token"),
    Obvious(),
]
"""The budget of an answer, in estimated tokens; None for no budget."""


def check_max_tokens(max_tokens: int | None) -> None:
    """Raises InputError: The budget is too small for an answer."""
    if max_tokens is not None and max_tokens < MIN_TOKENS:
        raise InputError(
            f"The budget must be at least {MIN_TOKENS} tokens, not {max_tokens}.",
            hint="A hit with a short snippet takes about 100 tokens.",
        )


class Rate(NamedTuple):
    """The tokens that text of one kind takes: for each match of the pattern, and each character."""

    pattern: str
    match_cost: float
    character_cost: float
    #: The characters of a match that its cost includes.
    included: int = 0


_EAST_ASIAN = (
    "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
# Measured with benchmarks/tokens.py: the rates with the least squared relative errors.
RATES = (
    # A part of an English word or of a camelCase name.
    Rate("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", 0.87, 0.12, included=5),
    Rate("[0-9]+", 0, 0.86),
    Rate("[!-/:-@\\[-`{-~\u2010-\u2027]+", 1.3, 0.06, included=1),
    Rate("\n|[ \t]{2,}", 0.57, 0),
    Rate(f"[{_EAST_ASIAN}]+", 0, 0.64),
    # Letters of other scripts, or with accents.
    Rate(f"[^\\W\\d_\x00-\x7f{_EAST_ASIAN}]+", 0, 0.32),
    # Other symbols, most of them emoji.
    Rate(f"[^\\w\\s\x00-\x7f\u2010-\u2027{_EAST_ASIAN}]", 2.8, 0),
)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Rate], ...]:
    return tuple((re.compile(rate.pattern), rate) for rate in RATES)


def estimate_tokens(text: str) -> float:
    """
    Estimate how many tokens a text is.

    The sum over the lines of a text, each with its line end, is the estimate of the text.
    """
    tokens = 0.0
    for pattern, rate in _patterns():
        matches = pattern.findall(text)
        tokens += rate.match_cost * len(matches)
        if rate.character_cost:
            tokens += rate.character_cost * sum(
                len(match) - rate.included for match in matches if len(match) > rate.included
            )
    return tokens


def fit(
    items: Iterable[ItemT], size: Callable[[ItemT], float], room: float
) -> tuple[list[ItemT], float]:
    """The first items that have room together, and the room that is left; looks at one more."""
    fitting: list[ItemT] = []
    total = 0.0
    for item in items:
        more = total + size(item)
        if more > room:
            break
        fitting.append(item)
        total = more
    return fitting, room - total

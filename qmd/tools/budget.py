"""Fits lists into the budget of an answer: their first items, as many as there is room for."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BeforeValidator

from qmd.tools.arguments import whole_number
from qmd.values.facts import Describe, Range
from qmd.values.tokens import MIN_TOKENS, count_fitting, estimate_tokens
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT", bound="DataclassInstance")

#: The budget of a list, which endpoints take in the query string, so it has a greatest value.
ListTokens = Annotated[
    int | None,
    Range(MIN_TOKENS, 999_999),
    Describe("Most tokens to return"),
    BeforeValidator(whole_number),
]

#: The tokens of what stands around the lists: titles, counts, and what is left out.
_FRAME_TOKENS = 100


class ListBudget:
    """
    The room that an answer of lists has left.

    An item is counted as its JSON object, which is longer than its line of text.
    """

    def __init__(self, max_tokens: int | None) -> None:
        """``max_tokens``: the estimated tokens of the whole answer; None for no bound."""
        self._tokens = math.inf if max_tokens is None else max_tokens - _FRAME_TOKENS

    def take(self, items: Sequence[ItemT], *, share: float = 1) -> tuple[ItemT, ...]:
        """
        The first items, as many as fit.

        ``share``: the part of the room that these items may use; the rest is for other lists.
        """
        if self._tokens == math.inf:
            return tuple(items)
        sizes = [estimate_tokens(_json(item)) for item in items]
        count = count_fitting(sizes, share * self._tokens)
        self._tokens -= sum(sizes[:count])
        return tuple(items[:count])

    def fit(self, value: ValueT, name: str, *, share: float = 1) -> ValueT:
        """The value with what `take` leaves of its field of this name."""
        items = self.take(getattr(value, name), share=share)
        return replace(value, **{name: items})


def _json(item: object) -> str:
    # With spaces, as many clients show it to their model; compact JSON has fewer tokens.
    return json.dumps(to_wire(item), ensure_ascii=False) + ", "

"""Fits lists into the budget of an answer: their first items, as many as there is room for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from qmd.values.tokens import estimate_tokens, fit
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT", bound="DataclassInstance")

#: The tokens of what stands around the lists: titles, counts, and what is left out.
_FRAME_TOKENS = 100


class ListBudget:
    """
    The room that an answer of lists has left.

    An item is counted as its JSON object, which is longer than its line of text.
    """

    def __init__(
        self, max_tokens: int | None, *, as_object: Callable[[object], object] = to_wire
    ) -> None:
        """
        Args:
            max_tokens: The estimated tokens of the whole answer; None for no bound.
            as_object: Gives the JSON object of an item.
        """
        self._tokens = math.inf if max_tokens is None else max_tokens - _FRAME_TOKENS
        self._as_object = as_object

    def take(self, items: Sequence[ItemT], *, share: float = 1) -> tuple[ItemT, ...]:
        """
        The first items, as many as fit.

        ``share``: the part of the room that these items may use; the rest is for other lists.
        """
        if self._tokens == math.inf:
            return tuple(items)
        room = share * self._tokens
        fitting, left = fit(items, lambda item: estimate_tokens(self._json(item)), room)
        self._tokens -= room - left
        return tuple(fitting)

    def fit(self, value: ValueT, name: str, *, share: float = 1) -> ValueT:
        """
        The value with what `take` leaves of its field of this name.

        The items left out are added to the field ``left_out``, if the value has one.
        """
        items = getattr(value, name)
        taken = self.take(items, share=share)
        fields: dict[str, Any] = {name: taken}
        if hasattr(value, "left_out"):
            fields["left_out"] = value.left_out + len(items) - len(taken)
        return replace(value, **fields)

    def _json(self, item: object) -> str:
        # With spaces, as many clients show it to their model; compact JSON has fewer tokens.
        return json.dumps(self._as_object(item), ensure_ascii=False) + ", "

"""The argument ``max_tokens`` of tools and endpoints that list things."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from qmd.tools.arguments import whole_number
from qmd.values.facts import Describe, Range
from qmd.values.tokens import MIN_TOKENS

#: The budget of a list, which endpoints take in the query string, so it has a greatest value.
ListTokens = Annotated[
    int | None,
    Range(MIN_TOKENS, 999_999),
    Describe("Most tokens to return", zh="最多返回多少 token"),
    BeforeValidator(whole_number),
]

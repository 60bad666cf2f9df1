"""Other ways to ask the same question, from a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmd.errors import InferenceError

if TYPE_CHECKING:
    from qmd.inference.protocols import Expansion
    from qmd.search.models import SearchModels

#: Most expansions of one query.
EXPANSIONS = 5


@dataclass(frozen=True, slots=True)
class Expanded:
    """The expansions of a query; ``problem`` is a sentence where the expander failed."""

    expansions: Sequence[Expansion] = ()
    problem: str | None = None

    @property
    def for_words(self) -> list[str]:
        return [each.text for each in self.expansions if each.kind == "lex"]

    @property
    def for_meaning(self) -> list[str]:
        return [each.text for each in self.expansions if each.kind != "lex"]


def expand(text: str, intent: str | None, models: SearchModels) -> Expanded:
    """Ask the expander, if there is one; its failure takes nothing else away."""
    if models.expander is None or not text:
        return Expanded()
    prompt = f"{intent}\n{text}" if intent else text
    try:
        return Expanded(
            models.expander.expand(prompt, limit=EXPANSIONS, timeout_s=models.timeout_s)
        )
    except InferenceError as error:
        return Expanded(problem=f"Not expanded: {error}")

"""Questions, and the documents that answer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """
    One question. ``relevant`` is document → grade, 1 or more; empty where nothing answers it.

    A document is named ``collection/path``, ``path`` below its collection, or ``qmd://…``; in
    judgments that bring their own documents, by its id among them.
    """

    id: str
    text: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Judgments:
    """
    What a fixture holds. ``documents`` (id → Markdown) where it brings its own, else None;
    ``collection`` if it is about one.
    """

    name: str
    questions: tuple[JudgedQuestion, ...]
    collection: str | None = None
    documents: Mapping[str, str] | None = None

    def first(self, number: int) -> Judgments:
        """``number`` of the questions, spread evenly over all."""
        total = len(self.questions)
        if number >= total:
            return self
        chosen = tuple(self.questions[i * total // number] for i in range(number))
        return replace(self, questions=chosen)

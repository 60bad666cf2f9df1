"""Holds questions with the documents that answer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """
    One question.

    ``relevant`` maps each document that answers it to a grade of 1 or more; it is empty if none
    does. A document is named ``collection/path``, ``path`` below its collection, or ``qmd://…``;
    if the judgments bring their own documents, by its id.
    """

    id: str
    text: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Judgments:
    """
    The contents of a fixture.

    Attributes:
        collection: The collection that the questions are about; None for all.
        documents: Id → Markdown of the documents that the fixture brings; None for the user's.
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
        chosen = tuple(self.questions[index * total // number] for index in range(number))
        return replace(self, questions=chosen)

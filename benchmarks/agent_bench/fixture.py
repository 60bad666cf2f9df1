"""Reads the questions of `benchmarks/agent.py`. docs/evaluation.md shows what they look like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qmd.errors import InputError
from qmd.evaluate.fixtures import HINT, objects

MAX_FACT_CHARS = 500
"""The longest fact of a fixture."""


@dataclass(frozen=True, slots=True)
class Fact:
    """
    Words, or a ``/regular expression/``, that an answer has or has not.

    Capitals and the number of blanks make no difference.
    """

    source: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """
    One question.

    Attributes:
        files: The names of the notes that answer it; empty if nothing answers it.
        facts: What the answer must have.
        forbidden: What the answer must not have.
    """

    id: str
    text: str
    files: tuple[str, ...]
    facts: tuple[Fact, ...]
    forbidden: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class AgentQuestions:
    """The contents of a fixture."""

    name: str
    questions: tuple[AgentQuestion, ...]

    def first(self, number: int) -> AgentQuestions:
        """``number`` of the questions, spread evenly over all."""
        total = len(self.questions)
        if number >= total:
            return self
        chosen = tuple(self.questions[index * total // number] for index in range(number))
        return replace(self, questions=chosen)


def read(path: Path) -> AgentQuestions:
    """
    Read a fixture: JSON or JSON lines.

    Raises:
        InputError: The fixture cannot be read or is invalid; the message says where.
    """
    entries = objects(path, "questions", "question")
    questions = tuple(
        _question(entry, str(number), f"{path.name}, question {number}")
        for number, entry in enumerate(entries, 1)
    )
    ids = [question.id for question in questions]
    for question_id in ids:
        if ids.count(question_id) > 1:
            raise InputError(f"{path.name}: the id {question_id!r} occurs twice", hint=HINT)
    return AgentQuestions(path.name, questions)


def _question(entry: Mapping[str, Any], number: str, place: str) -> AgentQuestion:
    text = entry.get("question")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f'{place}: no "question", which is a text', hint=HINT)
    question_id = entry.get("id", number)
    if not isinstance(question_id, str | int):
        raise InputError(f'{place}: "id" must be a text or a number', hint=HINT)
    if "files" not in entry:
        raise InputError(
            f'{place}: "files" must list the notes that answer it; [] if nothing does', hint=HINT
        )
    return AgentQuestion(
        str(question_id),
        text,
        tuple(_texts(entry, "files", place)),
        tuple(_fact(fact, place) for fact in _texts(entry, "must", place)),
        tuple(_fact(fact, place) for fact in _texts(entry, "must_not", place)),
    )


def _texts(entry: Mapping[str, Any], key: str, place: str) -> list[str]:
    value = entry.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(t, str) and t.strip() for t in texts):
        raise InputError(f'{place}: "{key}" must be a text or a list of texts', hint=HINT)
    return texts


def _fact(source: str, place: str) -> Fact:
    if len(source) > MAX_FACT_CHARS:
        raise InputError(f"{place}: a fact is longer than {MAX_FACT_CHARS} characters", hint=HINT)
    is_pattern = len(source) > 2 and source.startswith("/") and source.endswith("/")
    pattern = source[1:-1] if is_pattern else r"\s+".join(map(re.escape, source.split()))
    try:
        return Fact(source, re.compile(pattern, re.IGNORECASE))
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            f"{place}: {source} is no regular expression: {error}", hint=HINT
        ) from None

"""A turn of a conversation as the Ask view shows it: what its templates read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from markupsafe import Markup

from qmd.engine_text import EngineText
from qmd.system import clock

SHORT_CHARS = 200
"""Of a parameter in a card; all of it is under "All parameters"."""
PROBLEM_CHARS = 600
"""Of the reason of a failed call in a card; all of it is under "Result"."""

_LINE_KINDS = {"+": "added", "-": "removed", "@": "place"}


@dataclass
class WordsStep:
    """
    What the model writes between its tool calls.

    Attributes:
        requests: How often the model was asked until then, by which a script knows them.
        shown: The beginning of ``text`` whose Markdown is complete.
        html: What ``shown`` looks like.
    """

    text: str
    requests: int = 0
    shown: str = ""
    html: Markup = field(default_factory=Markup)
    kind: Literal["words"] = "words"

    @property
    def rest(self) -> str:
        return self.text[len(self.shown) :]

    @property
    def shown_units(self) -> int:
        """The length of ``shown`` as a script counts it."""
        return len(self.shown.encode("utf-16-le")) // 2


@dataclass
class ToolStep:
    """
    A tool call.

    Attributes:
        at: When it began, ISO 8601; None in turns of earlier versions.
        success, result, duration_ms: None while it runs.
    """

    id: str
    call: int
    tool: str
    params: Mapping[str, Any]
    writes: bool = False
    at: str | None = None
    success: bool | None = None
    result: str | None = None
    duration_ms: float | None = None
    kind: Literal["tool"] = "tool"

    @property
    def short(self) -> list[tuple[str, str]]:
        """The parameters with the beginnings of their values."""
        return [(name, _cut(_text_of(value))) for name, value in self.params.items()]

    @property
    def problem(self) -> str:
        """Why it failed, in short; `result` has all of it. "" if it did not fail."""
        return "" if self.success in (None, True) else _cut(self.result or "", PROBLEM_CHARS)

    @property
    def long(self) -> str:
        """All parameters as JSON, if `short` has left out something; else ""."""
        if all(len(_text_of(value)) <= SHORT_CHARS for value in self.params.values()):
            return ""
        return json.dumps(self.params, ensure_ascii=False, indent=2)


@dataclass
class BadStep:
    """A block that is no tool call."""

    id: str
    error: str
    block: str
    kind: Literal["bad"] = "bad"


@dataclass
class QuestionStep:
    """
    A write that waits, or waited, for the person.

    Attributes:
        diff: The lines of the change, each with its kind: "added", "removed", "place" or "".
        outcome: None while it waits.
        seconds_left: How long it still waits.
    """

    id: str
    chat: str
    question: str
    tool: str
    file: str
    diff: Sequence[tuple[str, str]]
    left_out: str = ""
    outcome: Literal["agreed", "declined", "timeout", "stopped"] | None = None
    seconds_left: float = 0
    kind: Literal["question"] = "question"


Step = WordsStep | ToolStep | BadStep | QuestionStep


@dataclass(frozen=True)
class ShownSource:
    """A citation in the list below an answer."""

    number: int
    file: str
    first: int
    last: int
    quote: str
    ok: bool
    reason: str
    address: str


@dataclass
class TurnView:
    """
    A question and all that came of it.

    Attributes:
        number: Of the turn within its conversation, from 1.
        status: "running", "done", "stopped", "failed", "limit" or "interrupted".
        steps: What happened before the answer.
        answer: The answer in Markdown.
        html: The answer as it is shown.
        citations: The citations of the answer, as its event holds them.
        unsupported: Sentences of the answer without a source.
        seconds: How long it took, or has taken until now.
    """

    chat: str
    number: int
    question: str
    status: str = "running"
    steps: list[Step] = field(default_factory=list)
    answer: str = ""
    html: Markup = field(default_factory=Markup)
    citations: Sequence[Mapping[str, Any]] = ()
    unsupported: Sequence[str] = ()
    sources: Sequence[ShownSource] = ()
    error: Mapping[str, Any] | None = None
    seconds: float = 0
    may_retry: bool = False
    requests: int = 0

    @property
    def id(self) -> str:
        return f"turn-{self.number}"

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    def take(self, kind: str, data: Mapping[str, Any]) -> None:
        """Take the next event of the turn."""
        match kind:
            case "asking" | "discard":
                self.requests += kind == "asking"
                self._drop_words()  # of an answer that was broken off
                self.error = None
            case "text":
                self._add_words(data["text"])
            case "tool_started" | "bad_block" | "question":
                self.steps.append(_new_step(self, kind, data))
            case "tool_finished":
                self._finish_call(data)
            case "answered":
                self._answer_question(data)
            case "answer":
                self._drop_words()  # the answer holds them
                self.answer = data["text"]
                self.citations = data["citations"]
                self.unsupported = data["unsupported"]
            case "error":
                phrases = data.get("phrases", {}).items()
                self.error = {
                    **data,
                    **{name: EngineText.from_json(each) for name, each in phrases},
                }

    def _words(self) -> WordsStep | None:
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, WordsStep) else None

    def _drop_words(self) -> None:
        if self._words() is not None:
            self.steps.pop()

    def _add_words(self, text: str) -> None:
        words = self._words()
        if words is not None:
            words.text += text
        elif text.strip():
            self.steps.append(WordsStep(text, self.requests))

    def _finish_call(self, data: Mapping[str, Any]) -> None:
        for step in self.steps:
            if isinstance(step, ToolStep) and step.call == data["call"]:
                step.success = data["success"]
                step.result = data["result"]
                step.duration_ms = data["duration_ms"]

    def _answer_question(self, data: Mapping[str, Any]) -> None:
        for step in self.steps:
            if isinstance(step, QuestionStep) and step.question == str(data["question"]):
                step.outcome = data["outcome"]


def _new_step(turn: TurnView, kind: str, data: Mapping[str, Any]) -> Step:
    step_id = f"{turn.id}-step-{len(turn.steps) + 1}"
    if kind == "bad_block":
        return BadStep(step_id, data["error"], data["block"])
    if kind == "tool_started":
        return ToolStep(
            step_id, data["call"], data["tool"], data["params"], data["writes"], data.get("at")
        )
    lines = data["diff"]
    if data["left_out"]:  # the last line says so
        lines = lines[:-1]
    return QuestionStep(
        id=step_id,
        chat=turn.chat,
        question=str(data["question"]),
        tool=data["tool"],
        file=data["file"],
        diff=diff_lines(lines),
        left_out=data["left_out"],
        seconds_left=max(0.0, data["timeout_s"] - seconds_since(data["asked_at"])),
    )


_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)


def finished(text: str) -> str:
    """The blocks of Markdown at the beginning of a text to which nothing more can be added."""
    text = text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""
    fences = [match.start() for match in _FENCE.finditer(text)]
    return text[: fences[-1]] if len(fences) % 2 else text


def diff_lines(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Lines of a change, each with the class that colours it."""
    return [(_LINE_KINDS.get(line[:1], ""), line) for line in lines]


def seconds_since(moment: str) -> float:
    """How long ago a time in ISO 8601 was, in seconds."""
    began = clock.parse(moment)
    return max(0.0, (datetime.now(timezone.utc) - began).total_seconds())


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, chars: int = SHORT_CHARS) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"

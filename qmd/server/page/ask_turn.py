"""A turn of a conversation as the Ask view shows it: what its templates read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from markupsafe import Markup

from qmd.engine_text import EngineText
from qmd.system import clock

_OPEN = dict.fromkeys(("at", "success", "result", "duration_ms", "outcome"))
"""What a step lacks as long as it goes on; turns of earlier versions lack ``at``, too."""


@dataclass
class TurnView:
    """
    A question and all that came of it.

    Attributes:
        number: Of the turn within its conversation, from 1.
        status: "running", "done", "stopped", "failed", "limit" or "interrupted".
        steps: What happened before the answer: the data of the events ``text``, ``tool_started``,
            ``bad_block`` and ``question``, each with that of the event that completes it.
        answer: The answer in Markdown.
        html: The answer as it is shown.
        citations: The citations of the answer, as its event holds them.
        unsupported: Sentences of the answer without a source.
        sources: Its citations as the list below it has them (`qmd.server.page.answer.sources_of`).
        rounds: How often the model was asked.
        seconds: How long it took, or has taken until now.
    """

    chat: str
    number: int
    question: str
    status: str = "running"
    steps: list[dict[str, Any]] = field(default_factory=list)
    answer: str = ""
    html: Markup = field(default_factory=Markup)
    citations: Sequence[Mapping[str, Any]] = ()
    unsupported: Sequence[str] = ()
    sources: Sequence[Mapping[str, Any]] = ()
    error: Mapping[str, Any] | None = None
    seconds: float = 0
    may_retry: bool = False
    rounds: int = 0

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
                self.rounds += kind == "asking"
                self._drop_words()  # of an answer that was broken off
                self.error = None
            case "text":
                self._add_words(data["text"])
            case "tool_started" | "bad_block":
                self._add(kind, **data)
            case "question":
                left = data["timeout_s"] - seconds_since(data["asked_at"])
                self._add(kind, **data, seconds_left=max(0.0, left))
            case "tool_finished":
                self._complete("call", data)
            case "answered":
                self._complete("question", data)
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

    def _add(self, kind: str, **data: Any) -> None:
        step_id = f"{self.id}-step-{len(self.steps) + 1}"
        self.steps.append({"kind": kind, "id": step_id, "chat": self.chat, **_OPEN, **data})

    def _add_words(self, text: str) -> None:
        if self.steps and self.steps[-1]["kind"] == "text":
            self.steps[-1]["text"] += text
        elif text.strip():
            self._add("text", text=text, round=self.rounds)

    def _drop_words(self) -> None:
        if self.steps and self.steps[-1]["kind"] == "text":
            self.steps.pop()

    def _complete(self, name: str, data: Mapping[str, Any]) -> None:
        """Add what came of a tool call, or of a question."""
        for step in self.steps:
            if step.get(name) == data[name]:
                step.update(data)


_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)


def finished(text: str) -> str:
    """The blocks of Markdown at the beginning of a text to which nothing more can be added."""
    text = text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""
    fences = [match.start() for match in _FENCE.finditer(text)]
    return text[: fences[-1]] if len(fences) % 2 else text


def seconds_since(moment: str) -> float:
    """How long ago a time in ISO 8601 was, in seconds."""
    began = clock.parse(moment)
    return max(0.0, (datetime.now(timezone.utc) - began).total_seconds())

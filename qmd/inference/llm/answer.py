"""Messages to a language model, the answer, and how the pieces of a stream become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from qmd.errors import InferenceError, TransientInferenceError
from qmd.system.surrogates import whole

MAX_CHARS = 1_000_000
"""The longest answer. No model writes that much; a broken server may."""

MAX_TOKENS = 1_000_000_000
"""A server that counts more tokens in one request is not believed."""

SECRET_CHARS = 8
"""A shorter key is not masked: it is a placeholder such as "ollama", an ordinary word."""

MASK = "***"

_OPEN, _CLOSE = "<think>", "</think>"
_MAX_BLANKS = 1000  # characters; after more blanks than these no thoughts are expected


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one request, as the server counts them."""

    prompt_tokens: int
    completion_tokens: int


def usage_of(reply: Mapping[str, Any]) -> Usage | None:
    """The ``usage`` of a reply, or of the last chunk of a stream; None without a valid one."""
    usage = reply.get("usage")
    if not isinstance(usage, Mapping):
        return None
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    prompt, completion = (n if type(n) is int and 0 <= n <= MAX_TOKENS else None for n in counts)
    return None if prompt is None or completion is None else Usage(prompt, completion)


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """
    One turn of the model.

    ``reasoning`` holds the thoughts before ``text``, if the model shows them. ``finish_reason`` is
    the server's word: ``stop``, ``length`` (the answer was cut off), or another. ``usage`` is None
    if the server does not count tokens.
    """

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of an answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Retry:
    """The request failed and is sent again after ``pause_s``; the pieces so far are void."""

    reason: str
    pause_s: float
    attempt: int


Event = Delta | Retry


class Assembly:
    """
    Puts an answer together from the pieces of a stream, or from a reply in one piece.

    Args:
        key: Masked in the answer, in case the server sends it back.
    """

    def __init__(self, key: str | None = None) -> None:
        self._texts = _Cleaner(key)
        self._thoughts = _Cleaner(key)
        self._split = _ThoughtSplitter()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.size = 0  # characters of text and thoughts that came
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self._has_tool_calls = False  # in fields of the reply, which qmd does not offer

    def add(self, choice: Mapping[str, Any], part: Literal["delta", "message"]) -> str:
        """Take in a choice of the server's reply. Returns the new text."""
        content = choice.get(part)
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]
        if not isinstance(content, Mapping):
            return ""
        self._has_tool_calls = self._has_tool_calls or bool(
            content.get("tool_calls") or content.get("function_call")
        )
        thought = content.get("reasoning_content") or content.get("reasoning")
        if isinstance(thought, str):
            self._reasoning.append(self._thoughts.feed(self._counted(thought)))
        return self._take(self._texts.feed(self._counted(_plain(content.get("content")))))

    def end(self) -> str:
        """Nothing more will come. Returns the text that was held back."""
        self._reasoning.append(self._thoughts.end())
        shown = self._take(self._texts.end())
        rest, thought = self._split.end()
        self._text.append(rest)
        self._reasoning.append(thought)
        return shown + rest

    def answer(self) -> ChatAnswer:
        """The whole answer. Raises TransientInferenceError or InferenceError if it has no text."""
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        if not text.strip():
            if self.finish_reason == "length":
                raise InferenceError(
                    "The model's answer was cut off before it said anything.",
                    hint="It may think for too long: ask for less, or choose another model.",
                )
            if self._has_tool_calls:
                raise TransientInferenceError(
                    "The model called a tool in the server's way, which it was not asked for,"
                    " and said nothing.",
                    hint="Try again, choose another model, or switch off the server's own tools.",
                )
            raise TransientInferenceError(
                "The model answered with nothing.", hint="Try again, or choose another model."
            )
        return ChatAnswer(text, reasoning, self.finish_reason, self.usage)

    def _take(self, text: str) -> str:
        shown, thought = self._split.feed(text)
        self._text.append(shown)
        self._reasoning.append(thought)
        return shown

    def _counted(self, text: str) -> str:
        """The same text. Raises InferenceError if the answer becomes too long."""
        self.size += len(text)
        if self.size > MAX_CHARS:
            raise InferenceError(
                f"The model's answer is longer than {MAX_CHARS:,} characters.",
                hint="The server may be broken; try again or choose another one.",
            )
        return text


def _plain(content: object) -> str:
    """The text of a message, which some servers send as a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


class _Cleaner:
    """
    Masks the key and joins surrogate pairs, also where they are split over two pieces.

    A lone surrogate would raise an error when it is printed or sent back.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key if key is not None and len(key) >= SECRET_CHARS else None
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._held + text
        keep = 1 if text and "\ud800" <= text[-1] <= "\udbff" else 0
        if self._key is not None:
            text = text.replace(self._key, MASK)
            longest = min(len(self._key) - 1, len(text))
            keep = next(
                (n for n in range(longest, keep, -1) if self._key.startswith(text[-n:])), keep
            )
        self._held = text[len(text) - keep :]
        return whole(text[: len(text) - keep])

    def end(self) -> str:
        held, self._held = self._held, ""
        return whole(held)


class _ThoughtSplitter:
    """Parts ``<think>…</think>`` at the very beginning from the text that follows."""

    def __init__(self) -> None:
        self._state: Literal["begin", "thinking", "gap", "text"] = "begin"
        self._held = ""

    def feed(self, text: str) -> tuple[str, str]:
        """The text and the thoughts that no later piece can change."""
        thought = ""
        held = self._held + text
        if self._state == "begin":
            start = held.lstrip()
            if start.startswith(_OPEN):
                self._state, held = "thinking", start[len(_OPEN) :]
            elif not _OPEN.startswith(start) or len(held) > _MAX_BLANKS:  # "" decides nothing
                self._state = "text"
        if self._state == "thinking":
            thought, close, rest = held.partition(_CLOSE)
            if close:
                self._state, held = "gap", rest
            else:
                keep = next((n for n in range(len(_CLOSE) - 1, 0, -1)
                             if held.endswith(_CLOSE[:n])), 0)  # fmt: skip
                thought, held = held[: len(held) - keep], held[len(held) - keep :]
        if self._state == "gap":
            held = held.lstrip()
            if held:
                self._state = "text"
        if self._state == "text":
            self._held = ""
            return held, thought
        self._held = held
        return "", thought

    def end(self) -> tuple[str, str]:
        held, self._held = self._held, ""
        return ("", held) if self._state == "thinking" else (held, "")

"""Messages to a language model, its answer, and the fence around texts of documents."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from qmd.errors import InferenceError, TransientInferenceError
from qmd.values.text import replace_halves

#: The longest answer. No model writes that much; a broken server may.
MAX_CHARS = 1_000_000

#: A server that counts more tokens in one request is not believed.
MAX_TOKENS = 1_000_000_000

#: A shorter key is not masked: it is a placeholder such as "ollama", an ordinary word.
SECRET_CHARS = 8

MASK = "***"

#: What a piece of a native call counts for at least; a broken server may send empty ones.
_CALL_COST = " " * 20

_OPEN, _CLOSE = "<think>", "</think>"
_MAX_BLANKS = 1000  # characters; after more blanks than these no thoughts are expected


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A call of a tool in the server's own form; ``arguments`` should be a JSON object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """
    One message of a conversation.

    Attributes:
        calls: The native calls of an assistant's message.
        call_id: The call whose result a tool's message is.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[NativeCall, ...] = ()
    call_id: str = ""


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
    if the server does not count tokens. ``calls`` are the native calls of tools, if the request
    offered tools.
    """

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    calls: tuple[NativeCall, ...] = ()


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
        offers_tools: Whether the request offered tools, so that the answer may call them.
    """

    def __init__(self, key: str | None = None, *, offers_tools: bool = False) -> None:
        self._calls = CallAssembly() if offers_tools else None
        self._key = key
        self._texts = _Cleaner(key)
        self._thoughts = _Cleaner(key)
        self._split = _ThoughtSplitter()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.size = 0  # characters of text and thoughts that came
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self._has_tool_calls = False  # in fields of the reply

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
        if self._calls is not None:
            self._calls.add(content.get("tool_calls"), self._counted)
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
        calls = () if self._calls is None else self._calls.calls(self._masked)
        if not text.strip() and not calls:
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
        return ChatAnswer(text, reasoning, self.finish_reason, self.usage, calls)

    def _masked(self, text: str) -> str:
        cleaner = _Cleaner(self._key)
        return cleaner.feed(text) + cleaner.end()

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


@dataclass(slots=True)
class _PartialCall:
    """A native call that is still arriving."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class CallAssembly:
    """
    Puts native calls together from the pieces of a stream, whatever a server makes of them.

    Some servers give each call the index 0, send the name with each piece, or send the arguments
    as an object instead of a string.
    """

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._latest: dict[object, _PartialCall] = {}  # index → the last call with it

    def add(self, pieces: object, counted: Callable[[str], str]) -> None:
        """
        Take in the field ``tool_calls`` of a message or of a delta.

        Args:
            counted: Returns a text, or raises InferenceError if the answer becomes too long.
        """
        for position, piece in enumerate(pieces if isinstance(pieces, list) else ()):
            function = piece.get("function") if isinstance(piece, Mapping) else None
            if not isinstance(function, Mapping):
                continue
            index = piece.get("index")
            call = self._call(index if isinstance(index, int) else position, piece.get("id"))
            name = function.get("name")
            if isinstance(name, str) and name != call.name:
                call.name += counted(name)
            arguments = function.get("arguments")
            if isinstance(arguments, Mapping):
                arguments = _json(arguments)
            if isinstance(arguments, str):
                call.arguments.append(counted(arguments))
            counted(_CALL_COST)

    def _call(self, index: int, call_id: object) -> _PartialCall:
        call = self._latest.get(index)
        call_id = call_id if isinstance(call_id, str) else ""
        if call is None or (call.id and call_id not in ("", call.id)):
            call = self._latest[index] = _PartialCall()
            self._calls.append(call)
        call.id = call.id or call_id
        return call

    def calls(self, masked: Callable[[str], str]) -> tuple[NativeCall, ...]:
        """
        The calls, in their order.

        Args:
            masked: Returns a text without the key.
        """
        return tuple(
            NativeCall(masked(call.id), masked(call.name), masked("".join(call.arguments)))
            for call in self._calls
        )


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply)"


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
        return replace_halves(text[: len(text) - keep])

    def end(self) -> str:
        held, self._held = self._held, ""
        return replace_halves(held)


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


_REMOVED = "[mark removed]"


@dataclass(frozen=True, slots=True)
class Fence:
    """
    Two lines around a text, with a mark that the text cannot contain.

    The author of a document cannot know the mark: it is random, and new for each conversation.
    """

    mark: str

    @classmethod
    def new(cls) -> Fence:
        return cls(secrets.token_hex(16))

    @property
    def opening(self) -> str:
        return f"<data-{self.mark}>"

    @property
    def closing(self) -> str:
        return f"</data-{self.mark}>"

    def around(self, text: str) -> str:
        """
        The text between the two lines, unchanged.

        Only the mark is removed from it: a model could have written the mark into a note.
        """
        inside = re.sub(re.escape(self.mark), _REMOVED, text, flags=re.IGNORECASE)
        return f"{self.opening}\n{inside}\n{self.closing}"

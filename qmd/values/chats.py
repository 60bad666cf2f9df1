"""Conversations with the agent, as they are kept and shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from qmd.errors import InputError
from qmd.records import dataclass
from qmd.values.facts import Describe, Inline, Range
from qmd.values.text import estimate_tokens

#: Whether the agent may only read, or may also write what the person agrees to.
ChatMode = Literal["read", "write"]

#: ``limit``: out of rounds or time. ``interrupted``: the process that ran the turn has ended.
TurnStatus = Literal["running", "done", "stopped", "failed", "limit", "interrupted"]

#: How a turn ends that can be resumed: without an answer.
RESUMABLE: tuple[TurnStatus, ...] = ("failed", "stopped", "limit", "interrupted")

#: The most conversations that are kept. No old one is removed: a further one is refused.
MAX_CHATS = 2_000
#: The most turns of one conversation.
MAX_TURNS = 200
#: The most bytes of one conversation.
MAX_CHAT_BYTES = 16 * 1024 * 1024
#: The most characters of a question.
MAX_QUESTION = 100_000
#: The most characters of a conversation's name.
MAX_NAME = 120
#: How often the model is asked for one question, at most.
MAX_ROUNDS = 10
#: The columns of a name that is made of the first question.
_NAME_COLUMNS = 60


def check_question(question: str, window: int) -> None:
    """
    Refuse a question that leaves the model no room for results and an answer.

    Args:
        window: How many tokens the model takes.

    Raises:
        InputError: The question is blank, or longer than a quarter of the window.
    """
    if not question:
        raise InputError("The question is blank.", hint="Ask something.")
    most = window // 4
    if len(question) > MAX_QUESTION or estimate_tokens(question) > most:
        raise InputError(
            f"The question is longer than {most:,} tokens, a quarter of what the model takes.",
            hint="Put the text into a note and name it; or raise llm_window if the model"
            " takes more.",
        )


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """A conversation without its turns."""

    id: Annotated[str, Describe("Random; part of the address of the conversation")]
    name: str
    mode: ChatMode
    created: Annotated[str, Describe("ISO 8601, UTC")]
    updated: Annotated[str, Describe("When its last turn began or ended")]
    turns: Annotated[int, Range(0), Describe("How many questions were asked")]


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """Something that happened in a turn; docs/agent.md lists the kinds and their data."""

    kind: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """
    A turn as it is stored, and exported.

    Attributes:
        process: The process that runs the turn (`qmd.store.store.Store.process_name`).
        events: What happened, as JSON.
        messages: What was said to the model and by it, as JSON.
    """

    number: int
    question: str
    answer: str
    status: TurnStatus
    started: str
    seconds: float
    process: str
    events: str
    messages: str


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A question and what came of it."""

    number: Annotated[int, Range(1), Describe("Counts from 1 within the conversation")]
    question: str
    answer: Annotated[str, Describe("The text of the answer; empty without one")]
    status: TurnStatus
    started: Annotated[str, Describe("ISO 8601, UTC")]
    seconds: Annotated[float, Describe("How long it took")]
    events: tuple[ChatEvent, ...]


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation with its turns."""

    info: Annotated[ChatInfo, Inline("id", "name", "mode", "created", "updated")]
    turns: tuple[ChatTurn, ...]


@dataclass(frozen=True, slots=True)
class ChatPage:
    """Conversations, those that went on last first."""

    chats: tuple[ChatInfo, ...]
    total: Annotated[int, Range(0), Describe("How many there are on all pages")]


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came of a question."""

    chat: Annotated[str, Describe("The id of the conversation")]
    name: str
    number: Annotated[int, Range(1), Describe("Which question of the conversation it is")]
    status: TurnStatus
    kept: Annotated[bool, Describe("Whether the conversation is in the database")]
    answer: Annotated[str, Describe("Markdown; empty without an answer")]
    citations: Sequence[Mapping[str, object]]
    unsupported: Annotated[
        Sequence[str], Describe("The sentences of the answer that no citation supports")
    ]
    tools: Annotated[
        Sequence[ChatEvent], Describe("The events tool_started and tool_finished of all calls")
    ]
    error: Annotated[Mapping[str, object] | None, Describe("What ended the turn, if an error did")]


def chat_name(question: str) -> str:
    """
    The name of a conversation that begins with a question: its first line that has a letter, on
    about 60 columns, cut after a sentence or between words if there is a place for it.
    """
    lines = (" ".join(line.split()).lstrip("#>*-– ") for line in question.splitlines())
    line = next((line for line in lines if any(map(str.isalnum, line))), question.strip()[:80])
    columns = 0
    for position, character in enumerate(line):
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns > _NAME_COLUMNS:
            return _cut(line[:position]) + "…"
    return line


def _cut(text: str) -> str:
    """The text as far as the last good place for an end in its second half."""
    for ends in ("。！？；.!?;", "，、,：:", " "):
        place = max(text.rfind(end) for end in ends)
        if place >= len(text) // 2:
            return text[:place].rstrip(" ,.;:，、。；：")
    return text

"""Conversations with the agent, and their turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from qmd.values.chats import ChatInfo, ChatMode, TurnStatus


class StoredTurn(NamedTuple):
    """
    A turn as the store keeps it.

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


class ChatSummary(NamedTuple):
    """What the model wrote of the first ``turns`` turns; 0: there is no summary."""

    text: str
    turns: int


class Conversations(Protocol):
    """Reads conversations."""

    def count(self, words: Sequence[str] = ()) -> int:
        """How many conversations `latest` lists without a limit."""
        ...

    def latest(self, words: Sequence[str] = (), *, limit: int, offset: int = 0) -> list[ChatInfo]:
        """
        Conversations, those that went on last first.

        Args:
            words: Each must occur in the name, or in a question or answer. ASCII letters match in
                either case. Without an index: the cost grows with the text of all conversations.
        """
        ...

    def get(self, chat_id: str) -> ChatInfo | None: ...

    def owner(self, chat_id: str) -> str | None:
        """
        Whose conversation it is: the id of a token, "" for the administrator; None without one.
        """
        ...

    def count_of(self, owner: str) -> int:
        """How many conversations an owner has."""
        ...

    def summary(self, chat_id: str) -> ChatSummary: ...

    def turns(self, chat_id: str) -> list[StoredTurn]:
        """The turns of a conversation in order."""
        ...

    def bytes(self, chat_id: str) -> int:
        """The bytes of all turns of a conversation."""
        ...

    def running(self) -> list[tuple[str, int, str]]:
        """Of each turn that runs, or whose process has ended: conversation, number, process."""
        ...


class ConversationsWriter(Conversations, Protocol):
    """Keeps conversations."""

    def add(self, chat: ChatInfo, owner: str = "") -> None:
        """Add a conversation; ``owner`` as in `Conversations.owner`."""
        ...

    def rename(self, chat_id: str, name: str) -> None: ...

    def set_mode(self, chat_id: str, mode: ChatMode) -> None: ...

    def set_summary(self, chat_id: str, summary: ChatSummary) -> None: ...

    def put(self, chat_id: str, turn: StoredTurn) -> None:
        """Add a turn, or replace the one with its number. Without such a conversation: nothing."""
        ...

    def restore(self, chat: ChatInfo, summary: ChatSummary, turns: Sequence[StoredTurn]) -> None:
        """Add a conversation of another database with its times; there must be none of its id."""
        ...

    def set_status(self, chat_id: str, number: int, status: TurnStatus) -> None: ...

    def delete(self, chat_id: str) -> bool:
        """Delete a conversation with its turns; False if there is none."""
        ...

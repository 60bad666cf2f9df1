"""Where conversations are kept: in a knowledge base, or in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Protocol

from qmd.errors import ChatNotFoundError
from qmd.store.sql.conversations import ChatSummary, KeptChat, StoredTurn
from qmd.system import clock
from qmd.values.chats import ChatInfo, ChatMode

MOST_IN_MEMORY = 20
"""The most conversations in memory; those that went on longest ago are forgotten."""


class ChatStore(Protocol):
    """Keeps conversations: a `KnowledgeBase`, or a `ChatMemory`."""

    def stored_chat(self, chat_id: str) -> KeptChat:
        """All that is kept of a conversation. Raises ChatNotFoundError."""
        ...

    def begin_chat_turn(self, chat_id: str, name: str, mode: ChatMode, turn: StoredTurn) -> None:
        """Keep a turn that begins, in a new conversation or in an earlier one."""
        ...

    def keep_chat_turn(self, chat_id: str, turn: StoredTurn) -> None:
        """Keep what has come of a turn so far."""
        ...

    def keep_chat_summary(self, chat_id: str, summary: ChatSummary) -> None:
        """Keep the summary of the first turns."""
        ...


class ChatMemory:
    """
    The latest conversations of this process: those of `qmd ask`, and those with a database that is
    only read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: OrderedDict[str, KeptChat] = OrderedDict()

    def stored_chat(self, chat_id: str) -> KeptChat:
        with self._lock:
            if chat_id not in self._chats:
                raise ChatNotFoundError(chat_id)
            kept = self._chats[chat_id]
            return kept._replace(turns=list(kept.turns))

    def begin_chat_turn(self, chat_id: str, name: str, mode: ChatMode, turn: StoredTurn) -> None:
        new = ChatInfo(chat_id, name, mode, turn.started, turn.started, 0)
        with self._lock:
            before = self._chats.pop(chat_id, KeptChat(new, ChatSummary("", 0), []))
            turns = [each for each in before.turns if each.number != turn.number] + [turn]
            info = replace(before.info, mode=mode, updated=clock.now(), turns=len(turns))
            self._chats[chat_id] = before._replace(info=info, turns=turns)
            while len(self._chats) > MOST_IN_MEMORY:
                self._chats.popitem(last=False)

    def keep_chat_turn(self, chat_id: str, turn: StoredTurn) -> None:
        with self._lock:
            if chat_id in self._chats:
                turns = self._chats[chat_id].turns
                turns[:] = [turn if each.number == turn.number else each for each in turns]

    def keep_chat_summary(self, chat_id: str, summary: ChatSummary) -> None:
        with self._lock:
            if chat_id in self._chats:
                self._chats[chat_id] = self._chats[chat_id]._replace(summary=summary)

"""Where conversations are kept: in the database, or in memory while it can only be read."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import Protocol

from qmd.errors import ChatNotFoundError, QmdError
from qmd.kb import KnowledgeBase
from qmd.store.sql.conversations import ChatSummary, StoredTurn
from qmd.system import clock
from qmd.values.chats import ChatInfo, ChatMode

MOST_IN_MEMORY = 20
"""The most conversations in memory; those that went on longest ago are forgotten."""

_log = logging.getLogger(__name__)

KeptChat = tuple[ChatInfo, ChatSummary, list[StoredTurn]]


class ChatKeeper(Protocol):
    """Keeps conversations; ``lasts`` says whether they outlive the process."""

    @property
    def lasts(self) -> bool: ...

    def load(self, chat_id: str) -> KeptChat:
        """Raises ChatNotFoundError."""
        ...

    def begin(self, chat_id: str, name: str, mode: ChatMode, turn: StoredTurn) -> ChatInfo:
        """Raises ConflictError: Too many conversations, or too long a one."""
        ...

    def keep(self, chat_id: str, turn: StoredTurn) -> bool:
        """Keep the state of a turn; False, and it is logged, if that fails."""
        ...

    def keep_summary(self, chat_id: str, summary: ChatSummary) -> None: ...


class DatabaseKeeper:
    """Keeps conversations in the database of a knowledge base."""

    lasts = True

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    def load(self, chat_id: str) -> KeptChat:
        return self._kb.stored_chat(chat_id)

    def begin(self, chat_id: str, name: str, mode: ChatMode, turn: StoredTurn) -> ChatInfo:
        return self._kb.begin_chat_turn(chat_id, name, mode, turn)

    def keep(self, chat_id: str, turn: StoredTurn) -> bool:
        try:
            self._kb.keep_chat_turn(chat_id, turn)
        except QmdError as error:
            _log.warning("a turn of a conversation could not be kept: %s", error.with_hint)
            return False
        return True

    def keep_summary(self, chat_id: str, summary: ChatSummary) -> None:
        try:
            self._kb.keep_chat_summary(chat_id, summary)
        except QmdError as error:
            _log.warning("a summary of a conversation could not be kept: %s", error.with_hint)


class MemoryKeeper:
    """Keeps the latest conversations of this process, for a database that can only be read."""

    lasts = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: OrderedDict[str, KeptChat] = OrderedDict()

    def load(self, chat_id: str) -> KeptChat:
        with self._lock:
            if chat_id not in self._chats:
                raise ChatNotFoundError(chat_id)
            info, summary, turns = self._chats[chat_id]
            return info, summary, list(turns)

    def begin(self, chat_id: str, name: str, mode: ChatMode, turn: StoredTurn) -> ChatInfo:
        with self._lock:
            _, summary, turns = self._chats.pop(chat_id, (None, ChatSummary("", 0), []))
            turns = [each for each in turns if each.number != turn.number] + [turn]
            info = ChatInfo(chat_id, name, mode, turns[0].started, clock.now(), len(turns))
            self._chats[chat_id] = info, summary, turns
            while len(self._chats) > MOST_IN_MEMORY:
                self._chats.popitem(last=False)
            return info

    def keep(self, chat_id: str, turn: StoredTurn) -> bool:
        with self._lock:
            if chat_id in self._chats:
                turns = self._chats[chat_id][2]
                turns[:] = [turn if each.number == turn.number else each for each in turns]
        return True

    def keep_summary(self, chat_id: str, summary: ChatSummary) -> None:
        with self._lock:
            if chat_id in self._chats:
                info, _, turns = self._chats[chat_id]
                self._chats[chat_id] = info, summary, turns

"""Where conversations are kept: in the database, or in memory while it can only be read."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

from qmd.errors import ChatNotFoundError, QmdError
from qmd.kb import KnowledgeBase
from qmd.store.sql.conversations import ChatSummary, StoredTurn
from qmd.system import clock
from qmd.values.chats import ChatInfo

MOST_IN_MEMORY = 20
"""The most conversations in memory; those that went on longest ago are forgotten."""

_log = logging.getLogger(__name__)


class KeptChat(NamedTuple):
    """A conversation with its turns, and what the model wrote of the first of them."""

    info: ChatInfo
    summary: ChatSummary
    turns: list[StoredTurn]


class DatabaseKeeper:
    """
    Keeps conversations in the database of a knowledge base.

    Attributes:
        lasts: Whether the conversations outlive the process.
    """

    lasts = True

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    def load(self, chat_id: str) -> KeptChat:
        """Raises ChatNotFoundError."""
        return KeptChat(*self._kb.stored_chat(chat_id))

    def begin(self, chat: ChatInfo, turn: StoredTurn) -> None:
        """Raises ConflictError: Too many conversations, or too long a one."""
        self._kb.begin_chat_turn(chat.id, chat.name, chat.mode, turn)

    def keep(self, chat_id: str, turn: StoredTurn) -> bool:
        """Keep the state of a turn; False, and it is logged, if that fails."""
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
    """
    Keeps the latest conversations of this process, as `DatabaseKeeper` does: for `qmd ask`, and
    for a database that can only be read.
    """

    lasts = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: OrderedDict[str, KeptChat] = OrderedDict()

    def load(self, chat_id: str) -> KeptChat:
        with self._lock:
            if chat_id not in self._chats:
                raise ChatNotFoundError(chat_id)
            kept = self._chats[chat_id]
            return kept._replace(turns=list(kept.turns))

    def begin(self, chat: ChatInfo, turn: StoredTurn) -> None:
        with self._lock:
            before = self._chats.pop(chat.id, KeptChat(chat, ChatSummary("", 0), []))
            turns = [each for each in before.turns if each.number != turn.number] + [turn]
            info = replace(chat, updated=clock.now(), turns=len(turns))
            self._chats[chat.id] = KeptChat(info, before.summary, turns)
            while len(self._chats) > MOST_IN_MEMORY:
                self._chats.popitem(last=False)

    def keep(self, chat_id: str, turn: StoredTurn) -> bool:
        with self._lock:
            if chat_id in self._chats:
                turns = self._chats[chat_id].turns
                turns[:] = [turn if each.number == turn.number else each for each in turns]
        return True

    def keep_summary(self, chat_id: str, summary: ChatSummary) -> None:
        with self._lock:
            if chat_id in self._chats:
                self._chats[chat_id] = self._chats[chat_id]._replace(summary=summary)

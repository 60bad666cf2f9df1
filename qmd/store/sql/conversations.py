"""Conversations with the agent, and their turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import NamedTuple

from qmd.store.sql import Capability
from qmd.system import clock
from qmd.values.chats import ChatInfo, ChatMode, StoredTurn, TurnStatus


class ChatSummary(NamedTuple):
    """What the model wrote of the first ``turns`` turns; 0: there is no summary."""

    text: str
    turns: int


class KeptChat(NamedTuple):
    """A conversation with its turns, and what the model wrote of the first of them."""

    info: ChatInfo
    summary: ChatSummary
    turns: list[StoredTurn]


_CHATS = """
    SELECT id, name, mode, created_at, updated_at,
           (SELECT count(*) FROM chat_turns t WHERE t.chat_id = chats.id)
    FROM chats
"""
_CONTAINS = """
    ({name} LIKE ? ESCAPE '\\' OR EXISTS (
        SELECT 1 FROM chat_turns t WHERE t.chat_id = chats.id
        AND ({question} LIKE ? ESCAPE '\\' OR {answer} LIKE ? ESCAPE '\\')))
"""


class Conversations(Capability):
    """Reads conversations."""

    def count(self, words: Sequence[str] = ()) -> int:
        """How many conversations `latest` lists without a limit."""
        where, values = self._having(words)
        sql = f"SELECT count(*) FROM chats{where}"
        return self._sql.number(sql, values)

    def latest(self, words: Sequence[str] = (), *, limit: int, offset: int = 0) -> list[ChatInfo]:
        """
        Conversations, those that went on last first.

        Args:
            words: Each must occur in the name, or in a question or answer. ASCII letters match in
                either case. Without an index: the cost grows with the text of all conversations.
        """
        where, values = self._having(words)
        return self._chats(
            f"{where} ORDER BY updated_at DESC, id LIMIT ? OFFSET ?", [*values, limit, offset]
        )

    def get(self, chat_id: str) -> ChatInfo | None:
        return next(iter(self._chats(" WHERE id = ?", [chat_id])), None)

    def owner(self, chat_id: str) -> str | None:
        """
        Whose conversation it is: the id of a token, "" for the administrator; None without one.
        """
        row = self._sql.first("SELECT owner FROM chats WHERE id = ?", [chat_id])
        return None if row is None else str(row[0])

    def count_of(self, owner: str) -> int:
        """How many conversations an owner has."""
        return self._sql.number("SELECT count(*) FROM chats WHERE owner = ?", [owner])

    def summary(self, chat_id: str) -> ChatSummary:
        sql = "SELECT summary, summarized FROM chats WHERE id = ?"
        summaries = self._sql.all(ChatSummary, sql, [chat_id])
        return summaries[0] if summaries else ChatSummary("", 0)

    def turns(self, chat_id: str) -> list[StoredTurn]:
        """The turns of a conversation in order."""
        return self._sql.all(
            StoredTurn,
            "SELECT number, question, answer, status, started_at, seconds, process, events,"
            " messages FROM chat_turns WHERE chat_id = ? ORDER BY number",
            [chat_id],
        )

    def bytes(self, chat_id: str) -> int:
        """The bytes of all turns of a conversation."""
        sql = "SELECT coalesce(sum(bytes), 0) FROM chat_turns WHERE chat_id = ?"
        return self._sql.number(sql, [chat_id])

    def running(self) -> list[tuple[str, int, str]]:
        """Of each turn that runs, or whose process has ended: conversation, number, process."""
        return self._sql.rows(
            (str, int, str),
            "SELECT chat_id, number, process FROM chat_turns WHERE status = 'running'",
        )

    def _chats(self, where: str, values: Sequence[object]) -> list[ChatInfo]:
        return self._sql.all(ChatInfo, _CHATS + where, values)

    def _having(self, words: Sequence[str]) -> tuple[str, list[object]]:
        """The condition that each word occurs, and its values."""
        no_case = self._sql.dialect.no_case.format
        contains = _CONTAINS.format(
            name=no_case("name"), question=no_case("t.question"), answer=no_case("t.answer")
        )
        values = list[object]([f"%{_escaped(word)}%" for word in words for _ in range(3)])
        return (" WHERE " + " AND ".join([contains] * len(words)) if words else ""), values


class ConversationsWriter(Conversations):
    """Keeps conversations."""

    def add(self, chat: ChatInfo, owner: str = "") -> None:
        """Add a conversation; ``owner`` as in `Conversations.owner`."""
        self._sql.run(
            "INSERT INTO chats (id, name, mode, created_at, updated_at, owner)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [chat.id, chat.name, chat.mode, chat.created, chat.updated, owner],
        )

    def rename(self, chat_id: str, name: str) -> None:
        self._sql.run("UPDATE chats SET name = ? WHERE id = ?", [name, chat_id])

    def set_mode(self, chat_id: str, mode: ChatMode) -> None:
        self._sql.run("UPDATE chats SET mode = ? WHERE id = ?", [mode, chat_id])

    def set_summary(self, chat_id: str, summary: ChatSummary) -> None:
        self._sql.run(
            "UPDATE chats SET summary = ?, summarized = ? WHERE id = ?", [*summary, chat_id]
        )

    def put(self, chat_id: str, turn: StoredTurn) -> None:
        """Add a turn, or replace the one with its number. Without such a conversation: nothing."""
        if self.owner(chat_id) is None:
            return
        size = len(turn.events.encode()) + len(turn.messages.encode())
        self._sql.run(
            "INSERT INTO chat_turns (chat_id, number, question, answer, status, started_at,"
            " seconds, process, events, messages, bytes)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (chat_id, number) DO UPDATE SET question = excluded.question,"
            " answer = excluded.answer, status = excluded.status, seconds = excluded.seconds,"
            " process = excluded.process, events = excluded.events,"
            " messages = excluded.messages, bytes = excluded.bytes",
            [chat_id, *astuple(turn), size],
        )
        self._sql.run("UPDATE chats SET updated_at = ? WHERE id = ?", [clock.now(), chat_id])

    def restore(self, chat: ChatInfo, summary: ChatSummary, turns: Sequence[StoredTurn]) -> None:
        """Add a conversation of another database with its times; there must be none of its id."""
        self.add(chat)
        self.set_summary(chat.id, summary)
        for turn in turns:
            self.put(chat.id, turn)
        self._sql.run("UPDATE chats SET updated_at = ? WHERE id = ?", [chat.updated, chat.id])

    def set_status(self, chat_id: str, number: int, status: TurnStatus) -> None:
        self._sql.run(
            "UPDATE chat_turns SET status = ? WHERE chat_id = ? AND number = ?",
            [status, chat_id, number],
        )

    def delete(self, chat_id: str) -> bool:
        """Delete a conversation with its turns; False if there is none."""
        self._sql.run("DELETE FROM chat_turns WHERE chat_id = ?", [chat_id])
        cursor = self._sql.run("DELETE FROM chats WHERE id = ?", [chat_id])
        return bool(cursor.rowcount > 0)


def _escaped(word: str) -> str:
    """A word in the pattern of LIKE, its ASCII letters in lower case."""
    folded = "".join(char.lower() if char.isascii() else char for char in word)
    return folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

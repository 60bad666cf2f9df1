"""Reads and writes conversations with the agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmd.store.conversations import ChatSummary, StoredTurn
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock
from qmd.values.chats import ChatInfo, ChatMode, TurnStatus

_CHATS = """
    SELECT id, name, mode, created_at, updated_at,
           (SELECT count(*) FROM chat_turns t WHERE t.chat_id = chats.id)
    FROM chats
"""
_CONTAINS = """
    (name LIKE ? ESCAPE '\\' OR EXISTS (
        SELECT 1 FROM chat_turns t WHERE t.chat_id = chats.id
        AND (t.question LIKE ? ESCAPE '\\' OR t.answer LIKE ? ESCAPE '\\')))
"""


class SqliteConversations:
    """`qmd.store.conversations.Conversations` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, words: Sequence[str] = ()) -> int:
        where, values = _having(words)
        sql = f"SELECT count(*) FROM chats{where}"
        return int(self._connection.execute(sql, values).fetchone()[0])

    def latest(self, words: Sequence[str] = (), *, limit: int, offset: int = 0) -> list[ChatInfo]:
        where, values = _having(words)
        return self._chats(
            f"{where} ORDER BY updated_at DESC, id LIMIT ? OFFSET ?", [*values, limit, offset]
        )

    def get(self, chat_id: str) -> ChatInfo | None:
        return next(iter(self._chats(" WHERE id = ?", [chat_id])), None)

    def owner(self, chat_id: str) -> str | None:
        row = self._connection.execute("SELECT owner FROM chats WHERE id = ?", [chat_id]).fetchone()
        return None if row is None else str(row[0])

    def count_of(self, owner: str) -> int:
        row = self._connection.execute("SELECT count(*) FROM chats WHERE owner = ?", [owner])
        return int(row.fetchone()[0])

    def summary(self, chat_id: str) -> ChatSummary:
        row = self._connection.execute(
            "SELECT summary, summarized FROM chats WHERE id = ?", [chat_id]
        ).fetchone()
        if row is None:
            return ChatSummary("", 0)
        require_types(row, str, int)
        return ChatSummary(*row)

    def turns(self, chat_id: str) -> list[StoredTurn]:
        rows = self._connection.execute(
            "SELECT number, question, answer, status, started_at, seconds, process, events,"
            " messages FROM chat_turns WHERE chat_id = ? ORDER BY number",
            [chat_id],
        ).fetchall()
        for row in rows:
            require_types(row, int, str, str, str, str, float, str, str, str)
        return [StoredTurn(*row) for row in rows]

    def bytes(self, chat_id: str) -> int:
        row = self._connection.execute(
            "SELECT coalesce(sum(bytes), 0) FROM chat_turns WHERE chat_id = ?", [chat_id]
        ).fetchone()
        return int(row[0])

    def running(self) -> list[tuple[str, int, str]]:
        rows = self._connection.execute(
            "SELECT chat_id, number, process FROM chat_turns WHERE status = 'running'"
        ).fetchall()
        for row in rows:
            require_types(row, str, int, str)
        return rows

    def _chats(self, where: str, values: Sequence[object]) -> list[ChatInfo]:
        rows = self._connection.execute(_CHATS + where, values).fetchall()
        for row in rows:
            require_types(row, str, str, str, str, str, int)
        return [ChatInfo(*row) for row in rows]


class SqliteConversationsWriter(SqliteConversations):
    """`qmd.store.conversations.ConversationsWriter` in SQLite."""

    def add(self, chat: ChatInfo, owner: str = "") -> None:
        self._connection.execute(
            "INSERT INTO chats (id, name, mode, created_at, updated_at, owner)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [chat.id, chat.name, chat.mode, chat.created, chat.updated, owner],
        )

    def rename(self, chat_id: str, name: str) -> None:
        self._connection.execute("UPDATE chats SET name = ? WHERE id = ?", [name, chat_id])

    def set_mode(self, chat_id: str, mode: ChatMode) -> None:
        self._connection.execute("UPDATE chats SET mode = ? WHERE id = ?", [mode, chat_id])

    def set_summary(self, chat_id: str, summary: ChatSummary) -> None:
        self._connection.execute(
            "UPDATE chats SET summary = ?, summarized = ? WHERE id = ?", [*summary, chat_id]
        )

    def put(self, chat_id: str, turn: StoredTurn) -> None:
        size = len(turn.events.encode()) + len(turn.messages.encode())
        self._connection.execute(
            "INSERT INTO chat_turns (chat_id, number, question, answer, status, started_at,"
            " seconds, process, events, messages, bytes)"
            " SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM chats WHERE id = ?"
            " ON CONFLICT (chat_id, number) DO UPDATE SET question = excluded.question,"
            " answer = excluded.answer, status = excluded.status, seconds = excluded.seconds,"
            " process = excluded.process, events = excluded.events,"
            " messages = excluded.messages, bytes = excluded.bytes",
            [*turn, size, chat_id],
        )
        self._connection.execute(
            "UPDATE chats SET updated_at = ? WHERE id = ?", [clock.now(), chat_id]
        )

    def restore(self, chat: ChatInfo, summary: ChatSummary, turns: Sequence[StoredTurn]) -> None:
        self.add(chat)
        self.set_summary(chat.id, summary)
        for turn in turns:
            self.put(chat.id, turn)
        self._connection.execute(
            "UPDATE chats SET updated_at = ? WHERE id = ?", [chat.updated, chat.id]
        )

    def set_status(self, chat_id: str, number: int, status: TurnStatus) -> None:
        self._connection.execute(
            "UPDATE chat_turns SET status = ? WHERE chat_id = ? AND number = ?",
            [status, chat_id, number],
        )

    def delete(self, chat_id: str) -> bool:
        self._connection.execute("DELETE FROM chat_turns WHERE chat_id = ?", [chat_id])
        cursor = self._connection.execute("DELETE FROM chats WHERE id = ?", [chat_id])
        return bool(cursor.rowcount > 0)


def _having(words: Sequence[str]) -> tuple[str, list[Any]]:
    """The condition that each word occurs, and its values."""
    values = [f"%{_escaped(word)}%" for word in words for _ in range(3)]
    return (" WHERE " + " AND ".join([_CONTAINS] * len(words)) if words else ""), values


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

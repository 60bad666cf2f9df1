"""Reads and writes conversations with the agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmd.store.conversations import ChatSummary, StoredTurn
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.system import clock
from qmd.values.chats import ChatInfo, ChatMode, TurnStatus

_CHATS = """
    SELECT id, name, mode, created_at, updated_at,
           (SELECT count(*) FROM chat_turns t WHERE t.chat_id = chats.id)
    FROM chats
"""
_CONTAINS = """
    (lower(name COLLATE "C") LIKE %s OR EXISTS (
        SELECT 1 FROM chat_turns t WHERE t.chat_id = chats.id
        AND (lower(t.question COLLATE "C") LIKE %s OR lower(t.answer COLLATE "C") LIKE %s)))
"""


class PostgresConversations:
    """`qmd.store.conversations.Conversations` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, words: Sequence[str] = ()) -> int:
        where, values = _having(words)
        sql = f"SELECT count(*) FROM chats{where}"
        return int(one(self._connection, sql, values)[0])

    def latest(self, words: Sequence[str] = (), *, limit: int, offset: int = 0) -> list[ChatInfo]:
        where, values = _having(words)
        return self._chats(
            f"{where} ORDER BY updated_at DESC, id LIMIT %s OFFSET %s", [*values, limit, offset]
        )

    def get(self, chat_id: str) -> ChatInfo | None:
        return next(iter(self._chats(" WHERE id = %s", [chat_id])), None)

    def owner(self, chat_id: str) -> str | None:
        row = self._connection.execute(
            "SELECT owner FROM chats WHERE id = %s", [chat_id]
        ).fetchone()
        return None if row is None else str(row[0])

    def count_of(self, owner: str) -> int:
        return int(one(self._connection, "SELECT count(*) FROM chats WHERE owner = %s", [owner])[0])

    def summary(self, chat_id: str) -> ChatSummary:
        row = self._connection.execute(
            "SELECT summary, summarized FROM chats WHERE id = %s", [chat_id]
        ).fetchone()
        if row is None:
            return ChatSummary("", 0)
        return ChatSummary(*row)

    def turns(self, chat_id: str) -> list[StoredTurn]:
        rows = self._connection.execute(
            "SELECT number, question, answer, status, started_at, seconds, process, events,"
            " messages FROM chat_turns WHERE chat_id = %s ORDER BY number",
            [chat_id],
        ).fetchall()
        return [StoredTurn(*row) for row in rows]

    def bytes(self, chat_id: str) -> int:
        sql = "SELECT coalesce(sum(bytes), 0) FROM chat_turns WHERE chat_id = %s"
        return int(one(self._connection, sql, [chat_id])[0])

    def running(self) -> list[tuple[str, int, str]]:
        rows = self._connection.execute(
            "SELECT chat_id, number, process FROM chat_turns WHERE status = 'running'"
        ).fetchall()
        return [(chat_id, number, process) for chat_id, number, process in rows]

    def _chats(self, where: str, values: Sequence[object]) -> list[ChatInfo]:
        rows = self._connection.execute(_CHATS + where, values).fetchall()
        return [ChatInfo(*row) for row in rows]


class PostgresConversationsWriter(PostgresConversations):
    """`qmd.store.conversations.ConversationsWriter` in PostgreSQL."""

    def add(self, chat: ChatInfo, owner: str = "") -> None:
        self._connection.execute(
            "INSERT INTO chats (id, name, mode, created_at, updated_at, owner)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            [chat.id, chat.name, chat.mode, chat.created, chat.updated, owner],
        )

    def rename(self, chat_id: str, name: str) -> None:
        self._connection.execute("UPDATE chats SET name = %s WHERE id = %s", [name, chat_id])

    def set_mode(self, chat_id: str, mode: ChatMode) -> None:
        self._connection.execute("UPDATE chats SET mode = %s WHERE id = %s", [mode, chat_id])

    def set_summary(self, chat_id: str, summary: ChatSummary) -> None:
        self._connection.execute(
            "UPDATE chats SET summary = %s, summarized = %s WHERE id = %s", [*summary, chat_id]
        )

    def put(self, chat_id: str, turn: StoredTurn) -> None:
        size = len(turn.events.encode()) + len(turn.messages.encode())
        self._connection.execute(
            "INSERT INTO chat_turns (chat_id, number, question, answer, status, started_at,"
            " seconds, process, events, messages, bytes)"
            " SELECT id, %s::integer, %s, %s, %s, %s, %s::double precision, %s, %s, %s, %s::bigint"
            " FROM chats WHERE id = %s"
            " ON CONFLICT (chat_id, number) DO UPDATE SET question = excluded.question,"
            " answer = excluded.answer, status = excluded.status, seconds = excluded.seconds,"
            " process = excluded.process, events = excluded.events,"
            " messages = excluded.messages, bytes = excluded.bytes",
            [*turn, size, chat_id],
        )
        self._connection.execute(
            "UPDATE chats SET updated_at = %s WHERE id = %s", [clock.now(), chat_id]
        )

    def restore(self, chat: ChatInfo, summary: ChatSummary, turns: Sequence[StoredTurn]) -> None:
        self.add(chat)
        self.set_summary(chat.id, summary)
        for turn in turns:
            self.put(chat.id, turn)
        self._connection.execute(
            "UPDATE chats SET updated_at = %s WHERE id = %s", [chat.updated, chat.id]
        )

    def set_status(self, chat_id: str, number: int, status: TurnStatus) -> None:
        self._connection.execute(
            "UPDATE chat_turns SET status = %s WHERE chat_id = %s AND number = %s",
            [status, chat_id, number],
        )

    def delete(self, chat_id: str) -> bool:
        self._connection.execute("DELETE FROM chat_turns WHERE chat_id = %s", [chat_id])
        cursor = self._connection.execute("DELETE FROM chats WHERE id = %s", [chat_id])
        return bool(cursor.rowcount > 0)


def _having(words: Sequence[str]) -> tuple[str, list[Any]]:
    """The condition that each word occurs, and its values."""
    values = [f"%{_escaped(word)}%" for word in words for _ in range(3)]
    return (" WHERE " + " AND ".join([_CONTAINS] * len(words)) if words else ""), values


def _escaped(word: str) -> str:
    """A word in the pattern of LIKE, its ASCII letters in lower case."""
    folded = "".join(char.lower() if char.isascii() else char for char in word)
    return folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

"""Conversations with the agent: listed, searched, renamed, deleted, exported and kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from qmd import files, values
from qmd.engine_text import engine_text
from qmd.errors import ChatNotFoundError, ConflictError, InputError
from qmd.kb.files import FileMethods
from qmd.kb.parts import open_to_scopes
from qmd.store import sql
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.settings import BackendSettings
    from qmd.store import Reader, Writer
    from qmd.store.sql.conversations import ChatSummary, KeptChat
    from qmd.values.chats import Chat, ChatInfo, ChatMode, ChatPage, ChatTurn, StoredTurn
    from qmd.values.writing import WrittenNote

_MAX_WORDS = 16  # of a search; each reads all conversations


class ChatMethods(FileMethods):
    @open_to_scopes
    def chats(self, query: str = "", *, limit: int = 50, offset: int = 0) -> ChatPage:
        """
        List conversations, those that went on last first.

        Args:
            query: Words that must all occur in the name, the questions or the answers; blank for
                all conversations.
        """
        words = query.split()[:_MAX_WORDS]
        with self._store.reading() as reader:
            return values.chats.ChatPage(
                tuple(reader.conversations.latest(words, limit=limit, offset=offset)),
                reader.conversations.count(words),
            )

    @open_to_scopes
    def chat(self, chat_id: str) -> Chat:
        """A conversation with its turns. Raises ChatNotFoundError."""
        with self._store.reading() as reader:
            info = _chat_info(reader, chat_id)
            return values.chats.Chat(info, tuple(map(as_turn, reader.conversations.turns(chat_id))))

    @open_to_scopes
    def rename_chat(self, chat_id: str, name: str) -> ChatInfo:
        """
        Give a conversation another name.

        Raises:
            ChatNotFoundError
            InputError: The name is blank, too long or has several lines.
        """
        self._store.read(lambda reader: _chat_info(reader, chat_id))
        name = name.strip()
        if not name or len(name) > values.chats.MAX_NAME or not name.isprintable():
            raise InputError(
                engine_text(
                    "A name of a conversation is one line of 1 to {most} characters.",
                    most=values.chats.MAX_NAME,
                ),
                hint="Choose a shorter name.",
            )
        self._store.write(lambda writer: writer.conversations.rename(chat_id, name))
        return self._store.read(lambda reader: _chat_info(reader, chat_id))

    @open_to_scopes
    def delete_chat(self, chat_id: str) -> None:
        """Delete a conversation for good. Raises ChatNotFoundError."""
        if not self._store.write(lambda writer: writer.conversations.delete(chat_id)):
            raise ChatNotFoundError(chat_id)

    @open_to_scopes
    def export_chat(self, chat_id: str, path: str) -> WrittenNote:
        """
        Write a conversation into a new note: its questions, answers and sources.

        Args:
            path: The path of the note, as the tool create_note takes it.

        Raises:
            ChatNotFoundError
            NoteExistsError: There is a note at this path.
            The errors of `qmd.files.notes.Notes.create`.
        """
        return self.notes.create(path, files.chats.chat_as_note(self.chat(chat_id)), mode="new")

    # -- for the service that runs conversations (qmd.agent.chat) ------------------------

    @property
    @open_to_scopes
    def backend_settings(self) -> BackendSettings:
        """Which models there are, and within which limits they answer."""
        return self._settings.backends

    @property
    @open_to_scopes
    def is_read_only(self) -> bool:
        """Whether the database was opened read-only, so that no conversation is kept."""
        return self._store.read_only

    @property
    @open_to_scopes
    def files_are_read_only(self) -> bool:
        """Whether tools may change no file."""
        return self._settings.read_only_files

    @open_to_scopes
    def stored_chat(self, chat_id: str) -> KeptChat:
        """All that is kept of a conversation. Raises ChatNotFoundError."""
        with self._store.reading() as reader:
            info, chats = _chat_info(reader, chat_id), reader.conversations
            return sql.conversations.KeptChat(info, chats.summary(chat_id), chats.turns(chat_id))

    @open_to_scopes
    def begin_chat_turn(self, chat_id: str, name: str, mode: ChatMode, turn: StoredTurn) -> None:
        """
        Keep a turn that begins, and its conversation if that is new.

        Raises:
            ConflictError: As many conversations are kept as may be, the conversation is too long
                to go on, or another process has begun this turn.
        """

        def begin(writer: Writer) -> None:
            chats = writer.conversations
            info = chats.get(chat_id)
            if info is None:
                if turn.number > 1:  # deleted meanwhile
                    raise ChatNotFoundError(chat_id)
                if chats.count() >= values.chats.MAX_CHATS:
                    raise ConflictError(
                        engine_text(
                            "{count} conversations are kept already.",
                            count=f"{values.chats.MAX_CHATS:,}",
                        ),
                        hint="Delete some: DELETE /chats/ID, in the shell 'qmd chat delete ID'.",
                    )
                chats.add(values.chats.ChatInfo(chat_id, name, mode, turn.started, clock.now(), 0))
            elif (
                turn.number > values.chats.MAX_TURNS
                or chats.bytes(chat_id) > values.chats.MAX_CHAT_BYTES
            ):
                raise ConflictError(
                    "This conversation is too long to go on.", hint="Begin a new one."
                )
            if any(
                other.number == turn.number and other.status in ("running", "done")
                for other in chats.turns(chat_id)
            ):
                raise ConflictError(
                    "Another process answers a question of this conversation, or just did.",
                    hint="Look at the conversation, then ask again.",
                )
            chats.set_mode(chat_id, mode)
            chats.put(chat_id, turn)

        self._store.write(begin)

    @open_to_scopes
    def keep_chat_turn(self, chat_id: str, turn: StoredTurn) -> None:
        """Keep the state of a turn; if its conversation was deleted meanwhile, do nothing."""
        self._store.write(lambda writer: writer.conversations.put(chat_id, turn))

    @open_to_scopes
    def keep_chat_summary(self, chat_id: str, summary: ChatSummary) -> None:
        """Keep what the model wrote of the first turns of a conversation."""
        self._store.write(lambda writer: writer.conversations.set_summary(chat_id, summary))

    @open_to_scopes
    def process_name(self) -> str:
        """The name of this process in the turns that it runs."""
        return self._store.process_name()

    @open_to_scopes
    def end_abandoned_turns(self) -> int:
        """Mark the turns whose process has ended as interrupted; returns how many there are."""
        store = self._store
        running = store.read(lambda reader: reader.conversations.running())
        abandoned = {turn for turn in running if not store.has_process(turn[2])}

        def interrupt(writer: Writer) -> int:
            # Not those whose process has kept their end since they were read.
            ended = abandoned.intersection(writer.conversations.running())
            for chat, number, _ in ended:
                writer.conversations.set_status(chat, number, "interrupted")
            return len(ended)

        return store.write(interrupt) if abandoned else 0


def _chat_info(reader: Reader, chat_id: str) -> ChatInfo:
    info = reader.conversations.get(chat_id)
    if info is None:
        raise ChatNotFoundError(chat_id)
    return info


def as_turn(stored: StoredTurn) -> ChatTurn:
    """A turn as faces show it."""
    return values.chats.ChatTurn(
        number=stored.number,
        question=stored.question,
        answer=stored.answer,
        status=stored.status,
        started=stored.started,
        seconds=stored.seconds,
        events=tuple(
            values.chats.ChatEvent(kind, data) for kind, data in json.loads(stored.events)
        ),
    )

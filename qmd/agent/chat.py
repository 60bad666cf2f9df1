"""
Conversations of a person with the agent, which go on while nobody looks and are kept.

::

    chats = Chats(kb)                            # one for each open knowledge base
    turn = chats.start("What did we decide?")    # returns at once; the turn runs on a thread
    for event in turn.events():                  # all from the beginning, until the turn has ended
        print(event.kind, event.data)
    turn = chats.start("And why?", turn.chat)    # goes on with the conversation

An `AgentTurn` is one question and all that comes of it. From another thread or from asyncio:

- ``turn.subscribe(listener)`` calls ``listener(event)`` with all events so far and then with each
  further one, on the turn's thread, so it must only pass the event on (for asyncio:
  ``loop.call_soon_threadsafe``). It returns a function that ends the subscription.
- ``turn.stop()`` ends the wait for the model at once; a tool that writes is finished first.
- ``turn.decide(consent_id, agreed)`` agrees to the write of an event ``question``, or declines it.
- ``turn.status`` and ``turn.wait(timeout_s)``; ``turn.answer`` is the text of the answer.

Of the service: ``chats.turn(chat_id)`` is the turn that runs, or the last one of this process;
``chats.retry(chat_id)`` resumes a turn that failed, was stopped, interrupted or reached a limit;
``chats.forget(chat_id)`` stops and deletes a conversation. The knowledge base itself lists,
searches, reads, renames, exports (`qmd.kb.chats`). docs/agent.md describes the events.

Errors: `NoLanguageModelError` (no server is set), `WritesForbiddenError` (mode ``write`` where
nothing may be written), `ConflictError` (the conversation has a turn that runs; too many turns
run; too long), `InputError` (a blank or too long question), `ChatNotFoundError`.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import replace

from qmd.agent.consents import CONSENT_S
from qmd.agent.history import ChatMemory, to_json
from qmd.agent.loop import ChatModel
from qmd.agent.turn import TURN_S, AgentTurn, TurnRules
from qmd.engine_text import engine_text
from qmd.errors import ChatNotFoundError, ConflictError, NoLanguageModelError, WritesForbiddenError
from qmd.inference.llm import LlmClient, Message
from qmd.inference.llm.answer import Fence
from qmd.kb import KnowledgeBase
from qmd.kb.chats import as_turn
from qmd.kb.scoped import require_writing_token
from qmd.store.sql.conversations import ChatSummary, KeptChat
from qmd.system import clock
from qmd.values import chats
from qmd.values.chats import StoredTurn
from qmd.values.proposed import Confirm

__all__ = ["AgentTurn", "Chats"]

#: The most turns that run at once.
MOST_RUNNING = 4

_MOST_ENDED = 50  # turns that have ended and can still be looked at in this process
_END_S = 5.0  # how long `close` waits for each turn


class Chats:
    """
    The conversations of one knowledge base. Thread-safe.

    Args:
        model: The language model; None for the one of the knowledge base's settings.
        may_write: Whether mode ``write`` is allowed.
        is_kept: Whether conversations are kept in the database, if that can be written; else in
            memory, the latest ones.
        toolsets, max_rounds, turn_s, consent_s, confirm: As in `TurnRules`.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        model: ChatModel | None = None,
        may_write: bool = True,
        is_kept: bool = True,
        toolsets: Sequence[str] = (),
        max_rounds: int = chats.MAX_ROUNDS,
        turn_s: float = TURN_S,
        consent_s: float = CONSENT_S,
        confirm: Confirm | None = None,
    ) -> None:
        self._kb = kb
        self._model = model
        self._may_write = may_write
        self._rules = TurnRules(tuple(toolsets), max_rounds, turn_s, consent_s, confirm)
        self._chat_store = kb if is_kept and not kb.is_read_only else ChatMemory()
        self._lock = threading.Lock()
        self._turns: dict[str, AgentTurn] = {}  # conversation → its last turn in this process

    @property
    def has_model(self) -> bool:
        """Whether there is a language model to ask."""
        settings = self._kb.backend_settings
        return (
            self._model is not None
            or settings.llm_url is not None
            or settings.key("llm") is not None
        )

    @property
    def may_write(self) -> bool:
        """Whether mode ``write`` is allowed."""
        return self._may_write and not (self._kb.is_read_only or self._kb.files_are_read_only)

    def start(
        self, question: str, chat_id: str | None = None, *, mode: chats.ChatMode = "read"
    ) -> AgentTurn:
        """
        Ask a question, in a new conversation or in an earlier one; returns at once.

        Raises:
            InputError, NoLanguageModelError, WritesForbiddenError, ChatNotFoundError,
            ConflictError: As the module says.
        """
        question = question.strip()
        model = self._require_model()
        self._require_allowed(mode)
        chats.check_question(question, self._kb.backend_settings.window)
        self._mark_abandoned()
        if chat_id is None:
            now = clock.now()
            new = chats.ChatInfo(secrets.token_hex(8), chats.chat_name(question), mode, now, now, 0)
            kept = KeptChat(new, ChatSummary("", 0), [])
        else:
            kept = self._chat_store.stored_chat(chat_id)
            kept = kept._replace(info=replace(kept.info, mode=mode))
        stored = StoredTurn(
            number=kept.turns[-1].number + 1 if kept.turns else 1,
            question=question,
            answer="",
            status="running",
            started=clock.now(),
            seconds=0.0,
            process=self._kb.process_name(),
            events="[]",
            messages=to_json([Message("user", question)], Fence("")),
        )
        return self._launch(AgentTurn(self._kb, self._chat_store, model, self._rules, kept, stored))

    def retry(self, chat_id: str) -> AgentTurn:
        """
        Resume the last turn of a conversation, with all that was done before it ended.

        Raises:
            ConflictError: The last turn has an answer, or runs.
            The errors of `start`.
        """
        model = self._require_model()
        self._mark_abandoned()
        kept = self._chat_store.stored_chat(chat_id)
        if not kept.turns or kept.turns[-1].status not in chats.RESUMABLE:
            raise ConflictError(
                "The last question of this conversation has an answer or is being answered.",
                hint="Ask a new question.",
            )
        self._require_allowed(kept.info.mode)
        last = kept.turns.pop()
        stored = replace(last, status="running", process=self._kb.process_name())
        earlier = [
            chats.ChatEvent(kind, data)
            for kind, data in json.loads(last.events)
            if kind not in ("started", "error", "ended")
        ]
        return self._launch(
            AgentTurn(self._kb, self._chat_store, model, self._rules, kept, stored, earlier)
        )

    def turn(self, chat_id: str) -> AgentTurn:
        """The turn of a conversation that runs, or its last one here. Raises ChatNotFoundError."""
        with self._lock:
            turn = self._turns.get(chat_id)
        if turn is None:
            raise ChatNotFoundError(chat_id)
        return turn

    def running(self) -> list[AgentTurn]:
        """The turns that run now."""
        with self._lock:
            return self._running()

    def forget(self, chat_id: str) -> None:
        """Stop the turn of a conversation, if one runs, and delete it. Raises ChatNotFoundError."""
        with self._lock:
            turn = self._turns.pop(chat_id, None)
        if turn is not None:
            turn.stop()
        self._kb.delete_chat(chat_id)

    def chat(self, chat_id: str) -> chats.Chat:
        """
        A conversation with its turns and their events, also of a turn that runs.

        Raises:
            ChatNotFoundError
        """
        self._mark_abandoned()
        with self._lock:
            live = self._turns.get(chat_id)
        info, _, stored = self._chat_store.stored_chat(chat_id)
        turns = [as_turn(turn) for turn in stored]
        if live is not None and turns and live.number == turns[-1].number:
            turns[-1] = replace(turns[-1], events=tuple(live.log.all()))
        return chats.Chat(info, tuple(turns))

    def last_turn(self, chat_id: str) -> chats.ChatTurn:
        """The last turn of a conversation; one that runs here is not read from the database."""
        with self._lock:
            live = self._turns.get(chat_id)
        if live is not None and live.status == "running":
            return live.as_turn()
        return self.chat(chat_id).turns[-1]

    def stop_all(self) -> None:
        """Stop all turns, because the process ends; they can be resumed by the next one."""
        for turn in self.running():
            turn.interrupt()

    def close(self) -> None:
        """Stop all turns and wait a few seconds for them."""
        running = self.running()
        self.stop_all()
        for turn in running:
            turn.wait(_END_S)

    def __enter__(self) -> Chats:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- checks --------------------------------------------------------------------------

    def _require_model(self) -> ChatModel:
        if self._model is not None:
            return self._model
        if not self.has_model:
            raise NoLanguageModelError
        return LlmClient(self._kb.backend_settings.server())

    def _require_allowed(self, mode: chats.ChatMode) -> None:
        if mode == "write" and not self.may_write:
            require_writing_token(self._kb)
            raise WritesForbiddenError(
                "Nothing may be written here, so the agent can only read.",
                hint="Start it without --read-only, with a database that can be written.",
            )

    def _mark_abandoned(self) -> None:
        if self._chat_store is self._kb:
            self._kb.end_abandoned_turns()

    # -- running -------------------------------------------------------------------------

    def _launch(self, turn: AgentTurn) -> AgentTurn:
        chat = turn.chat
        with self._lock:
            running = self._running()
            if turn.follows_a_running_one or chat in {each.chat for each in running}:
                raise ConflictError(
                    "This conversation is being answered.", hint="Wait for the answer, or stop it."
                )
            if len(running) >= MOST_RUNNING:
                raise ConflictError(
                    engine_text(
                        "{count} questions are being answered already.", count=MOST_RUNNING
                    ),
                    hint="Wait for an answer, or stop one.",
                )
            last = self._turns.pop(chat, None)
            self._turns[chat] = turn
            self._drop_ended()
        try:
            turn.start()
        except BaseException:
            with self._lock:
                if self._turns.pop(chat, None) is not None and last is not None:
                    self._turns[chat] = last
            raise
        return turn

    def _running(self) -> list[AgentTurn]:
        return [turn for turn in self._turns.values() if turn.status == "running"]

    def _drop_ended(self) -> None:
        ended = [chat for chat, turn in self._turns.items() if turn.status != "running"]
        for chat in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._turns[chat]

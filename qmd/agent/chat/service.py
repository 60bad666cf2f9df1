"""Starts, stops and resumes the turns of conversations."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from qmd.agent.chat import history
from qmd.agent.chat.keeping import ChatKeeper, DatabaseKeeper, MemoryKeeper
from qmd.agent.chat.questions import ANSWER_S, Questions
from qmd.agent.chat.turn import AgentTurn, TurnSetup
from qmd.agent.engine import Engine
from qmd.engine_text import engine_text
from qmd.errors import ChatNotFoundError, ConflictError, NoLanguageModelError, WritesForbiddenError
from qmd.inference.fence import Fence
from qmd.inference.llm import Message
from qmd.kb import KnowledgeBase
from qmd.kb.chats import shown
from qmd.store.sql.conversations import ChatSummary, StoredTurn
from qmd.system import clock
from qmd.system.consent import confirming
from qmd.system.session import in_session
from qmd.values.chats import Chat, ChatEvent, ChatMode, chat_name, check_question

if TYPE_CHECKING:
    from qmd.agent.loop import Happening
    from qmd.agent.native import ToolModel

MOST_RUNNING = 4
"""The most turns that run at once."""

_MOST_ENDED = 50  # turns that have ended and can still be looked at in this process
_RESUMABLE = ("failed", "stopped", "limit", "interrupted")
_END_S = 5.0  # how long `close` waits for each turn


class Chats:
    """
    The conversations of one knowledge base. Thread-safe.

    Args:
        model: The language model; None for the one of the knowledge base's settings.
        toolsets: The toolsets that the model may use; none for all.
        may_write: Whether mode ``write`` is allowed.
        max_rounds: How often the model is asked for one question, at most.
        question_s: How long a question about a write waits for its answer, in seconds.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        model: ToolModel | None = None,
        toolsets: Sequence[str] = (),
        may_write: bool = True,
        max_rounds: int = 10,
        question_s: float = ANSWER_S,
    ) -> None:
        self._kb = kb
        self._model = model
        self._toolsets = tuple(toolsets)
        self._may_write = may_write
        self._max_rounds = max_rounds
        self._question_s = question_s
        self._keeper: ChatKeeper = MemoryKeeper() if kb.is_read_only else DatabaseKeeper(kb)
        self._lock = threading.Lock()
        self._turns: dict[str, AgentTurn] = {}  # conversation → its last turn in this process
        self._threads: dict[str, threading.Thread] = {}

    @property
    def model_name(self) -> str | None:
        """The name of the language model; None if none is set."""
        if self._model is not None:
            return "the model"
        if not self._is_model_set():
            return None
        return self._kb.language_model.server().model

    @property
    def may_write(self) -> bool:
        """Whether mode ``write`` is allowed."""
        return self._may_write and not (self._kb.is_read_only or self._kb.files_are_read_only)

    def start(
        self,
        question: str,
        chat_id: str | None = None,
        *,
        mode: ChatMode = "read",
        watch: Callable[[Happening], None] | None = None,
    ) -> AgentTurn:
        """
        Ask a question, in a new conversation or in an earlier one; returns at once.

        Args:
            watch: Called with each event of the execution loop, on the turn's thread.

        Raises:
            InputError, NoLanguageModelError, WritesForbiddenError, ChatNotFoundError,
            ConflictError: As `qmd.agent.chat` says.
        """
        question = question.strip()
        model = self._require_model()
        self._require_allowed(mode)
        check_question(question, self._kb.language_model.window)
        self._mark_abandoned()
        past: list[StoredTurn] = []
        summary = ChatSummary("", 0)
        name = chat_name(question)
        if chat_id is not None:
            info, summary, past = self._keeper.load(chat_id)
            name = info.name
        fence = Fence("")
        stored = StoredTurn(
            number=past[-1].number + 1 if past else 1,
            question=question,
            answer="",
            status="running",
            started=clock.now(),
            seconds=0.0,
            process=self._kb.process_name(),
            events="[]",
            messages=history.to_json([Message("user", question)], fence),
        )
        chat = chat_id or secrets.token_hex(8)
        return self._launch(TurnSetup(chat, name, mode, stored, model, past, summary, watch=watch))

    def retry(self, chat_id: str, *, watch: Callable[[Happening], None] | None = None) -> AgentTurn:
        """
        Resume the last turn of a conversation, with all that was done before it ended.

        Raises:
            ConflictError: The last turn has an answer, or runs.
            The errors of `start`.
        """
        model = self._require_model()
        self._mark_abandoned()
        info, summary, past = self._keeper.load(chat_id)
        if not past or past[-1].status not in _RESUMABLE:
            raise ConflictError(
                "The last question of this conversation has an answer or is being answered.",
                hint="Ask a new question.",
            )
        self._require_allowed(info.mode)
        last = past.pop()
        stored = last._replace(status="running", process=self._kb.process_name())
        earlier = [
            ChatEvent(kind, data)
            for kind, data in json.loads(last.events)
            if kind not in ("started", "error", "ended")
        ]
        return self._launch(
            TurnSetup(chat_id, info.name, info.mode, stored, model, past, summary, earlier, watch)
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

    def chat(self, chat_id: str) -> Chat:
        """
        A conversation with its turns and their events, also of a turn that runs.

        Raises:
            ChatNotFoundError
        """
        self._mark_abandoned()
        with self._lock:
            live = self._turns.get(chat_id)
        info, _, stored = self._keeper.load(chat_id)
        turns = [shown(turn) for turn in stored]
        if live is not None and turns and live.number == turns[-1].number:
            turns[-1] = replace(turns[-1], events=tuple(live.log.all()))
        return Chat(info, tuple(turns))

    def stop_all(self) -> None:
        """Stop all turns, because the process ends; they can be resumed by the next one."""
        for turn in self.running():
            turn.interrupt()

    def close(self) -> None:
        """Stop all turns and wait a few seconds for them."""
        self.stop_all()
        for thread in tuple(self._threads.values()):
            thread.join(_END_S)

    # -- checks --------------------------------------------------------------------------

    def _is_model_set(self) -> bool:
        backends = self._kb.language_model
        return backends.llm_url is not None or backends.key("llm") is not None

    def _require_model(self) -> ToolModel:
        if self._model is not None:
            return self._model
        if not self._is_model_set():
            raise NoLanguageModelError
        from qmd.inference.llm import LlmClient

        return LlmClient(self._kb.language_model.server())

    def _require_allowed(self, mode: ChatMode) -> None:
        if mode == "write" and not self.may_write:
            raise WritesForbiddenError(
                "Nothing may be written here, so the agent can only read.",
                hint="Start it without --read-only, with a database that can be written.",
            )

    def _mark_abandoned(self) -> None:
        if self._keeper.lasts:
            self._kb.end_abandoned_turns()

    # -- running -------------------------------------------------------------------------

    def _launch(self, setup: TurnSetup) -> AgentTurn:
        turn = AgentTurn(setup, self._keeper)
        chat, past = setup.chat, setup.past
        with self._lock:
            running = self._running()
            if (past and past[-1].status == "running") or chat in {each.chat for each in running}:
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
            self._turns.pop(chat, None)
            self._turns[chat] = turn
            self._drop_ended()
        try:
            self._keeper.begin(chat, setup.name, setup.mode, setup.stored)
        except BaseException:
            with self._lock:
                del self._turns[chat]
            raise
        thread = threading.Thread(target=self._run, args=(turn,), name="qmd-chat", daemon=True)
        with self._lock:
            self._threads[chat] = thread
        thread.start()
        return turn

    def _run(self, turn: AgentTurn) -> None:
        with ExitStack() as work:
            work.enter_context(in_session(f"chat-{turn.chat}", face="chat"))
            if turn.mode == "write":
                turn.questions = Questions(
                    turn.log,
                    turn.stop_signal,
                    name=self._kb.file_name,
                    timeout_s=self._question_s,
                )
                work.enter_context(confirming(turn.questions))
            turn.run(self._engine)
        with self._lock:
            self._threads.pop(turn.chat, None)

    def _engine(self) -> Engine:
        return Engine(
            self._kb,
            self._toolsets,
            max_rounds=self._max_rounds,
            model_time_s=self._kb.language_model.answers_s,
        )

    def _running(self) -> list[AgentTurn]:
        return [turn for turn in self._turns.values() if turn.status == "running"]

    def _drop_ended(self) -> None:
        ended = [chat for chat, turn in self._turns.items() if turn.status != "running"]
        for chat in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._turns[chat]

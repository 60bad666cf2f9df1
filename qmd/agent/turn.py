"""One question of a conversation and all that comes of it, on a thread of its own."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from qmd.agent import history
from qmd.agent.citations import citation_check
from qmd.agent.consents import CONSENT_S, Consents, not_waiting
from qmd.agent.events import EventLog, Listener, error_data, reading_of
from qmd.agent.executor import ToolExecutor
from qmd.agent.history import ChatMemory
from qmd.agent.loop import ChatModel, ExecutionLoop, RunState
from qmd.agent.prompt import Prompt, prompt_for, tokens
from qmd.errors import QmdError, WritesForbiddenError
from qmd.inference.llm import Message
from qmd.inference.llm.answer import Fence
from qmd.kb import KnowledgeBase
from qmd.kb.chats import as_turn
from qmd.store.sql.conversations import ChatSummary, KeptChat
from qmd.system.cancellation import Cancellation
from qmd.system.session import confirming, current_session, in_session
from qmd.tools.toolsets import select
from qmd.values import chats
from qmd.values.chats import StoredTurn
from qmd.values.proposed import Confirm
from qmd.values.text import estimate_tokens

#: The longest time of a turn, in seconds, with tools and the person's consents.
TURN_S = 1800.0

#: The most bytes that are kept of the events of a turn, and of its messages.
MOST_KEPT_BYTES = chats.MAX_CHAT_BYTES // 8

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnRules:
    """
    What holds for the turns of one face.

    Attributes:
        toolsets: The toolsets that the model may use; none for all.
        max_rounds: How often the model is asked for one question, at most.
        turn_s: The longest time of a turn, in seconds.
        consent_s: How long a write waits for the person's consent, in seconds.
        confirm: Agrees to writes; None to ask the person by an event of the turn.
    """

    toolsets: tuple[str, ...] = ()
    max_rounds: int = chats.MAX_ROUNDS
    turn_s: float = TURN_S
    consent_s: float = CONSENT_S
    confirm: Confirm | None = None


class AgentTurn:
    """
    A turn that runs or has ended. Thread-safe; `qmd.agent.chat` shows its use.

    Args:
        chat_store: Where the conversation is kept.
        kept: The conversation with its earlier turns.
        stored: The turn as it is kept, with what was said in it before.
        earlier: The events of the turn before it is resumed.

    Attributes:
        chat: The id of the conversation.
        name: The name of the conversation.
        number: Counts from 1 within the conversation.
        mode: Whether the model may write what the person agrees to.
        is_kept: Whether the conversation outlives the process.
        question: The person's.
        answer: The text of the answer; "" while there is none.
        consents: The writes that the person is asked about; None if the turn only reads.
        error: What ended the turn, if an error did.
        result: What came of the rounds; None until they have ended.
        repeated: How many of the events are not of this run, but of those before it.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        chat_store: KnowledgeBase | ChatMemory,
        model: ChatModel,
        rules: TurnRules,
        kept: KeptChat,
        stored: StoredTurn,
        earlier: Sequence[chats.ChatEvent] = (),
    ) -> None:
        self._kb = kb
        self._chat_store = chat_store
        self._model = model
        self._rules = rules
        self._past = kept.turns
        self._past_summary = kept.summary
        self._stored = stored
        self.chat = kept.info.id
        self.name = kept.info.name
        self.mode = kept.info.mode
        self.number = stored.number
        self.question = stored.question
        self.is_kept = chat_store is kb
        self.status: chats.TurnStatus = "running"
        self._stop = Cancellation()
        self.log = EventLog()
        self.consents: Consents | None = None
        self.error: QmdError | None = None
        self.result: RunState | None = None
        self._asker = current_session()
        self._messages = stored.messages
        self.answer = ""
        self._is_out_of_time = False
        self._is_interrupted = False
        self._ended = threading.Event()
        self._calls = sum(event.kind == "tool_started" for event in earlier)
        self.log.add(
            "started",
            chat=self.chat,
            name=self.name,
            number=self.number,
            mode=self.mode,
            kept=self.is_kept,
        )
        for event in earlier:
            self.log.add(event.kind, **event.data)
        self.repeated = len(self.log.all())

    # -- for those who look on -----------------------------------------------------------

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """
        Call ``listener`` with all events so far and with each further one, on the turn's thread.

        Returns a function that ends the subscription.
        """
        return self.log.subscribe(listener)

    def events(self) -> Iterator[chats.ChatEvent]:
        """All events from the first one, until the turn has ended."""
        return self.log.events()

    def as_turn(self) -> chats.ChatTurn:
        """The turn with its events so far."""
        return replace(as_turn(self._stored), status=self.status, events=tuple(self.log.all()))

    def reply(self) -> chats.ChatReply:
        """What has come of the question so far."""
        events = self.log.all()
        checked: Any = next((event.data for event in events if event.kind == "answer"), {})
        return chats.ChatReply(
            chat=self.chat,
            name=self.name,
            number=self.number,
            status=self.status,
            kept=self.is_kept,
            answer=self.answer,
            citations=checked.get("citations", []),
            unsupported=checked.get("unsupported", []),
            tools=tuple(e for e in events if e.kind in ("tool_started", "tool_finished")),
            error=next((event.data for event in events if event.kind == "error"), None),
        )

    @property
    def warning(self) -> str | None:
        """A sentence for the person if there is no answer, or perhaps no whole one; else None."""
        if self._is_out_of_time:
            return f"stopped after {self._rules.turn_s / 60:g} minutes. Ask for less at once."
        return None if self.result is None else self.result.warning

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the turn; returns whether it has ended."""
        return self._ended.wait(timeout_s)

    def stop(self) -> None:
        """End the turn; a tool that writes is finished first. May be called at any time."""
        self._stop.cancel()

    def interrupt(self) -> None:
        """End the turn because the process ends; it can be resumed by another one."""
        self._is_interrupted = True
        self._stop.cancel()

    def decide(self, consent_id: str, agreed: bool) -> None:
        """
        Agree to a write that waits, or decline it.

        Raises:
            NotFoundError: It does not wait.
            WritesForbiddenError: Another session has asked for this turn. Its person sees the
                question, and agrees for itself alone.
        """
        if current_session() != self._asker:
            raise WritesForbiddenError(
                "Another client began this turn, and only that one may answer for it.",
                hint="Answer it there, or stop the turn and ask from here.",
            )
        if self.consents is None:
            raise not_waiting(consent_id)
        self.consents.decide(consent_id, agreed=agreed)

    @property
    def follows_a_running_one(self) -> bool:
        """Whether the turn before it runs, in whatever process."""
        return bool(self._past) and self._past[-1].status == "running"

    # -- the run -------------------------------------------------------------------------

    def start(self) -> None:
        """
        Keep the turn as it begins, and run it on a thread.

        Raises:
            ConflictError: Too many conversations, too long a one, or another process runs the turn.
        """
        self._chat_store.begin_chat_turn(self.chat, self.name, self.mode, self._stored)
        threading.Thread(target=self._run, name="qmd-chat", daemon=True).start()

    def _run(self) -> None:
        """Answer the question, and keep what came of it."""
        began_s = time.monotonic()
        timer = threading.Timer(self._rules.turn_s, self._run_out_of_time)
        timer.daemon = True
        timer.start()
        status: chats.TurnStatus = "failed"
        try:
            with self._asking_first():
                status = self._outcome(self._converse())
        except QmdError as error:
            self.error = error
            self.log.add("error", **error_data(error))
        except KeyboardInterrupt:
            status = "stopped"
        except Exception as error:  # noqa: BLE001 - logged and shown
            _log.exception("a turn of a conversation failed")
            message = f"Something unforeseen: {type(error).__name__}. The log tells more."
            self.log.add("error", code="internal", message=message, hint=None, transient=False)
        finally:
            timer.cancel()
            if status == "stopped" and self._is_interrupted:
                status = "interrupted"
            elif status == "stopped" and self._is_out_of_time:
                status = "limit"
            self._end(status, time.monotonic() - began_s)

    @contextmanager
    def _asking_first(self) -> Iterator[None]:
        """The person agrees to each write of the block, and may stop it."""
        with ExitStack() as work:
            if self.is_kept:  # its changes belong to the conversation, whoever asks in it
                work.enter_context(in_session(f"chat-{self.chat}", face="chat"))
            else:
                work.enter_context(in_session(self._asker))
            if self.mode == "write":
                self.consents = Consents(
                    self.log,
                    self._stop,
                    name=self._kb.file_name,
                    timeout_s=self._rules.consent_s,
                )
                work.enter_context(confirming(self._rules.confirm or self.consents))
            work.enter_context(self._stop.active())
            yield

    def _converse(self) -> RunState:
        """Put the question to the model, with what was said before and with the tools."""
        kb, stored = self._kb, self._stored
        executor = ToolExecutor(kb, select(self._rules.toolsets).tools)
        prompt = prompt_for(kb, executor.definitions())
        fence = prompt.fence
        begun = history.from_json(stored.messages, fence)
        kept = self._history(prompt, begun)
        if kept.left_out:
            prompt = prompt.continued(history.section(self._summary(kept), fence))
        before = kept.messages
        read_before = map(reading_of, [*self._past[kept.left_out :], stored])

        def keep_messages(sent: Sequence[Message]) -> None:
            self._messages = history.to_json(sent[len(before) :], fence)

        def keep_progress(sent: Sequence[Message]) -> None:
            """Keep what was said so far, in case that the process ends."""
            if len(sent) > len(before) + 1:
                keep_messages(sent)
                self._keep("running", 0.0, self.log.all())

        loop = ExecutionLoop(
            self._model,
            executor,
            system=prompt,
            tool_calls=kb.backend_settings.tool_calls,
            max_rounds=self._rules.max_rounds,
            window=kb.backend_settings.window,
            model_time_s=kb.backend_settings.answers_s,
            check=citation_check(kb, list(read_before)),
            tell=self.log.add,
            sent=keep_progress,
            stop=self._stop,
            calls_before=self._calls,
        )
        result = loop.run_from([*before, *begun])
        keep_messages(result.messages)
        return result

    def _history(self, prompt: Prompt, begun: history.Messages) -> history.History:
        """The earlier turns that the model has room for."""
        turns = [
            history.as_history(history.from_json(turn.messages, prompt.fence))
            for turn in self._past
        ]
        window = self._kb.backend_settings.window
        used = estimate_tokens(prompt.text) + tokens(begun)
        room = window - used - window // 4  # a quarter is for the answer and the tools
        kept = history.fitting_turns(turns, room, prompt.fence)
        if kept.left_out:
            kept = history.fitting_turns(turns, room - history.LONGEST_SUMMARY / 2, prompt.fence)
        return kept

    def _summary(self, kept: history.History) -> ChatSummary:
        """The summary of the turns that are left out; a new one is kept."""
        summary = self._past_summary
        if summary.turns >= kept.left_out:
            return summary
        left_out = self._past[: kept.left_out]
        new = history.summed_up(left_out, summary, self._model, self._stop)
        if new is None:
            return history.questions_of(left_out)
        try:
            self._chat_store.keep_chat_summary(self.chat, new)
        except QmdError as error:
            _log.warning("a summary of a conversation could not be kept: %s", error.with_hint)
        return new

    def _outcome(self, result: RunState) -> chats.TurnStatus:
        self.result = result
        self.error = result.error
        if result.error is not None:
            return "failed"
        if result.interrupted:
            return "stopped"
        if result.reached_max_rounds:
            return "limit"
        self.answer = result.final_response
        return "done"

    def _end(self, status: chats.TurnStatus, seconds: float) -> None:
        seconds = round(seconds, 3)
        end = chats.ChatEvent("ended", {"status": status, "seconds": seconds})
        is_kept = self._keep(status, seconds, [*self.log.all(), end])
        self.is_kept = self.is_kept and is_kept
        self.status = status
        self.log.add("ended", status=status, seconds=seconds, kept=self.is_kept)
        self._ended.set()

    def _keep(
        self, status: chats.TurnStatus, seconds: float, events: Sequence[chats.ChatEvent]
    ) -> bool:
        """Keep the state of the turn; False, and it is logged, if that fails."""
        state = replace(
            self._stored,
            answer=self.answer,
            status=status,
            seconds=seconds,
            events=_events_json(events),
            messages=self._kept_messages(),
        )
        try:
            self._chat_store.keep_chat_turn(self.chat, state)
        except QmdError as error:
            _log.warning("a turn of a conversation could not be kept: %s", error.with_hint)
            return False
        return True

    def _kept_messages(self) -> str:
        """The messages as JSON; if they are too long, the question and the answer alone."""
        if len(self._messages.encode()) <= MOST_KEPT_BYTES:
            return self._messages
        messages = [Message("user", self.question)]
        if self.answer:
            messages.append(Message("assistant", self.answer))
        return history.to_json(messages, Fence(""))

    def _run_out_of_time(self) -> None:
        self._is_out_of_time = True
        self._stop.cancel()


def _events_json(events: Sequence[chats.ChatEvent]) -> str:
    """Events as JSON; if they are too long, without what the tools were given and returned."""
    text = json.dumps([[event.kind, event.data] for event in events], ensure_ascii=False)
    if len(text.encode()) <= MOST_KEPT_BYTES:
        return text
    kept: list[list[object]] = []
    dropped: dict[str, Literal[""] | dict[str, str]] = {"result": "", "params": {}, "block": ""}
    for event in events:
        data = {key: dropped.get(key, value) for key, value in event.data.items()}
        if event.kind != "text":
            kept.append([event.kind, data])
    return json.dumps(kept[:2000], ensure_ascii=False)

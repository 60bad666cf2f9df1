"""One question of a conversation and all that comes of it, on a thread of its own."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from qmd.agent.chat import history
from qmd.agent.chat.event_log import (
    EventLog,
    EventWriter,
    Listener,
    reading_of,
    write_answer,
    write_error,
)
from qmd.agent.chat.stopping import StoppableModel, StopSignal
from qmd.agent.loop import LoopResult
from qmd.agent.prompt import Prompt, tokens
from qmd.agent.reading import Reading
from qmd.engine_text import engine_text
from qmd.errors import NotFoundError, QmdError, WritesForbiddenError
from qmd.inference.fence import Fence
from qmd.inference.llm import Message
from qmd.store.sql.conversations import ChatSummary, StoredTurn
from qmd.system.session import current_session
from qmd.values.chats import MAX_CHAT_BYTES, ChatEvent, ChatMode, TurnStatus
from qmd.values.tokens import estimate_tokens

if TYPE_CHECKING:
    from qmd.agent.chat.keeping import ChatKeeper
    from qmd.agent.chat.questions import Questions
    from qmd.agent.engine import Engine
    from qmd.agent.loop import Happening
    from qmd.agent.native import ToolModel

TURN_S = 1800.0
"""The longest time of a turn, in seconds, with tools and questions to the person."""

MOST_KEPT_BYTES = MAX_CHAT_BYTES // 8
"""The most bytes that are kept of the events of a turn, and of its messages."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnSetup:
    """
    What a turn begins with.

    Attributes:
        chat, name, mode: Of the conversation: its id, its name, and whether the model may write.
        stored: The turn as it is kept, with what was said in it before.
        past: The earlier turns of the conversation.
        summary: What the model wrote of the first of them.
        earlier: The events of the turn before it is resumed.
        watch: Called with each event of the execution loop, on the turn's thread.
    """

    chat: str
    name: str
    mode: ChatMode
    stored: StoredTurn
    model: ToolModel
    past: Sequence[StoredTurn]
    summary: ChatSummary
    earlier: Sequence[ChatEvent] = ()
    watch: Callable[[Happening], None] | None = None


class AgentTurn:
    """
    A turn that runs or has ended. Thread-safe; `qmd.agent.chat` shows its use.

    Attributes:
        chat: The id of the conversation.
        name: The name of the conversation.
        number: Counts from 1 within the conversation.
        mode: Whether the model may write what the person agrees to.
        is_kept: Whether the conversation outlives the process.
        error: What ended the turn, if an error did.
    """

    def __init__(self, setup: TurnSetup, keeper: ChatKeeper) -> None:
        stored, earlier = setup.stored, setup.earlier
        self.chat = setup.chat
        self.name = setup.name
        self.mode = setup.mode
        self.number = stored.number
        self.question = stored.question
        self.is_kept = keeper.lasts
        self.status: TurnStatus = "running"
        self.stop_signal = StopSignal()
        self.log = EventLog()
        self.questions: Questions | None = None
        self.error: QmdError | None = None
        self._asker = current_session()
        self._setup = setup
        self._keeper = keeper
        self._messages = stored.messages
        self._answer = ""
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

    # -- for those who look on -----------------------------------------------------------

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """
        Call ``listener`` with all events so far and with each further one, on the turn's thread.

        Returns a function that ends the subscription.
        """
        return self.log.subscribe(listener)

    def events(self) -> Iterator[ChatEvent]:
        """All events from the first one, until the turn has ended."""
        return self.log.events()

    def text(self) -> str:
        """The text of the answer; "" while there is none."""
        return self._answer

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the turn; returns whether it has ended."""
        return self._ended.wait(timeout_s)

    def stop(self) -> None:
        """End the turn; a tool that writes is finished first. May be called at any time."""
        self.stop_signal.set()

    def interrupt(self) -> None:
        """End the turn because the process ends; it can be resumed by another one."""
        self._is_interrupted = True
        self.stop_signal.set()

    def answer(self, question: str, agreed: bool) -> None:
        """
        Answer the question whether a write may be done.

        Raises:
            NotFoundError: It does not wait for an answer.
            WritesForbiddenError: Another session has asked for this turn. Its person sees the
                question, and agrees for itself alone.
        """
        if current_session() != self._asker:
            raise WritesForbiddenError(
                "Another client began this turn, and only that one may answer for it.",
                hint="Answer it there, or stop the turn and ask from here.",
            )
        if self.questions is None:
            raise NotFoundError(
                engine_text("No question {question} waits for an answer.", question=question)
            )
        self.questions.answer(question, agreed=agreed)

    # -- the run -------------------------------------------------------------------------

    def run(self, prepare: Callable[[], Engine]) -> None:
        """
        Answer the question, and keep what came of it; returns when the turn has ended.

        ``prepare``: Makes the tools and the system prompt.
        """
        began_s = time.monotonic()
        timer = threading.Timer(TURN_S, self._run_out_of_time)
        timer.daemon = True
        timer.start()
        status: TurnStatus = "failed"
        try:
            with self.stop_signal.cancellation.active():
                status = self._converse(prepare())
        except QmdError as error:
            self.error = error
            write_error(self.log, error)
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

    def _converse(self, engine: Engine) -> TurnStatus:
        past, prompt = self._setup.past, engine.prompt
        fence = prompt.fence
        begun = history.from_json(self._setup.stored.messages, fence)
        kept = self._history(prompt, begun, engine.window)
        if kept.left_out:
            prompt = prompt.continued(history.section(self._summary(kept), fence))
        before = kept.messages
        stoppable = StoppableModel(
            engine.offering_tools(self._setup.model),
            self.stop_signal,
            lambda sent: self._keep_progress(sent, len(before), fence),
        )
        writer = EventWriter(self.log, engine.executor, self._calls)
        watch = self._setup.watch

        def listen(happening: Happening) -> None:
            writer(happening)
            if watch is not None:
                watch(happening)

        kept_turns = past[kept.left_out :]
        loop = engine.loop(
            stoppable,
            prompt=prompt,
            read_before=Reading().merge(map(reading_of, [*kept_turns, self._setup.stored])),
            listen=listen,
            stopped=lambda: self.stop_signal.is_set,
        )
        result = loop.resume(LoopResult("", messages=(*before, *begun)))
        self._messages = history.to_json(result.messages[len(before) :], fence)
        return self._outcome(result)

    def _history(self, prompt: Prompt, begun: history.Messages, window: int) -> history.History:
        turns = [
            history.as_history(history.from_json(turn.messages, prompt.fence))
            for turn in self._setup.past
        ]
        used = estimate_tokens(prompt.text) + tokens(begun)
        room = window - used - window // 4  # a quarter is for the answer and the tools
        kept = history.fit(turns, room, prompt.fence)
        if kept.left_out:
            kept = history.fit(turns, room - history.LONGEST_SUMMARY / 2, prompt.fence)
        return kept

    def _summary(self, kept: history.History) -> ChatSummary:
        """The summary of the turns that are left out; a new one is kept."""
        summary = self._setup.summary
        if summary.turns >= kept.left_out:
            return summary
        left_out = self._setup.past[: kept.left_out]
        model = StoppableModel(self._setup.model, self.stop_signal)
        new = history.summed_up(left_out, summary, model, Fence.new())
        if new is None:
            return history.questions_of(left_out)
        self._keeper.keep_summary(self.chat, new)
        return new

    def _outcome(self, result: LoopResult) -> TurnStatus:
        if result.error is not None:
            self.error = result.error
            return "failed"
        if result.interrupted:
            return "stopped"
        if result.reached_max_iterations:
            return "limit"
        self._answer = result.final_response
        write_answer(self.log, result)
        return "done"

    def _keep_progress(self, sent: Sequence[Message], before: int, fence: Fence) -> None:
        """Keep what was said so far, in case that the process ends."""
        messages = sent[1 + before :]  # without the system prompt and the history
        if len(messages) > 1:
            self._messages = history.to_json(messages, fence)
            self._keeper.keep(self.chat, self._state("running", 0.0, self.log.all()))

    def _end(self, status: TurnStatus, seconds: float) -> None:
        seconds = round(seconds, 3)
        end = ChatEvent("ended", {"status": status, "seconds": seconds})
        is_kept = self._keeper.keep(self.chat, self._state(status, seconds, [*self.log.all(), end]))
        self.is_kept = self.is_kept and is_kept
        self.status = status
        self.log.add("ended", status=status, seconds=seconds, kept=self.is_kept)
        self._ended.set()

    def _state(self, status: TurnStatus, seconds: float, events: Sequence[ChatEvent]) -> StoredTurn:
        return self._setup.stored._replace(
            answer=self._answer,
            status=status,
            seconds=seconds,
            events=_events_json(events),
            messages=self._kept_messages(),
        )

    def _kept_messages(self) -> str:
        """The messages as JSON; if they are too long, the question and the answer alone."""
        if len(self._messages.encode()) <= MOST_KEPT_BYTES:
            return self._messages
        messages = [Message("user", self.question)]
        if self._answer:
            messages.append(Message("assistant", self._answer))
        return history.to_json(messages, Fence(""))

    def _run_out_of_time(self) -> None:
        self._is_out_of_time = True
        self.stop_signal.set()


def _events_json(events: Sequence[ChatEvent]) -> str:
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

"""Conversations with the agent: turns on threads, their events, and what is kept of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from support.embedder import HashEmbedder
from support.vault import make_vault

from qmd import KnowledgeBase, Settings
from qmd.agent.chat import AgentTurn, Chats
from qmd.errors import (
    ChatNotFoundError,
    ConflictError,
    InputError,
    NoLanguageModelError,
    NotFoundError,
    OutsideRootsError,
    TransientInferenceError,
    WritesForbiddenError,
)
from qmd.inference.llm import ChatAnswer, Delta, Event, Message
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.settings import BackendSettings
from qmd.system.session import in_session
from qmd.values.chats import MAX_TURNS, ChatEvent, chat_name

WAIT_S = 30.0


def block(tool: str, **params: object) -> str:
    return f"```json:tool\n{json.dumps({'tool': tool, 'params': params}, ensure_ascii=False)}\n```"


class ScriptedModel:
    """Says what the test wrote down; a step may also be an error, or a function that waits."""

    def __init__(self, *steps: str | Exception | Callable[[], str]) -> None:
        self._steps = list(steps)
        self.requests: list[list[Message]] = []

    def chat(
        self,
        messages: Sequence[Message],
        *,
        listen: Callable[[Event], None] | None = None,
        budget_s: float | None = None,
    ) -> ChatAnswer:
        self.requests.append(list(messages))
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        text = step if isinstance(step, str) else step()
        if listen is not None:
            for start in range(0, len(text), 5):
                listen(Delta(text[start : start + 5]))
        return ChatAnswer(text, finish_reason="stop")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return make_vault(tmp_path)


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[KnowledgeBase]:
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        yield kb


def ended(turn: AgentTurn) -> list[ChatEvent]:
    assert turn.wait(WAIT_S)
    return list(turn.events())


def kinds(events: Sequence[ChatEvent]) -> list[str]:
    return [event.kind for event in events]


def data(events: Sequence[ChatEvent], kind: str) -> list[dict[str, object]]:
    return [dict(event.data) for event in events if event.kind == kind]


def test_a_turn_tells_what_happens_and_is_kept(kb: KnowledgeBase) -> None:
    model = ScriptedModel("I look.\n" + block("search", query="plan"), "It is **March**.")
    chats = Chats(kb, model=model)
    events = ended(chats.start("When do we deploy?"))
    assert kinds(events) == [
        "started", "asking", "text", "tool_started", "tool_finished", "asking", "text", "answer",
        "ended",
    ]  # fmt: skip
    assert data(events, "text") == [{"text": "I look."}, {"text": "It is **March**."}] or [
        str(each["text"]).strip() for each in data(events, "text")
    ] == ["I look.", "It is **March**."]
    [begun], [finished] = data(events, "tool_started"), data(events, "tool_finished")
    assert (begun["call"], begun["tool"], begun["writes"]) == (1, "search", False)
    assert (finished["call"], finished["success"]) == (1, True)
    [answer] = data(events, "answer")
    assert answer["text"] == "It is **March**."
    assert data(events, "ended")[0]["status"] == "done"
    [info] = kb.chats().chats
    assert (info.name, info.mode, info.turns) == ("When do we deploy?", "read", 1)
    [turn] = kb.chat(info.id).turns
    assert (turn.question, turn.answer, turn.status) == (
        "When do we deploy?", "It is **March**.", "done",
    )  # fmt: skip
    assert kinds(turn.events) == kinds(events)


def test_the_model_is_sent_the_earlier_turns(kb: KnowledgeBase) -> None:
    model = ScriptedModel(block("search", query="plan"), "March.", "Because of the parser.")
    chats = Chats(kb, model=model)
    first = chats.start("When?")
    ended(first)
    ended(chats.start("And why?", first.chat))
    system, *messages = model.requests[-1]
    assert [message.role for message in messages] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert [messages[0].content, messages[3].content, messages[4].content] == [
        "When?", "March.", "And why?",
    ]  # fmt: skip
    mark = system.content.partition("<data-")[2].partition(">")[0]
    assert f"<data-{mark}>" in messages[2].content  # the results have the fence of this run
    assert kb.chats().chats[0].turns == 2


def test_a_citation_may_be_of_lines_that_an_earlier_turn_read(
    kb: KnowledgeBase, notes: Path
) -> None:
    (notes / "release.md").write_text("# Release\n\nWe deploy the parser in March.\n")
    kb.index()
    model = ScriptedModel(
        block("get", file="notes/release.md"),
        "I have read it.",
        "We deploy the parser in March [notes/release.md:3].",
        "We deploy the parser in March [notes/2025/plan.md:1].",
    )
    chats = Chats(kb, model=model)
    chat = chats.start("Read it").chat
    ended(chats.turn(chat))
    cited = []
    for question in ("When?", "Really?"):
        [answer] = data(ended(chats.start(question, chat)), "answer")
        cited += [each["status"] for each in cast("list[dict[str, str]]", answer["citations"])]
    assert cited == ["ok", "not_found"]


def test_an_error_can_be_retried_without_losing_rounds(kb: KnowledgeBase) -> None:
    model = ScriptedModel(block("search", query="plan"), TransientInferenceError("busy"), "March.")
    chats = Chats(kb, model=model)
    turn = chats.start("When?")
    events = ended(turn)
    assert (
        data(events, "error")
        == [{"code": "inference_error", "message": "busy", "hint": None, "transient": True}]
        or data(events, "error")[0]["transient"]
    )
    assert data(events, "ended")[0]["status"] == "failed"
    again = chats.retry(turn.chat)
    events = ended(again)
    assert again.number == 1
    assert [each["call"] for each in data(events, "tool_started")] == [1]
    assert data(events, "ended")[0]["status"] == "done"
    assert len(model.requests[-1]) == 4  # system, question, call, result
    with pytest.raises(ConflictError, match="has an answer"):
        chats.retry(turn.chat)


def test_stop_ends_the_wait_for_the_model(kb: KnowledgeBase) -> None:
    asked, leave = threading.Event(), threading.Event()

    def slow() -> str:
        asked.set()
        leave.wait(WAIT_S)
        return "late"

    chats = Chats(kb, model=ScriptedModel(slow, "March."))
    turn = chats.start("When?")
    assert asked.wait(WAIT_S)
    with pytest.raises(ConflictError, match="being answered"):
        chats.start("Again", turn.chat)
    turn.stop()
    events = ended(turn)
    leave.set()
    assert data(events, "ended")[0]["status"] == "stopped"
    assert data(ended(chats.retry(turn.chat)), "answer")[0]["text"] == "March."


class TestWrites:
    WRITE = block("create_note", path="notes/answer", content="# New")

    def question(self, turn: AgentTurn) -> ChatEvent:
        return next(event for event in turn.events() if event.kind in ("question", "ended"))

    def test_a_token_that_only_reads_is_named_as_the_reason(self, kb: KnowledgeBase) -> None:
        scope = kb.scope_of_token(kb.create_token("reading", read=["notes"]).token)
        assert scope is not None
        part = ScopedKnowledgeBase(kb, scope)
        chats = Chats(part, model=ScriptedModel(), may_write=False)
        with pytest.raises(OutsideRootsError, match="This token opens nothing for writing"):
            chats.start("Write it", mode="write")

    def test_a_write_waits_for_the_person(self, kb: KnowledgeBase, notes: Path) -> None:
        chats = Chats(kb, model=ScriptedModel(self.WRITE, "Written."))
        turn = chats.start("Write it", mode="write")
        question = self.question(turn).data
        assert (question["tool"], question["file"]) == ("create_note", "notes/answer.md")
        assert "+# New" in str(question["diff"])
        assert not (notes / "answer.md").exists()
        kb.notes.create("notes/other", "written meanwhile, and nobody was asked")
        with pytest.raises(NotFoundError):
            turn.decide("q9", True)
        turn.decide(str(question["question"]), True)
        events = ended(turn)
        assert (notes / "answer.md").read_text() == "# New"
        assert data(events, "answered") == [{"question": "q1", "agreed": True, "outcome": "agreed"}]
        with pytest.raises(NotFoundError):
            turn.decide("q1", True)

    def test_only_the_session_that_asked_may_agree(self, kb: KnowledgeBase, notes: Path) -> None:
        chats = Chats(kb, model=ScriptedModel(self.WRITE, "Written."))
        with in_session("browser-1"):
            turn = chats.start("Write it", mode="write")
        question = str(self.question(turn).data["question"])
        for session in ("rest-1", "browser-2"):
            with in_session(session), pytest.raises(WritesForbiddenError):
                turn.decide(question, True)
        with in_session("browser-1"):
            turn.decide(question, True)
        ended(turn)
        assert (notes / "answer.md").read_text() == "# New"

    def test_a_declined_write_is_told_to_the_model(self, kb: KnowledgeBase, notes: Path) -> None:
        model = ScriptedModel(self.WRITE, "Not written.")
        turn = Chats(kb, model=model).start("Write it", mode="write")
        turn.decide(str(self.question(turn).data["question"]), False)
        ended(turn)
        assert "declined" in model.requests[-1][-1].content
        assert not (notes / "answer.md").exists()

    def test_a_question_that_nobody_answers_is_declined(
        self, kb: KnowledgeBase, notes: Path
    ) -> None:
        model = ScriptedModel(self.WRITE, "Not written.")
        turn = Chats(kb, model=model, consent_s=0.01).start("Write it", mode="write")
        assert data(ended(turn), "answered")[0]["outcome"] == "timeout"
        assert "nobody answered" in model.requests[-1][-1].content

    def test_stop_ends_a_question(self, kb: KnowledgeBase, notes: Path) -> None:
        turn = Chats(kb, model=ScriptedModel(self.WRITE)).start("Write it", mode="write")
        self.question(turn)
        turn.stop()
        assert data(ended(turn), "ended")[0]["status"] == "stopped"
        assert not (notes / "answer.md").exists()

    def test_a_file_that_changed_meanwhile_is_not_overwritten(
        self, kb: KnowledgeBase, notes: Path
    ) -> None:
        model = ScriptedModel(self.WRITE, "Not written.")
        turn = Chats(kb, model=model).start("Write it", mode="write")
        question = self.question(turn)
        (notes / "answer.md").write_text("by hand")
        turn.decide(str(question.data["question"]), True)
        ended(turn)
        assert (notes / "answer.md").read_text() == "by hand"
        assert "has changed since" in model.requests[-1][-1].content

    @pytest.mark.parametrize("other_move", [False, True])
    def test_a_move_that_waits_lets_others_move(
        self, kb: KnowledgeBase, notes: Path, other_move: bool
    ) -> None:
        for name in ("one", "two"):
            (notes / f"{name}.md").write_text(f"# {name}\n")
        kb.index()
        move = block("move_note", file="notes/one.md", new_path="notes/moved.md")
        model = ScriptedModel(move, "Done.")
        turn = Chats(kb, model=model).start("Move it", mode="write")
        question = self.question(turn)
        if other_move:
            kb.move_note("notes/two.md", "notes/three.md")  # nobody is asked, and nothing waits
        turn.decide(str(question.data["question"]), True)
        ended(turn)
        assert (notes / "moved.md").exists() is not other_move
        assert ("Other notes were moved" in model.requests[-1][-1].content) is other_move

    def test_mode_read_offers_no_tool_that_writes(self, kb: KnowledgeBase, notes: Path) -> None:
        model = ScriptedModel(self.WRITE, "I cannot.")
        events = ended(Chats(kb, model=model).start("Write it"))
        assert data(events, "tool_finished")[0]["success"] is False
        assert not (notes / "answer.md").exists()
        assert "### create_note" not in model.requests[0][0].content

    def test_it_is_refused_where_nothing_may_be_written(self, kb: KnowledgeBase) -> None:
        chats = Chats(kb, model=ScriptedModel(), may_write=False)
        with pytest.raises(WritesForbiddenError):
            chats.start("Write it", mode="write")


def test_a_database_that_can_only_be_read_keeps_nothing(kb: KnowledgeBase) -> None:
    with KnowledgeBase.open(kb.path, read_only=True) as reader:
        chats = Chats(reader, model=ScriptedModel("March.", "The parser."))
        turn = chats.start("When?")
        events = ended(turn)
        assert data(events, "started")[0]["kept"] is False
        assert data(ended(chats.start("Why?", turn.chat)), "answer")[0]["text"] == "The parser."
        with pytest.raises(WritesForbiddenError):
            chats.start("Write", mode="write")
    assert kb.chats().total == 0


def test_what_cannot_be_asked(kb: KnowledgeBase) -> None:
    with pytest.raises(NoLanguageModelError):
        Chats(kb).start("When?")
    chats = Chats(kb, model=ScriptedModel())
    with pytest.raises(InputError):
        chats.start("  ")
    with pytest.raises(InputError, match="longer than"):
        chats.start("word " * 20_000)
    with pytest.raises(ChatNotFoundError):
        chats.start("When?", "0123")
    assert kb.chats().total == 0


def test_a_question_that_a_full_conversation_refuses_leaves_its_last_turn(
    kb: KnowledgeBase,
) -> None:
    chats = Chats(kb, model=ScriptedModel("March."))
    turn = chats.start("When?")
    ended(turn)
    _, _, [stored] = kb.stored_chat(turn.chat)
    kb.keep_chat_turn(turn.chat, replace(stored, number=MAX_TURNS))
    with pytest.raises(ConflictError, match="too long to go on"):
        chats.start("And why?", turn.chat)
    assert chats.turn(turn.chat) is turn


def test_a_turn_whose_process_died_is_interrupted_and_can_be_retried(kb: KnowledgeBase) -> None:
    chats = Chats(kb, model=ScriptedModel(TransientInferenceError("lost"), "March."))
    turn = chats.start("When?")
    ended(turn)
    _, _, [stored] = kb.stored_chat(turn.chat)
    kb.keep_chat_turn(turn.chat, replace(stored, status="running", process="999999999.1"))
    other = Chats(kb, model=ScriptedModel("March."))
    assert data(ended(other.retry(turn.chat)), "answer")[0]["text"] == "March."


def test_old_turns_are_summed_up_once(tmp_path: Path, notes: Path) -> None:
    settings = Settings(embedder=HashEmbedder(), backends=BackendSettings(window=11_000))
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        long = "word " * 3_000
        model = ScriptedModel(long, long, long, "They talked of words.", "End.", "Again.")
        chats = Chats(kb, model=model, toolsets=("graph",))
        chat = None
        for number in range(3):
            turn = chats.start(f"Question {number}", chat)
            chat = turn.chat
            ended(turn)
        ended(chats.start("Last", chat))
        task, request = model.requests[3], model.requests[4]
        assert "sum up" in task[0].content
        assert "They talked of words." in request[0].content
        assert request[-1].content == "Last"
        ended(chats.start("Very last", chat))
        assert "They talked of words." in model.requests[5][0].content


def test_names() -> None:
    assert chat_name("When?\n\nReally") == "When?"
    assert chat_name("# What did we decide about backups, and where is that written down?") == (
        "What did we decide about backups…"
    )
    assert chat_name(
        "把关于部署的笔记总结一下，然后告诉我还有哪些问题没有解决，最后写进新的笔记里"
    ) == ("把关于部署的笔记总结一下，然后告诉我还有哪些问题没有解决…")

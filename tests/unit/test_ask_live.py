"""What the browser is sent while a turn runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from qmd.server.page.ask_live import LiveText, LiveTurn
from qmd.server.page.ask_turn import Step, ToolStep, TurnView, WordsStep


@pytest.fixture
def live() -> LiveTurn:
    def html(step: Step) -> str:
        assert not isinstance(step, WordsStep)
        return f"<{step.id}>"

    return LiveTurn(
        TurnView("1", 1, "Where?"),
        html=html,
        markdown=lambda text: Markup("<p>{}</p>").format(text.strip()),
        asks="May it?",
    )


def test_words_become_html_block_by_block(live: LiveTurn) -> None:
    pieces = ["The b", "oat.\n", "\nIt ", "is <b>.", "\n\n```\na\n\nb\n```\n", "\nEnd"]
    sent = [event for piece in pieces for event in live.take("text", {"text": piece})]
    assert sent == [
        ("text", {"text": "The b"}),
        ("text", {"text": "oat.\n"}),
        ("block", {"html": "<p>The boat.</p>", "rest": "It "}),
        ("text", {"text": "is <b>."}),
        ("block", {"html": "<p>It is &lt;b&gt;.</p>", "rest": "```\na\n\nb\n```\n"}),
        ("block", {"html": "<p>```\na\n\nb\n```</p>", "rest": "End"}),
    ]
    assert list(live.take("asking", {"round": 2})) == [
        ("block", {"html": "<p>End</p>", "rest": ""}),
        ("asking", {"round": 2}),
    ]


def test_words_that_are_void_are_not_rendered(live: LiveTurn) -> None:
    list(live.take("text", {"text": "Half a"}))
    assert list(live.take("discard", {})) == [("discard", {})]
    assert list(live.take("asking", {"round": 1})) == [("asking", {"round": 1})]


def test_a_card_follows_its_call(live: LiveTurn) -> None:
    started = {"call": 1, "tool": "search", "params": {"query": "x"}, "writes": False}
    finished = {"call": 1, "tool": "search", "success": True, "result": "r", "duration_ms": 3}
    assert list(live.take("tool_started", started)) == [
        ("part", {"html": "<turn-1-step-1>", "tool": "search"})
    ]
    assert list(live.take("tool_finished", finished)) == [("part", {"html": "<turn-1-step-1>"})]


def test_a_question_is_replaced_by_its_outcome(live: LiveTurn) -> None:
    question: dict[str, Any] = {
        "question": "q", "tool": "create_note", "file": "n/a.md", "diff": ["+x"], "left_out": "",
        "asked_at": "2026-11-23T12:00:00Z", "timeout_s": 300.0,
    }  # fmt: skip
    assert list(live.take("question", question)) == [
        ("part", {"html": "<turn-1-step-1>", "asks": "May it?"})
    ]
    assert list(
        live.take("answered", {"question": "q", "agreed": False, "outcome": "declined"})
    ) == [("part", {"html": "<turn-1-step-1>"})]


def test_long_parameters_are_shown_shortened_and_whole() -> None:
    step = ToolStep("1", 1, "create_note", {"path": "a", "content": "x" * 5000})
    assert [len(value) for _, value in step.short] == [1, 200]
    assert "x" * 5000 in step.long
    assert not ToolStep("1", 1, "search", {"query": "a", "limit": 3}).long


@given(st.lists(st.sampled_from(["a", " ", "\n", "\n\n", "```", "~~~~", "\n```\n", "b c"])))
def test_no_text_is_lost_or_doubled(pieces: list[str]) -> None:
    text = LiveText()
    finished = [text.add(piece) for piece in pieces]
    shown = "".join([*finished, text.rest])
    assert shown.replace("\n", "").replace(" ", "") == (
        "".join(pieces).replace("\n", "").replace(" ", "")
    )
    assert escape(shown) is not None


def test_the_words_of_the_last_round_are_the_answer() -> None:
    turn = TurnView("1", 1, "Where?")
    for kind, data in (
        ("asking", {"round": 1}),
        ("text", {"text": "I look"}),
        ("text", {"text": " it up."}),
        ("tool_started", {"call": 1, "tool": "search", "params": {}, "writes": False}),
        ("asking", {"round": 2}),
        ("text", {"text": "Half an"}),
        ("discard", {}),
        ("text", {"text": "There"}),
        ("answer", {"text": "There", "citations": [], "unsupported": []}),
    ):
        turn.take(kind, data)
    assert [step.kind for step in turn.steps] == ["words", "tool"]
    assert isinstance(turn.steps[0], WordsStep)
    assert turn.steps[0].text == "I look it up."
    assert turn.answer == "There"


def test_words_broken_off_are_void_when_the_model_is_asked_again() -> None:
    turn = TurnView("1", 1, "Where?")
    for kind, data in (
        ("text", {"text": "The"}),
        ("error", {"message": "lost", "hint": None}),
        ("asking", {"round": 1}),
    ):
        turn.take(kind, data)
    assert turn.steps == []
    assert turn.error is None

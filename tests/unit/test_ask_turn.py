"""A turn as the page shows it: its steps, and the words that are being written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qmd.server.page.ask_turn import QuestionStep, ToolStep, TurnView, WordsStep, finished


def test_words_are_rendered_up_to_the_last_block_that_is_complete() -> None:
    assert finished("The boat.") == ""
    assert finished("The boat.\n\nIt ") == "The boat.\n\n"
    assert finished("A.\n\n```\na\n\nb") == "A.\n\n"
    assert finished("A.\n\n```\na\n\nb\n```\n\nEnd") == "A.\n\n```\na\n\nb\n```\n\n"


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "\n\n", "```", "~~~~", "\n```\n", "b c", "船", "🚢"]))
)
def test_no_text_is_lost_or_doubled(pieces: list[str]) -> None:
    step = WordsStep("".join(pieces))
    step.shown = finished(step.text)
    assert step.shown + step.rest == step.text
    assert step.shown_units == len(step.shown.encode("utf-16-le")) // 2


def test_a_card_follows_its_call() -> None:
    turn = TurnView("1", 1, "Where?")
    turn.take("tool_started", {"call": 1, "tool": "search", "params": {}, "writes": False})
    finish = {"call": 1, "tool": "search", "success": True, "result": "r", "duration_ms": 3}
    turn.take("tool_finished", finish)
    (step,) = turn.steps
    assert isinstance(step, ToolStep)
    assert (step.id, step.success, step.result) == ("turn-1-step-1", True, "r")


def test_a_question_is_replaced_by_its_outcome() -> None:
    turn = TurnView("1", 1, "Where?")
    turn.take(
        "question",
        {
            "question": "q", "tool": "create_note", "file": "n/a.md", "diff": ["+x"],
            "left_out": "", "asked_at": "2026-11-23T12:00:00Z", "timeout_s": 300.0,
        },
    )  # fmt: skip
    turn.take("answered", {"question": "q", "agreed": False, "outcome": "declined"})
    (step,) = turn.steps
    assert isinstance(step, QuestionStep)
    assert step.outcome == "declined"


def test_long_parameters_are_shown_shortened_and_whole() -> None:
    step = ToolStep("1", 1, "create_note", {"path": "a", "content": "x" * 5000})
    assert [len(value) for _, value in step.short] == [1, 200]
    assert "x" * 5000 in step.long
    assert not ToolStep("1", 1, "search", {"query": "a", "limit": 3}).long


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
    assert (turn.steps[0].text, turn.steps[0].requests) == ("I look it up.", 1)
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

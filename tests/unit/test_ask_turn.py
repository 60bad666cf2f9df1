"""A turn as the page shows it: its steps, and the words that are being written."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from qmd.server.page.ask import TurnView, finished
from qmd.server.page.templating import rendered_template


def test_words_are_rendered_up_to_the_last_block_that_is_complete() -> None:
    assert finished("The boat.") == ""
    assert finished("The boat.\n\nIt ") == "The boat.\n\n"
    assert finished("A.\n\n```\na\n\nb") == "A.\n\n"
    assert finished("A.\n\n```\na\n\nb\n```\n\nEnd") == "A.\n\n```\na\n\nb\n```\n\n"


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "\n\n", "```", "~~~~", "\n```\n", "b c", "船", "🚢"]))
)
def test_what_is_rendered_is_a_beginning_of_whole_blocks(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert text.startswith(finished(text))
    assert len(re.findall(r"^ {0,3}(?:```|~~~)", finished(text), re.MULTILINE)) % 2 == 0


def test_a_card_follows_its_call() -> None:
    turn = TurnView("1", 1, "Where?")
    turn.take("tool_started", {"call": 1, "tool": "search", "params": {}, "writes": False})
    finish = {"call": 1, "tool": "search", "success": True, "result": "r", "duration_ms": 3}
    turn.take("tool_finished", finish)
    (step,) = turn.steps
    assert (step["id"], step["success"], step["result"]) == ("turn-1-step-1", True, "r")


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
    assert step["outcome"] == "declined"


def card(**params: object) -> str:
    turn = TurnView("1", 1, "Where?")
    turn.take("tool_started", {"call": 1, "tool": "search", "params": params, "writes": False})
    return rendered_template("ask_turns.html", "en", {"turns": [turn], "csrf": ""})


def test_long_parameters_are_shown_shortened_and_whole() -> None:
    html = card(path="a", content="x" * 5000)
    assert f"<dd>{'x' * 199}…</dd>" in html
    assert "x" * 5000 in html
    assert "<details" not in card(query="a", limit=3)
    assert "<dd>3</dd>" in card(query="a", limit=3)


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
    assert [step["kind"] for step in turn.steps] == ["text", "tool_started"]
    assert (turn.steps[0]["text"], turn.steps[0]["round"]) == ("I look it up.", 1)
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

"""The history of a conversation is cut by whole turns, and never exceeds its room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qmd.agent.history import as_history, fitting_turns, from_json, to_json
from qmd.agent.prompt import RESULTS, SHORT_RESULT, tokens
from qmd.inference.llm import Message
from qmd.inference.llm.answer import Fence

FENCE = Fence("a" * 32)
words = st.text("word 备份\n<>", max_size=400)
results = st.lists(st.text("ab \n", max_size=1_000), min_size=1, max_size=3).map(
    lambda texts: "\n\n".join([RESULTS, *map(FENCE.around, texts)])
)


@st.composite
def turns(draw: st.DrawFn) -> tuple[Message, ...]:
    messages = [Message("user", draw(words))]
    for _ in range(draw(st.integers(0, 3))):
        messages += [Message("assistant", draw(words)), Message("user", draw(results))]
    if draw(st.booleans()):
        messages.append(Message("assistant", draw(words)))
    return as_history(tuple(messages))


@given(st.lists(turns(), max_size=8), st.integers(-50, 3_000))
def test_whole_turns_within_the_room(history: list[tuple[Message, ...]], room: int) -> None:
    kept = fitting_turns(history, room, FENCE)
    assert kept.left_out + len(kept.turns) == len(history)
    assert tokens(kept.messages) <= max(room, 0) + 1e-6
    for turn, original in zip(kept.turns, history[kept.left_out :], strict=True):
        assert [message.role for message in turn] == [message.role for message in original]
        for message, before in zip(turn, original, strict=True):
            if message != before:  # only results are shortened, and stay in their fence
                assert before.content.startswith(RESULTS)
                assert message.content.count(FENCE.closing) == before.content.count(FENCE.closing)
                assert len(message.content) < len(before.content)
                assert message.content.count("[... shortened") * SHORT_RESULT < len(before.content)


@given(st.lists(turns(), min_size=1, max_size=8))
def test_nothing_is_cut_where_there_is_room(history: list[tuple[Message, ...]]) -> None:
    kept = fitting_turns(history, sum(map(tokens, history)), FENCE)
    assert (list(kept.turns), kept.left_out) == (history, 0)


@given(turns())
def test_a_kept_turn_has_the_fence_of_the_next_run(turn: tuple[Message, ...]) -> None:
    other = Fence("b" * 32)
    read = from_json(to_json(turn, FENCE), other)
    assert [message.role for message in read] == [message.role for message in turn]
    assert not any(FENCE.mark in message.content for message in read)
    assert from_json(to_json(read, other), FENCE) == turn

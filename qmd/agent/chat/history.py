"""
Cuts the history of a conversation to the room that the model has for it, by whole turns.

First the results of tools in the oldest turns are shortened, then the oldest turns are left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from qmd.agent.prompt import shortened, tokens
from qmd.inference.fence import Fence
from qmd.inference.llm import Message

NOT_ANSWERED = "(This was not answered.)"

Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class History:
    """What the model is sent of the earlier turns; the first ``left_out`` turns are missing."""

    turns: tuple[Messages, ...]
    left_out: int

    @property
    def messages(self) -> list[Message]:
        return [message for turn in self.turns for message in turn]


def fit(turns: Sequence[Messages], room: float, fence: Fence) -> History:
    """
    The latest turns that fit into ``room`` tokens, each of them whole.

    Args:
        fence: The one around the results of tools in ``turns``.
    """
    short = [tuple(shortened(message, fence) for message in turn) for turn in turns]
    full_sizes = [tokens(turn) for turn in turns]
    short_sizes = [tokens(turn) for turn in short]
    # The size of all turns if the first n of them are shortened, for n from 0.
    savings = [short_size - full for short_size, full in zip(short_sizes, full_sizes, strict=True)]
    for count, saving in enumerate(accumulate(savings, initial=0.0)):
        if sum(full_sizes) + saving <= room:
            return History((*short[:count], *turns[count:]), 0)
    kept, size = len(turns), 0.0
    while kept and size + short_sizes[kept - 1] <= room:
        kept -= 1
        size += short_sizes[kept]
    return History(tuple(short[kept:]), kept)


# --- how messages are kept --------------------------------------------------------------


def to_json(messages: Sequence[Message], fence: Fence) -> str:
    return json.dumps(
        {
            "fence": fence.mark,
            "messages": [[message.role, message.content] for message in messages],
        },
        ensure_ascii=False,
    )


def from_json(text: str, fence: Fence) -> Messages:
    """
    The messages of a turn, with the fence of this run around the results of tools.

    Each run has a fence of its own, so what a turn wrote cannot pretend to be a result in a later
    one, and the model is told one fence only.
    """
    value = json.loads(text)
    mark = value["fence"]
    return tuple(
        Message(role, content.replace(mark, fence.mark) if mark else content)
        for role, content in value["messages"]
    )


def as_history(messages: Messages) -> Messages:
    """The messages of a past turn, which end with an answer even if there was none."""
    if messages and messages[-1].role == "assistant":
        return messages
    return (*messages, Message("assistant", NOT_ANSWERED))

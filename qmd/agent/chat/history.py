"""
Cuts the history of a conversation to the room that the model has for it, by whole turns.

First the results of tools in the oldest turns are shortened, then the oldest turns are left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from qmd.agent.prompt import RESULTS
from qmd.inference.fence import Fence
from qmd.inference.llm import Message
from qmd.values.tokens import estimate_tokens

SHORT_RESULT = 300
"""The characters that are left of a tool's result in an old turn."""

MESSAGE_TOKENS = 4
"""What a server adds to each message: its role and its ends."""

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
    short = [tuple(_shortened(message, fence) for message in turn) for turn in turns]
    full_sizes = [tokens(turn) for turn in turns]
    short_sizes = [tokens(turn) for turn in short]
    # The size of all turns if the first n of them are shortened, for n from 0.
    savings = [short_size - full for short_size, full in zip(short_sizes, full_sizes, strict=True)]
    for shortened, saving in enumerate(accumulate(savings, initial=0.0)):
        if sum(full_sizes) + saving <= room:
            return History((*short[:shortened], *turns[shortened:]), 0)
    kept, size = len(turns), 0.0
    while kept and size + short_sizes[kept - 1] <= room:
        kept -= 1
        size += short_sizes[kept]
    return History(tuple(short[kept:]), kept)


def tokens(messages: Sequence[Message]) -> float:
    return sum(estimate_tokens(message.content) + MESSAGE_TOKENS for message in messages)


def _shortened(message: Message, fence: Fence) -> Message:
    """A message with results, each cut to `SHORT_RESULT`; any other one as it is."""
    if message.role != "user" or not message.content.startswith(RESULTS):
        return message
    parts = message.content.split(fence.opening)
    shortened = [parts[0]]
    for part in parts[1:]:
        inside, closing, rest = part.partition(fence.closing)
        if len(inside) > SHORT_RESULT:
            inside = f"{inside[:SHORT_RESULT]}\n[... shortened; call the tool again to see it]\n"
        shortened += [fence.opening, inside, closing, rest]
    text = "".join(shortened)
    return Message("user", text) if len(text) < len(message.content) else message


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

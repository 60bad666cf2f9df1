"""
The agent: a language model that answers questions and may call the tools of the server.

`chat` holds conversations. A `turn` of one puts its question and what was said before to a `loop`:
it asks the model, `parser` finds the tool calls in the answer, `executor` runs them, `prompt` words
the results, and so on until an answer calls no tool. `citations` compares what that cites with what
the model has read. All that happens is an event (`events`), in which every face shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.agent import chat as chat
    from qmd.agent import loop as loop

__getattr__ = lazy.load(__name__)

"""
The agent: a language model that answers questions and may call the tools of the server.

`parser` finds the tool calls in the model's answers, `executor` checks and runs them, `prompt`
describes the tools to the model, and `loop` repeats this until an answer calls no tool. Then
`citations` compares what the answer cites with what the model has read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.agent import chat, engine, loop

__all__ = ["chat", "engine", "loop"]

__getattr__ = lazy.load(__name__, modules=__all__)

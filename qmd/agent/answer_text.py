"""Separates the text of an answer from its tool calls while it arrives piece by piece."""

from __future__ import annotations

from qmd.agent.parser import Parsed

_FENCE_OPENING = "```json:tool"


class AnswerText:
    """Holds back the tool calls in an answer that arrives piece by piece."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0  # characters of the text that `feed` has returned or held back for good

    def feed(self, delta: str) -> str:
        """Take the next piece, and return the further text that is certainly no tool call."""
        self._text += delta
        held = self._text[self._shown : self._shown + 100].lstrip("`")
        if self._text.startswith("```", self._shown) and held.startswith("json:tool"):
            return ""
        end = self._text.find(_FENCE_OPENING, self._shown)
        if end < 0:
            end = len(self._text) - _undecided_chars(self._text[self._shown :])
        while end > self._shown and self._text[end - 1] == "`":  # the fence has more backticks
            end -= 1
        shown = self._text[self._shown : end]
        self._shown = end
        return shown

    def rest(self, parsed: Parsed) -> str:
        """The text that is still to be shown when the answer is complete."""
        return parsed.untrimmed[self._shown :].rstrip()


def _undecided_chars(text: str) -> int:
    """How many characters at the end may begin a tool call, or are the first half of CR LF."""
    if text.endswith("\r"):
        return 1
    longest = min(len(text), len(_FENCE_OPENING) - 1)
    return next(
        (length for length in range(longest, 0, -1) if _FENCE_OPENING.startswith(text[-length:])),
        0,
    )

"""The line ends of a note, which edits keep."""

from __future__ import annotations

import re
from bisect import bisect_right

LINE_END = re.compile(r"\r\n|\r|\n")


def line_end(text: str) -> str:
    """The line end that most lines of a text have: CR LF, LF or CR; LF in a text of one line."""
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return max(counts, key=lambda end: counts[end])


def with_line_ends(text: str, end: str) -> str:
    """A text with one kind of line ends."""
    return LINE_END.sub("\n", text).replace("\n", end)


def ended_like(before: str, added: str) -> str:
    """A text to append, with a line end if the text before it ends with one."""
    if before.endswith(("\n", "\r")) and not added.endswith(("\n", "\r")):
        return added + line_end(before)
    return added


class UniformText:
    """
    A text in which all line ends are ``\\n``, and the positions of its characters in the original.

    So a text to look for is found whatever line ends the note has, in linear time.
    """

    def __init__(self, original: str) -> None:
        self.text = original
        self._removed: list[int] = []  # positions in `text` behind which a CR was left out
        if "\r" in original:
            parts: list[str] = []
            start = length = 0
            for match in LINE_END.finditer(original):
                parts += [original[start : match.start()], "\n"]
                length += match.start() - start + 1
                if match.end() - match.start() == 2:
                    self._removed.append(length)
                start = match.end()
            self.text = "".join([*parts, original[start:]])

    def original_position(self, position: int) -> int:
        """The position in the original of a position in `text`."""
        return position + bisect_right(self._removed, position)

"""
The bytes of a file as a text that can be edited and written back in the same encoding.

Edits keep its line ends.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from dataclasses import dataclass

from qmd.engine_text import engine_text
from qmd.errors import DecodeError, EditError
from qmd.parse.decode import decode, text_if_any, written_encoding

_BOMS = (
    codecs.BOM_UTF8,
    codecs.BOM_UTF32_LE,  # before UTF-16, which begins like it
    codecs.BOM_UTF32_BE,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
)
LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class TextFile:
    """
    A decoded file.

    Attributes:
        name: What errors call the file.
        text: The text, with its line ends as they are.
        encoding: A Python codec name.
        mark: The byte order mark; empty without one.
    """

    name: str
    text: str
    encoding: str
    mark: bytes

    @classmethod
    def decoded(cls, name: str, data: bytes) -> TextFile:
        """
        Decode the bytes of a file.

        Raises:
            EditError: They are no text, or encoding the text would not give them again.
        """
        try:
            content = decode(data)
        except DecodeError as error:
            raise EditError(f"{name} is no text: {error}", hint=error.hint) from error
        mark = next((mark for mark in _BOMS if data.startswith(mark)), b"")
        file = cls(name, content.text, written_encoding(data, content), mark)
        if file._encoded(content.text) != data:
            raise EditError(
                engine_text(
                    "{name} has bytes that are not valid in its encoding ({encoding}), and they "
                    "would be lost.",
                    name=name,
                    encoding=content.encoding,
                ),
                hint="Save it as UTF-8 first.",
            )
        return file

    def encode(self, text: str) -> bytes:
        """
        A new text in the encoding of the file.

        Raises:
            EditError: The encoding lacks a character, or would be taken for another one.
        """
        data = self._encoded(text)
        if data is None:
            lacking = next(each for each in text if self._encoded(each) is None)
            raise EditError(
                engine_text(
                    "{name} is in {encoding}, which lacks {lacking}.",
                    name=self.name,
                    encoding=self.encoding,
                    lacking=f"{lacking!r}",
                ),
                hint="Leave the character out, or save the note as UTF-8 first.",
            )
        if text_if_any(data) != text:
            raise EditError(
                f"With this text {self.name} would no longer be read as {self.encoding}.",
                hint="Save the note as UTF-8 first.",
            )
        return data

    def _encoded(self, text: str) -> bytes | None:
        """None if the encoding lacks a character."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError:
            return None


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
        self._removed: list[int] = []  # positions in `text` after which a CR was left out
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


def shown_text(data: bytes) -> str:
    """The text of a file for a diff; of a file that is no text, how long it is."""
    text = text_if_any(data)
    return f"({len(data):,} bytes that are no text)" if text is None else text

"""The bytes of a file as a text that can be edited and written back in the same encoding."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from qmd.errors import DecodeError, EditError, engine_text
from qmd.parse.decode import decode

_BOMS = (
    codecs.BOM_UTF8,
    codecs.BOM_UTF32_LE,  # before UTF-16, which begins like it
    codecs.BOM_UTF32_BE,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
)


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
        file = cls(name, content.text, content.encoding, mark)
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
                    lacking=f"{lacking!a}",
                ),
                hint="Leave the character out, or save the note as UTF-8 first.",
            )
        try:
            is_read_back = decode(data).text == text
        except DecodeError:
            is_read_back = False
        if not is_read_back:
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

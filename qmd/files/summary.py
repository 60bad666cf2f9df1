"""Summaries: texts that an AI client wants kept, appended to a Markdown file or all of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qmd.errors import DecodeError, FileAccessError, SummaryError, UnencodableTextError
from qmd.files.writing.writer import FileWriter
from qmd.parse.decode import encoding_of
from qmd.system.surrogates import shown

SummaryMode = Literal["append", "overwrite"]

TOOL = "update_summary"
MODES: tuple[SummaryMode, ...] = ("append", "overwrite")
SUFFIXES = (".md", ".markdown")
HEADING = "\n\n---\n\n## 总结更新 [{time}]\n\n"
"""What the specification of update_summary puts between a file's content and an appended text."""


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """
    The file that holds the summary, all links followed, and how it was written.

    ``problem``: why searches do not find the text yet, in a sentence.
    """

    path: Path
    mode: SummaryMode
    problem: str | None = None


class Summary:
    """Writes summaries through the one `FileWriter`."""

    def __init__(
        self, files: FileWriter, *, now: Callable[[], time.struct_time] = time.localtime
    ) -> None:
        """``now``: the local time that stands over an appended summary."""
        self._files = files
        self._now = now

    def update(
        self, content: str, file_path: str, mode: SummaryMode | None = None
    ) -> WrittenSummary:
        """
        Check the arguments, and write.

        Args:
            content: The text; it is written as it is, in UTF-8 or in the encoding of the file
                that it is appended to.
            file_path: Absolute, or relative to the working directory.
            mode: "append" (the default, also for None) puts it behind what the file holds, under
                a heading with the time; "overwrite" makes it the whole content.

        Raises:
            SummaryError: An argument is wrong.
            FileAccessError: The disk or the permissions say no.
            UnencodableTextError: The encoding of the file lacks a character of the text.
            QmdError: As `FileWriter.write`.
        """
        text, path, checked_mode = checked(content, file_path, mode)
        data = _encoded(text)
        try:
            if checked_mode == "append":
                written = self._files.append(
                    path, lambda present: self._appendix(present, text, path), tool=TOOL
                )
            else:
                written = self._files.write(path, data, tool=TOOL)
        except OSError as error:
            raise FileAccessError(shown(path), error) from error
        return WrittenSummary(written.path, checked_mode, written.problem)

    def _appendix(self, present: bytes | None, text: str, path: str) -> bytes:
        """What is put behind the content ``present``, in its encoding."""
        if present is None:
            return text.encode()
        appendix = HEADING.format(time=time.strftime("%Y-%m-%d %H:%M:%S", self._now())) + text
        try:
            encoding = encoding_of(present)
        except DecodeError:  # it is no text, and stays as it is in front of this one
            encoding = "utf-8"
        try:
            return appendix.encode(encoding)
        except UnicodeEncodeError as error:
            character = appendix[error.start]
            raise UnencodableTextError(shown(path), encoding, character) from error


def checked(content: object, file_path: object, mode: object) -> tuple[str, str, SummaryMode]:
    """
    The arguments as `Summary.update` needs them; the disk is not looked at.

    Raises:
        SummaryError: The first thing that is wrong, in the order of the specification.
    """
    for name, value in (("content", content), ("file_path", file_path)):
        if value is None:
            raise SummaryError(f"Invalid {name}: is required")
    if not isinstance(content, str):
        raise SummaryError("Invalid content: must be a string")
    if not content.strip():
        raise SummaryError("Invalid content: must not be empty or only whitespace")
    if not isinstance(file_path, str):
        raise SummaryError("Invalid file_path: must be a string")
    if not file_path.lower().endswith(SUFFIXES):
        raise SummaryError("Invalid file_path: must end with .md or .markdown")
    if mode is None:
        mode = MODES[0]
    checked_mode = next((each for each in MODES if each == mode), None)
    if checked_mode is None:
        raise SummaryError("Invalid mode: must be append or overwrite")
    if any(name.strip() == ".." for name in re.split(r"[/\\]", file_path)):
        raise SummaryError("Invalid file_path: must not contain '..' (path traversal)")
    return content, file_path, checked_mode


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SummaryError(
            f"Invalid content: character {error.start + 1} is half of a surrogate pair"
        ) from error

"""Summaries: texts that an AI client wants kept, appended to a Markdown file or all of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from qmd.errors import DecodeError, FileAccessError, SummaryError, UnencodableTextError
from qmd.files.edits.text_file import ended_like, line_end
from qmd.files.indexed_file import exclusion_of_file
from qmd.files.writing.writer import FileWriter
from qmd.parse.decode import decode, encoding_of
from qmd.system.surrogates import is_utf8, shown
from qmd.values.notes import Language, SummaryMode, WrittenSummary
from qmd.values.printable import is_safe_name, one_line

TOOL = "update_summary"
MODES: tuple[SummaryMode, ...] = ("append", "overwrite")
SUFFIXES = (".md", ".markdown")
HEADINGS: dict[Language, str] = {"zh": "## 总结更新", "en": "## Summary update"}

#: Chinese characters, Latin words, and what only Japanese and Korean have.
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_KANA_OR_HANGUL = re.compile(r"[\u3041-\u30ff\uac00-\ud7a3]")


class Summary:
    """Writes summaries through the one `FileWriter`."""

    def __init__(
        self, files: FileWriter, *, now: Callable[[], time.struct_time] = time.localtime
    ) -> None:
        """``now``: the local time that stands over an appended summary."""
        self._files = files
        self._now = now

    def update(
        self,
        content: str,
        file_path: str,
        mode: SummaryMode | None = None,
        *,
        language: Language | None = None,
    ) -> WrittenSummary:
        """
        Check the arguments, and write.

        Args:
            content: The text; it is written as it is, in UTF-8 or in the encoding of the file
                that it is appended to.
            file_path: Absolute, or relative to the working directory.
            mode: "append" (the default, also for None) puts it behind what the file holds, under
                a heading with the time; "overwrite" makes it the whole content.
            language: That of the person who asks. The heading is Chinese if this or the note is,
                and a note that ended with a line end still does. None writes exactly what the
                specification of update_summary says: a Chinese heading, and the text as it is.

        Raises:
            SummaryError: An argument is wrong.
            FileAccessError: The disk or the permissions say no.
            UnencodableTextError: The encoding of the file lacks a character of the text.
            QmdError: As `FileWriter.rewrite`.
        """
        text, path, checked_mode = checked(content, file_path, mode)
        data = _encoded(text)

        def content_of(present: bytes | None) -> bytes:
            if checked_mode == "overwrite":
                return data
            return (present or b"") + self._appendix(present, text, path, language)

        try:
            written = self._files.rewrite(path, content_of, tool=TOOL)
        except OSError as error:
            raise FileAccessError(shown(path), error) from error
        problem = written.problem or exclusion_of_file(self._files.store, written.path)
        return WrittenSummary(written.path, checked_mode, problem)

    def _appendix(
        self, present: bytes | None, text: str, path: str, language: Language | None
    ) -> bytes:
        """What is put behind the content ``present``, in its encoding."""
        if present is None:
            return text.encode()
        try:
            before, encoding = decode(present).text, encoding_of(present)
        except DecodeError:  # it is no text, and stays as it is in front of this one
            before, encoding = "", "utf-8"
        at = time.strftime("%Y-%m-%d %H:%M:%S", self._now())
        if language is None:
            appendix = f"\n\n---\n\n{HEADINGS['zh']} [{at}]\n\n{text}"
        else:
            appendix = _section(before, text, at, language)
        try:
            return appendix.encode(encoding)
        except UnicodeEncodeError as error:
            character = appendix[error.start]
            raise UnencodableTextError(shown(path), encoding, character) from error


def _section(before: str, text: str, at: str, language: Language) -> str:
    """What a person wants behind a note: one blank line, its line ends, and one at its end."""
    if _is_chinese(before + text):
        language = "zh"
    end = line_end(before)
    heading = f"---{end}{end}{HEADINGS[language]} [{at}]{end}{end}"
    if not before.endswith(("\n", "\r")):
        return f"{end}{end}{heading}{text}"
    blank = "" if before.endswith(end * 2) else end
    return f"{blank}{heading}{ended_like(before, text)}"


def _is_chinese(text: str) -> bool:
    """Whether a text has more Chinese characters than Latin words."""
    if _KANA_OR_HANGUL.search(text):
        return False
    return len(_HAN.findall(text)) > len(_LATIN_WORD.findall(text))


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
    _check_name(file_path)
    return content, file_path, checked_mode


def _check_name(path: str) -> None:
    """Raises SummaryError: the name hides something. What no file can be called is told later."""
    if is_utf8(path) and "\0" not in path and not is_safe_name(path):
        raise SummaryError(
            f"Invalid file_path: {one_line(path)} contains control characters or marks of direction"
        )


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SummaryError(
            f"Invalid content: character {error.start + 1} is half of a surrogate pair"
        ) from error

"""
Turns subtitles (SubRip and WebVTT) into paragraphs of what is said.

Each paragraph is an anchor, labelled with its time. Lines that a moving caption repeats count once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

from qmd.errors import DamagedFileError
from qmd.parse.convert.blocks import Blocks
from qmd.parse.converted import Converted
from qmd.parse.decode import decode
from qmd.parse.lines import split_lines
from qmd.parse.segment import is_joined

#: Characters of a paragraph, after which the end of a sentence or a pause ends it.
_PARAGRAPH = 400
_LONGEST = 900  # after this any cue does
_PAUSE_S = 4.0

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]*--?>[ \t]*{_TIME}")
_SPEAKER = re.compile(r"<v(?:\.[^\s<>]{1,100})?[ \t]+([^<>]{1,200})>")
_MARKUP = re.compile(r"</?[A-Za-z\d][^<>]{0,200}>|\{\\?[A-Za-z][^{}]{0,200}\}")
_SENTENCE_END = (".", "!", "?", "…", "。", "！", "？", '"', "”", "」")


class _Cue(NamedTuple):
    begin_s: float
    end_s: float
    lines: list[str]


def convert(path: str, data: bytes) -> Converted:
    """
    What is said.

    Raises:
        DecodeError: The bytes are no text.
        DamagedFileError: No line has a time.
    """
    decoded = decode(data)
    cues = list(_cues(split_lines(decoded.text)))
    if not cues and decoded.text.strip() and not decoded.text.startswith("WEBVTT"):
        raise DamagedFileError(
            "The file holds no subtitles: no line says from when to when a text is shown.",
            hint="Give the file the suffix of the format it is in, or leave it out.",
        )
    blocks = Blocks()
    for begin_s, text in _paragraphs(cues):
        blocks.anchor("time", clock(begin_s))
        blocks.paragraph(text)
    return blocks.converted(warnings=decoded.warnings, encoding=decoded.encoding)


def clock(seconds: float) -> str:
    """A time as players show it: 1:02:03."""
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}"


def _cues(lines: list[str]) -> Iterator[_Cue]:
    cue: _Cue | None = None
    for number, line in enumerate(lines):
        match = _TIMES.match(line)
        if match is not None:
            if cue is not None:
                yield cue
            cue = _Cue(_seconds(match, 1), _seconds(match, 5), [])
        elif cue is not None and not line.strip():
            yield cue
            cue = None
        elif cue is not None:
            after = lines[number + 1] if number + 1 < len(lines) else ""
            if not (line.strip().isdigit() and _TIMES.match(after)):  # the number of the next cue
                cue.lines.append(_spoken(line))
    if cue is not None:
        yield cue


def _seconds(match: re.Match[str], group: int) -> float:
    hour, minute, second, fraction = match.group(group, group + 1, group + 2, group + 3)
    whole = int(hour or 0) * 3600 + int(minute) * 60 + int(second)
    return whole + float(f"0.{fraction or 0}")


def _spoken(line: str) -> str:
    speaker = _SPEAKER.search(line)
    text = " ".join(unescape(_MARKUP.sub("", line)).replace("\0", "\ufffd").split())
    return f"{speaker[1].strip()}: {text}" if speaker and text else text


def _paragraphs(cues: list[_Cue]) -> Iterator[tuple[float, str]]:
    """The time of each paragraph, and its text."""
    begin_s = end_s = 0.0
    text = ""
    shown: list[str] = []
    for cue in cues:
        lines = [line for line in cue.lines if line]
        new = lines[_repeated(shown, lines) :]
        if lines:
            shown = lines
        if not new:
            continue
        ends_well = text.endswith(_SENTENCE_END) or cue.begin_s - end_s > _PAUSE_S
        if text and (len(text) > _LONGEST or (len(text) > _PARAGRAPH and ends_well)):
            yield begin_s, text
            text = ""
        if not text:
            begin_s = cue.begin_s
        for line in new:
            text = joined(text, line)
        end_s = cue.end_s
    if text:
        yield begin_s, text


def _repeated(shown: list[str], lines: list[str]) -> int:
    """How many of the lines were shown before: a moving caption repeats its last ones."""
    most = min(len(shown), len(lines), 4)
    return next((n for n in range(most, 0, -1) if shown[-n:] == lines[:n]), 0)


def joined(text: str, line: str) -> str:
    """A text and its next line: Chinese continues without a space, and a speaker begins a line."""
    if not text:
        return line
    if line.startswith(("-", "–", "—")):
        return f"{text}\n{line}"
    apart = "" if is_joined(text[-1], line[0]) else " "
    return f"{text}{apart}{line}"

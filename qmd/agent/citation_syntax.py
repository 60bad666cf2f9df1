"""
Finds the citations in an answer: ``[collection/path:12]`` and ``[collection/path:12-15]``.

Models write more than they are asked to, so several ranges (``:3, 7-9``), several documents in one
bracket (separated by ``;``), ``L12``, dashes and the brackets and colons of Chinese are read, too.
Text in a fenced block of code is no citation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CITATIONS = 2_000
"""The most citations of one answer that are listed; one with more is broken."""

_MAX_BRACKET = 2_000  # characters inside a bracket
_RANGE = r"[Ll]?\d{1,9}(?:[ ]?[-–—~][ ]?[Ll]?\d{1,9})?"
_RANGES = re.compile(rf"[ ]?{_RANGE}(?:[ ]?[,，、][ ]?{_RANGE}){{0,20}}")
_ONE_RANGE = re.compile(r"[Ll]?(\d{1,9})(?:[ ]?[-–—~][ ]?[Ll]?(\d{1,9}))?")
_TOKEN = re.compile(r"[\[\]【】\n\r]")
_SEPARATOR = re.compile(r"[;；]")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\n\r]*)")
_LINE = re.compile(r"[^\n\r]*(?:\r\n|\n|\r|$)")
# What would end a bracket or part it, if it stood in a path.
_ESCAPES = {"%": "%25", "[": "%5B", "]": "%5D", "【": "%E3%80%90", "】": "%E3%80%91",
            ";": "%3B", "；": "%EF%BC%9B", "\n": "%0A", "\r": "%0D"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cited:
    """
    What one citation names.

    ``start`` and ``end`` are where the bracket around it stands in the answer. A bracket with
    several citations gives several of these.
    """

    file: str
    from_line: int
    to_line: int
    start: int
    end: int


def format_citation(file: str, from_line: int, to_line: int | None = None) -> str:
    """A citation as `find_citations` reads it, whatever the path holds."""
    escaped = "".join(_ESCAPES.get(character, character) for character in file)
    is_one = to_line is None or to_line == from_line
    return f"[{escaped}:{from_line}]" if is_one else f"[{escaped}:{from_line}-{to_line}]"


def find_citations(text: str) -> list[Cited]:
    """The citations in their order, `MAX_CITATIONS` at most. Takes linear time."""
    citations: list[Cited] = []
    for start, end in _brackets(without_code(text)):
        for file, from_line, to_line in _parts(text[start + 1 : end - 1]):
            citations.append(Cited(file, from_line, to_line, start, end))
            if len(citations) == MAX_CITATIONS:
                return citations
    return citations


def without_code(text: str) -> str:
    """The text with the characters of fenced blocks of code as NUL, line ends excepted."""
    if "```" not in text and "~~~" not in text:
        return text
    pieces: list[str] = []
    fence = ""
    for line in _lines(text):
        match = _FENCE.match(line)
        if not fence:
            if match is not None and not (match[1][0] == "`" and "`" in match[2]):
                fence = match[1]
                pieces.append(_hidden(line))
                continue
            pieces.append(line)
        else:
            closes = match is not None and match[1].startswith(fence) and not match[2].strip()
            fence = "" if closes else fence
            pieces.append(_hidden(line))
    return "".join(pieces)


def _lines(text: str) -> Iterator[str]:
    return (match[0] for match in _LINE.finditer(text) if match[0])


def _hidden(line: str) -> str:
    body = line.rstrip("\r\n")
    return "\0" * len(body) + line[len(body) :]


def _brackets(text: str) -> Iterator[tuple[int, int]]:
    """Where brackets that may hold citations begin and end, inner ones first."""
    openings: list[int] = []
    last_opening = -1
    for match in _TOKEN.finditer(text):
        character = match[0]
        if character in "\n\r":
            openings.clear()
            last_opening = -1
        elif character in "[【":
            openings.append(match.start())
        else:
            # A path with a closing bracket alone still is a path: its bracket began earlier.
            opening = openings.pop() if openings else last_opening
            last_opening = opening
            size = match.start() - opening
            if opening >= 0 and 3 < size < _MAX_BRACKET and text[match.start() - 1] in _DIGITS:
                yield opening, match.end()


_DIGITS = "0123456789 "


def _parts(inside: str) -> Iterator[tuple[str, int, int]]:
    """The citations inside a bracket; none if it is not made of citations alone."""
    parts: list[tuple[str, int, int]] = []
    begun = ""
    for piece in _SEPARATOR.split(inside):
        begun = f"{begun};{piece}" if begun else piece
        colon = max(begun.rfind(":"), begun.rfind("："))
        ranges = begun[colon + 1 :].rstrip(" ")
        if colon <= 0 or _RANGES.fullmatch(ranges) is None:
            continue
        file = unescaped(begun[:colon].strip(" \t"))
        if not _is_path(file):
            return
        for each in _ONE_RANGE.finditer(ranges):
            first = int(each[1])
            parts.append((file, first, int(each[2]) if each[2] else first))
        begun = ""
    if not begun.strip():
        yield from parts


def _is_path(file: str) -> bool:
    """Whether it may name a document: not a time such as 12:30, and no address of the web."""
    if "://" in file and not file.startswith("qmd://"):
        return False
    return bool(file) and ("/" in file or _SUFFIX.search(file) is not None)


def unescaped(file: str) -> str:
    """The path that `format_citation` escaped."""
    if "%" not in file:
        return file
    for character, escape in reversed(_ESCAPES.items()):
        file = file.replace(escape, character)
    return file

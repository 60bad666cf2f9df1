"""
Copies a text and overwrites its code, character by character, with NUL.

Links and tags are searched in the copy, so that their parsers need not know what code is.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from qmd.parse.markdown import Outline

HIDDEN = "\0"  # never occurs in decoded text

_TICKS = re.compile(r"`+")
# (The first begins with one plain character, so that the search can jump from one to the next.)
_PAIR = re.compile(r"`(?:[^`\r\n\0]*`)?")
_ESCAPED_PAIR = re.compile(r"\\`|`(?:[^`\r\n\0]*`)?")
_NO_LINE_END = re.compile(r"[^\r\n]")
_COMMENT_MARK = re.compile("%%")
_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)")
_BLOCK_EDGE = re.compile(r"\0|[\r\n][ \t]*(?:[\r\n]|[-*+#|>]|\d{1,9}[.)][ \t])")


def mask_code(text: str, body_start: int, outline: Outline) -> str:
    """``text`` with frontmatter, code blocks, lines of comments and code spans overwritten."""
    starts = outline.starts
    size = len(text)
    pieces: list[str] = []
    at = 0
    if body_start:
        pieces.append(_hidden_lines(body_start))
        at = body_start
    for first, last in outline.hidden:
        begin = starts[first]
        end = starts[last] if last < len(starts) else size
        pieces.append(text[at:begin])
        pieces.append(_hidden_lines(end - begin))
        at = end
    if pieces:
        pieces.append(text[at:])
        text = "".join(pieces)
    if "`" in text:
        text = _mask_spans(text)
    return text


def mask_comments(text: str) -> str:
    """The result of `mask_code` with Obsidian's comments ``%% … %%`` in paragraphs overwritten."""
    if "%" not in text or "%%" not in text:  # the first test is a hundred times as fast
        return text
    pieces: list[str] = []
    at = 0
    begin = -1
    for match in _COMMENT_MARK.finditer(text):
        if begin < 0 or _BLANK_LINE.search(text, begin, match.start()):
            begin = match.start()
            continue
        pieces.append(text[at:begin])
        at = match.end()
        # Line ends stay, so that the next line still begins a line.
        pieces.append(_NO_LINE_END.sub(HIDDEN, text[begin:at]))
        begin = -1
    pieces.append(text[at:])
    return "".join(pieces)


def _hidden_lines(size: int) -> str:
    """The mask of whole lines. It ends with a line end, so that the next text begins a line."""
    return HIDDEN * (size - 1) + "\n"


def _mask_spans(text: str) -> str:
    """Overwrite code spans; fast if all are on one line, between single backticks."""
    if "``" in text:
        return _mask_any_spans(text)
    pieces: list[str] = []
    at = 0
    pairs = _ESCAPED_PAIR if "\\`" in text else _PAIR
    for match in pairs.finditer(text):
        begin, end = match.span()
        if end - begin == 1:
            return _mask_any_spans(text)
        if text[begin] == "`":
            pieces.append(text[at:begin])
            pieces.append(HIDDEN * (end - begin))
            at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _mask_any_spans(text: str) -> str:
    """As `_mask_spans`, for runs of backticks of any length and spans over several lines."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    by_length: dict[int, list[int]] = {}
    for index, (begin, end) in enumerate(runs):
        by_length.setdefault(end - begin, []).append(index)
    pieces: list[str] = []
    at = 0
    index = 0
    edge = -1  # the next place behind the current run where a paragraph may end
    while index < len(runs):
        begin, end = runs[index]
        if begin and text[begin - 1] == "\\" and end - begin == 1:
            index += 1
            continue
        same = by_length[end - begin]
        position = bisect_right(same, index)
        if position == len(same):
            index += 1
            continue
        closer = same[position]
        stop = runs[closer][1]
        # A code span ends with its paragraph: a stray backtick must not swallow the page.
        if edge < end:
            match = _BLOCK_EDGE.search(text, end)
            edge = match.start() if match else len(text)
        if stop > edge:
            index += 1
            continue
        pieces.append(text[at:begin])
        pieces.append(HIDDEN * (stop - begin))
        at = stop
        index = closer + 1
    if not pieces:
        return text
    pieces.append(text[at:])
    return "".join(pieces)

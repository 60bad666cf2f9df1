"""
Cuts a text into chunks that follow its tree of headings.

A section that fits is one chunk; a larger one is cut between its blocks, and each of its
subsections is cut in the same way. A small piece joins its neighbour under the headings they
share, so that no chunk is a heading with two lines. Sizes are estimates, so that chunks depend on
no model and cost no tokenising: a UTF-8 character of n bytes counts (3n - 1) / 8 tokens, which
makes four Latin letters or one CJK character a token.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qmd.parse.lines import byte_line_starts
from qmd.parse.markdown import Block, Outline
from qmd.records import dataclass, of_tuples
from qmd.values import Chunk, Heading

# Sizes in eighths of a token, so that all sums are of integers.
TARGET = 350 * 8
MAXIMUM = 480 * 8
TINY = 100 * 8  # a piece below this joins its neighbour

# (A run of dots is tried at its first dot only, because a long one would take quadratic time.)
_SENTENCE_END = re.compile("[。！？…!?]+[”’」』）)\"']*|(?<!\\.)\\.+[\"')\\]]*(?=\\s)")
_GOOD_LINE_END = ("", ".", "。", "!", "！", "?", "？", ":", "：", ";", "；", "}")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_SOFT_BREAKS = (" ", "，", "、", "；", ",", "　", "\t", ";")
_JOINERS = frozenset("\u200d\u200c\ufe0e\ufe0f\u20e3")


class _Piece(NamedTuple):
    """
    A part of the text, which may become a chunk.

    Attributes:
        begin, end: The range of characters.
        first, last: The range of lines, from 0; ``last`` is the line after the piece.
        cost: The estimated size in eighths of a token.
        path: The headings above the piece, the outermost first.
        bare: Whether the piece has nothing but headings.
    """

    begin: int
    end: int
    first: int
    last: int
    cost: int
    path: tuple[str, ...]
    bare: bool = False


_piece = of_tuples(_Piece)
_chunk = of_tuples(Chunk)


@dataclass(slots=True)
class _Section:
    """The blocks ``[first, last)``: a heading and the blocks up to the next heading."""

    level: int
    path: tuple[str, ...]
    first: int
    last: int
    until: int = 0  # the index of the section after the last subsection


def chunk(text: str, outline: Outline, breaks: Sequence[int] = ()) -> tuple[Chunk, ...]:
    """
    Cut a text into chunks; a text without blocks has none.

    Args:
        breaks: Starts of lines that begin a page or the like, ascending: no chunk crosses them.
    """
    if not outline.blocks:
        return ()
    chunker = _Chunker(text, outline)
    pieces: list[_Piece] = []
    for sections in _parts(outline, breaks):
        pieces += chunker.pack_all(*sections)
    ascii_only = text.isascii()
    chunks: list[Chunk] = []
    at_char = at_byte = 0
    for piece in pieces:
        begin, end = piece.begin, piece.end
        if ascii_only:
            begin_byte, end_byte = begin, end
        else:
            begin_byte = at_byte + len(text[at_char:begin].encode())
            end_byte = begin_byte + len(text[begin:end].encode())
        chunks.append(
            _chunk(
                (
                    len(chunks),
                    begin,
                    end,
                    begin_byte,
                    end_byte,
                    piece.first + 1,
                    piece.last + 1,
                    piece.path,
                )
            )
        )
        at_char, at_byte = end, end_byte
    return tuple(chunks)


def embedded_text(title: str, heading_path: str, text: str) -> str:
    """The text to embed for a chunk: the title, the path of headings, and the text of the chunk."""
    head = title if not heading_path or heading_path == title else f"{title}\n{heading_path}"
    return f"{head}\n\n{text}"


class _Chunker:
    def __init__(self, text: str, outline: Outline) -> None:
        self.text = text
        self.lines = outline.lines
        self.starts = outline.starts
        self.blocks = outline.blocks
        # cum[i]: the cost of all lines before line i.
        if text.isascii():
            cum = [2 * start for start in outline.starts]
            cum.append(2 * len(text))
        else:
            cum = [
                3 * byte - char
                for byte, char in zip(byte_line_starts(text), outline.starts, strict=True)
            ]
            cum.append(3 * len(text.encode()) - len(text))
        self.cum = cum
        self.sections: list[_Section] = []

    def pack_all(self, blocks: list[Block], sections: list[_Section]) -> list[_Piece]:
        """The pieces of a part of the text that is cut by itself."""
        self.blocks = blocks
        self.sections = sections
        return self.pack(0)

    def pack(self, index: int) -> list[_Piece]:
        """The pieces of a section with its subsections: one if it fits, else those of each part."""
        sections = self.sections
        section = sections[index]
        first = self.blocks[section.first].start if section.first < len(self.blocks) else 0
        last = self.blocks[sections[section.until - 1].last - 1].end
        if self.cum[last] - self.cum[first] <= TARGET:
            inside = sections[index : section.until]
            with_body = [part.path for part in inside if self.has_body(part)]
            path = with_body[0] if with_body else inside[-1].path
            for other in with_body[1:]:
                path = _common(path, other)
            return self.piece(first, last, path, bare=not with_body)
        pieces = self.cut_section(section)
        child = index + 1
        while child < section.until:
            pieces += self.pack(child)
            child = sections[child].until
        return _merge(pieces)

    def has_body(self, section: _Section) -> bool:
        return section.last - section.first > (1 if section.level else 0)

    def piece(
        self, first: int, last: int, path: tuple[str, ...], *, bare: bool = False
    ) -> list[_Piece]:
        """Lines ``[first, last)`` as one piece, or no piece if they are blank."""
        lines = self.lines
        while first < last and not lines[first].strip():
            first += 1
        while first < last and not lines[last - 1].strip():
            last -= 1
        if first == last:
            return []
        end = self.starts[last - 1] + len(lines[last - 1])
        cost = self.cum[last] - self.cum[first]
        return [_piece((self.starts[first], end, first, last, cost, path, bare))]

    def cut_section(self, section: _Section) -> list[_Piece]:
        """Cut a section, without its subsections, between blocks into parts of similar size."""
        blocks = self.blocks[section.first : section.last]
        if not blocks:
            return []
        cum = self.cum
        path = section.path
        first = blocks[0].start
        total = cum[blocks[-1].end] - cum[first]
        if total <= MAXIMUM:
            return self.piece(first, blocks[-1].end, path, bare=not self.has_body(section))
        aim = total // -(-total // TARGET)
        pieces: list[_Piece] = []
        last = first  # the open piece is lines [first, last)
        for block in blocks:
            have = cum[last] - cum[first]
            with_block = cum[block.end] - cum[first]
            if with_block > MAXIMUM and cum[block.end] - cum[block.start] > MAXIMUM:
                begin = block.start
                if have < TINY or self.leads_in(last):
                    begin = first
                else:
                    pieces += self.piece(first, last, path)
                pieces += self.cut_lines(begin, block.end, path)
                first = last = block.end
                continue
            if last > first and not self.may_grow(have, with_block, aim, last):
                pieces += self.piece(first, last, path)
                first = block.start
            last = block.end
        pieces += self.piece(first, last, path)
        return _merge(pieces)

    def may_grow(self, have: int, with_block: int, aim: int, last: int) -> bool:
        """
        Whether an open piece takes one more block.

        Args:
            have: The cost of the piece.
            with_block: The cost of the piece with the block.
            aim: The cost that a piece of this section should have.
            last: The line after the piece.
        """
        if with_block <= aim:
            return True
        return with_block <= MAXIMUM and (with_block - aim < aim - have or self.leads_in(last))

    def leads_in(self, line: int) -> bool:
        """Whether the text before ``line`` announces what follows: a heading, or a colon."""
        while line > 0 and not self.lines[line - 1].strip():
            line -= 1
        before = self.lines[line - 1].rstrip() if line else ""
        return before.endswith((":", "：")) or before.startswith("#")

    def cut_lines(self, first: int, last: int, path: tuple[str, ...]) -> list[_Piece]:
        """Cut an oversized block between lines, where a line ends well if possible."""
        cum = self.cum
        pieces: list[_Piece] = []
        good = -1
        at = first
        while at < last:
            if at > first and cum[at + 1] - cum[first] > TARGET:
                cut = good if good > first else at
                pieces += self.piece(first, cut, path)
                first = cut
                good = -1
                continue
            if at == first and cum[at + 1] - cum[at] > MAXIMUM:
                pieces += self.cut_line(at, path)
                at += 1
                first = at
                continue
            at += 1
            if at < last and cum[at] - cum[first] >= TARGET // 2 and self.ends_well(at):
                good = at
        pieces += self.piece(first, last, path)
        return pieces

    def ends_well(self, line: int) -> bool:
        before = self.lines[line - 1].rstrip()
        return before[-1:] in _GOOD_LINE_END or _ITEM.match(self.lines[line]) is not None

    def cut_line(self, line: int, path: tuple[str, ...]) -> list[_Piece]:
        """Cut one very long line after sentences, else after words, else between characters."""
        text = self.text
        begin = self.starts[line]
        end = begin + len(self.lines[line])
        pieces: list[_Piece] = []
        at = begin
        for cut in (*_cuts(text, begin, end), end):
            if not text[at:cut].isspace():
                cost = _cost(text[at:cut])
                pieces.append(_Piece(at, cut, line, line + 1, cost, path))
            at = cut
        return pieces


def _parts(outline: Outline, breaks: Sequence[int]) -> Iterator[tuple[list[Block], list[_Section]]]:
    """
    The blocks and sections of each part of a text, which the breaks separate.

    A part that begins inside a section is below the headings of that section.
    """
    headings = iter(outline.headings)
    if not breaks:
        yield outline.blocks, _sections(outline.blocks, headings, [])
        return
    above: list[tuple[int, tuple[str, ...]]] = []
    blocks = deque(outline.blocks)
    for line in (*(bisect_left(outline.starts, each) for each in breaks), len(outline.lines)):
        part: list[Block] = []
        while blocks and blocks[0].start < line:
            block = blocks.popleft()
            if block.end > line:
                blocks.appendleft(block._replace(start=line, level=0, kind="text"))
                block = block._replace(end=line)
            part.append(block)
        if part:
            sections = _sections(part, headings, above)
            yield part, sections
            for section in sections[1:]:
                while above and above[-1][0] >= section.level:
                    above.pop()
                above.append((section.level, section.path))


def _sections(
    blocks: Sequence[Block],
    headings: Iterator[Heading],
    above: Sequence[tuple[int, tuple[str, ...]]],
) -> list[_Section]:
    """
    Section 0 is the text before the first heading, and the parent of all others.

    Args:
        headings: Gives the next heading for each block that is one.
        above: Level and path of each heading that is open before the first block.
    """
    sections = [_Section(0, above[-1][1] if above else (), 0, len(blocks))]
    open_: list[int] = []
    for index, block in enumerate(blocks):
        if block.kind != "heading":
            continue
        sections[-1].last = index
        while open_ and sections[open_[-1]].level >= block.level:
            sections[open_.pop()].until = len(sections)
        if open_:
            parent = sections[open_[-1]].path
        else:
            parent = next((path for level, path in reversed(above) if level < block.level), ())
        name = next(headings).text
        open_.append(len(sections))
        path = (*parent, name) if name else parent
        sections.append(_Section(block.level, path, index, len(blocks)))
    for index in open_:
        sections[index].until = len(sections)
    sections[0].until = len(sections)
    return sections


def _merge(pieces: list[_Piece]) -> list[_Piece]:
    """Join small pieces with their neighbours, from the top down."""
    merged: list[_Piece] = []
    for piece in pieces:
        if merged and _should_join(merged[-1], piece):
            merged[-1] = _join(merged[-1], piece)
        else:
            merged.append(piece)
    return merged


def _should_join(before: _Piece, piece: _Piece) -> bool:
    cost = before.cost + piece.cost
    if cost <= TARGET and (before.cost < TINY or piece.cost < TINY):
        return True
    return cost <= MAXIMUM and (before.bare or piece.cost * 2 < TINY)


def _join(before: _Piece, piece: _Piece) -> _Piece:
    """Two neighbours as one piece, under the headings of the one with text, or of both."""
    if before.bare:
        path = piece.path
    elif piece.bare:
        path = before.path
    else:
        path = _common(before.path, piece.path)
    return _Piece(
        before.begin,
        piece.end,
        before.first,
        piece.last,
        before.cost + piece.cost,
        path,
        before.bare and piece.bare,
    )


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The headings with which both paths begin."""
    if other[: len(one)] == one:
        return one
    depth = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        depth += 1
    return one[:depth]


def _cost(text: str) -> int:
    if text.isascii():
        return 2 * len(text)
    return 3 * len(text.encode()) - len(text)


def _cuts(text: str, begin: int, end: int) -> Iterator[int]:
    """Where to cut ``text[begin:end]``, in order, without its two ends."""
    have = 0
    at = begin
    for match in _SENTENCE_END.finditer(text, begin, end):
        cut = match.end()
        cost = _cost(text[at:cut])
        if have and have + cost > TARGET:
            yield at
            have = 0
        if cost > MAXIMUM:
            for at in _hard_cuts(text, at, cut):  # noqa: B020 (the rest begins at the last cut)
                yield at
            cost = _cost(text[at:cut])
        have += cost
        at = cut
    cost = _cost(text[at:end])
    if have and at < end and have + cost > TARGET:
        yield at
        have = 0
    if have + cost > MAXIMUM:
        yield from _hard_cuts(text, at, end)


def _hard_cuts(text: str, begin: int, end: int) -> Iterator[int]:
    """Cut a run without sentences after a space or comma, else between any two characters."""
    at = begin
    while True:
        stop = min(end, at + MAXIMUM // 2)
        cost = _cost(text[at:stop])
        if stop == end and cost <= MAXIMUM:
            return
        while cost > TARGET:
            stop = at + max(1, (stop - at) * TARGET // cost)
            if stop == at + 1:
                break
            cost = _cost(text[at:stop])
        half = at + (stop - at) // 2
        soft = max(text.rfind(mark, half, stop) for mark in _SOFT_BREAKS) + 1
        at = soft if soft > half else _between_characters(text, at, stop)
        yield at


def _between_characters(text: str, begin: int, cut: int) -> int:
    """The last place up to ``cut`` that does not part a letter from its marks."""
    for place in range(cut, max(begin + 1, cut - 64), -1):
        character = text[place]
        if (
            character not in _JOINERS
            and text[place - 1] != "\u200d"
            and not unicodedata.category(character).startswith("M")
            and not "\U0001f3fb" <= character <= "\U0001f3ff"
        ):
            return place
    return cut

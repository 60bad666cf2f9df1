"""
Finds the sections and blocks of a text that links name: ``note#Heading#Sub`` and ``note#^block``.

Headings are compared as in Obsidian (`resolveSubpath` of its API): letter case and punctuation do
not matter, and of several headings of a name the first counts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from qmd.parse import frontmatter
from qmd.parse.markdown import Outline, indent_of, outline
from qmd.values import Heading
from qmd.values.text import fold

# What Obsidian's `stripHeading` takes for a blank.
_PUNCTUATION = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\s]+")
_CLOSING = re.compile(r"[ \t]#+[ \t]*$")
_BLOCK_ID = re.compile(r"(?<![\w^\\])\^([A-Za-z0-9-]{1,200})[ \t]*$")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_NO_SLUG = re.compile(r"[^\w\- ]+")


def outline_of(text: str) -> tuple[Section, ...]:
    """Every heading outside code with the lines of its section, in order; time is linear."""
    return _Text(text).sections()


def heading_path(anchor: str) -> tuple[str, ...]:
    """The headings of ``Heading#Sub``, the outermost first."""
    return tuple(part.strip() for part in anchor.split("#") if part.strip())


def section(text: str, headings: Sequence[str]) -> Section | None:
    """
    The section below a heading; None if there is no such heading.

    Each heading must come after the one before it and be of a deeper level. If this rule of
    Obsidian finds none, a single name may also be the anchor (``my-heading``) that GitHub makes of
    a heading.

    Args:
        headings: As in a link, the outermost first (see `heading_path`).

    Returns:
        The first such section; its ``others`` are the lines of the other headings that fit.
    """
    if not headings:
        return None
    source = _Text(text)
    every = source.sections()
    at, fitting = _matches(every, [source.names(each) for each in every], headings)
    if at is None and len(headings) == 1:
        slug = headings[0].casefold()
        fitting = [index for index, each in enumerate(every) if _slug(each.heading.text) == slug]
        at = fitting[0] if fitting else None
    if at is None:
        return None
    others = tuple(every[index].start_line for index in fitting if index != at)
    return replace(every[at], others=others)


def _matches(
    every: Sequence[Section], keys: Sequence[frozenset[str]], headings: Sequence[str]
) -> tuple[int | None, list[int]]:
    """The heading that Obsidian finds, and all whose own and outer names are these."""
    names = [_plain(name) for name in headings]
    fitting = [index for index, each in enumerate(keys) if names[-1] in each]
    if len(names) > 1:
        above = _parents(every)
        fitting = [index for index in fitting if _is_below(keys, above, index, names[:-1])]
    return _walk(every, keys, names), fitting


def block_ids(text: str) -> tuple[tuple[str, int], ...]:
    """The names that blocks have (``^name`` at the end of a line), with the name's line."""
    return tuple(_Text(text).block_ids()) if "^" in text else ()


def block(text: str, block_id: str) -> TextSpan | None:
    """
    The paragraph, list item, table, quote or code that has this name; None if none has.

    Args:
        block_id: Without ``^``; letter case does not matter.
    """
    source = _Text(text)
    name = block_id.casefold()
    lines = [line for each, line in source.block_ids() if each.casefold() == name]
    if not lines:
        return None
    first, last = source.block_lines(lines[0] - 1)
    return TextSpan(first + 1, last + 1, source.char(first), source.char(last), tuple(lines[1:]))


def list_item(text: str, line: int) -> TextSpan:
    """The list item that begins at this line, counted from 1, with all that is inside it."""
    source = _Text(text)
    first, last = source.item_lines(line - 1, line - 1)
    return TextSpan(first + 1, last + 1, source.char(first), source.char(last))


class Anchors:
    """What links may name in one text. For many links: the text is parsed once, for the first."""

    def __init__(self, text: str) -> None:
        source = _Text(text)
        self._sections = source.sections()
        self._names = [source.names(each) for each in self._sections]
        self._all_names = frozenset(name for names in self._names for name in names)
        self._slugs = frozenset(_slug(each.heading.text) for each in self._sections)
        self._blocks = frozenset(each.casefold() for each, _ in source.block_ids())

    def has_section(self, headings: Sequence[str]) -> bool:
        """Whether `section` gives one for these headings."""
        names = [_plain(name) for name in headings]
        if len(names) == 1:
            return names[0] in self._all_names or headings[0].casefold() in self._slugs
        return (
            bool(names)
            and self._all_names.issuperset(names)
            and _walk(self._sections, self._names, names) is not None
        )

    def has_block(self, block_id: str) -> bool:
        """Whether `block` gives one for this name."""
        return block_id.casefold() in self._blocks


class _Text:
    """A text, its lines and its blocks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.body_start = frontmatter.split(text).body_start
        self.outline: Outline = outline(text, self.body_start)
        self.lines = self.outline.lines

    def sections(self) -> tuple[Section, ...]:
        headings = self.outline.headings
        bodies = [block.end for block in self.outline.blocks if block.kind == "heading"]
        ends = [len(self.lines)] * len(headings)
        paths: list[tuple[str, ...]] = []
        open_headings: list[int] = []
        for index, heading in enumerate(headings):
            while open_headings and headings[open_headings[-1]].level >= heading.level:
                ends[open_headings.pop()] = heading.line - 1
            open_headings.append(index)
            paths.append(tuple(headings[each].text for each in open_headings))
        return tuple(
            Section(
                heading=heading,
                path=path,
                start_line=heading.line,
                body_line=body + 1,
                end_line=end + 1,
                start_char=heading.start_char,
                body_char=self.char(body),
                end_char=self.char(end),
            )
            for heading, path, body, end in zip(headings, paths, bodies, ends, strict=True)
        )

    def char(self, line: int) -> int:
        starts = self.outline.starts
        return starts[line] if line < len(starts) else len(self.text)

    def names(self, each: Section) -> frozenset[str]:
        """The plain forms of a heading: as shown, and as written with its links and emphasis."""
        written = [line.strip() for line in self.lines[each.start_line - 1 : each.body_line - 1]]
        if written[0].startswith("#"):
            raw = _CLOSING.sub("", written[0].lstrip("#")[:1000])
        else:
            raw = " ".join(written[:-1])
        return frozenset((_plain(each.heading.text), _plain(raw), _plain(_BLOCK_ID.sub("", raw))))

    def block_ids(self) -> list[tuple[str, int]]:
        hidden = self.outline.hidden
        begins = [begin for begin, _ in hidden]
        ids = []
        for number, line in enumerate(self.lines):
            if "^" not in line or self.outline.starts[number] < self.body_start:
                continue
            match = _BLOCK_ID.search(line, max(0, len(line) - 300))
            if match is None:
                continue
            index = bisect_right(begins, number) - 1
            if index < 0 or number >= hidden[index][1]:
                ids.append((match[1], number + 1))
        return ids

    def block_lines(self, line: int) -> tuple[int, int]:
        """The lines ``[first, last)`` of the block whose name stands in this line, from 0."""
        blocks = self.outline.blocks
        index = bisect_right([each.start for each in blocks], line) - 1
        if index < 0 or line >= blocks[index].end:
            return line, line + 1
        first = blocks[index].start
        if _BLOCK_ID.sub("", self.lines[line]).strip():
            return self.item_lines(first, line)
        # A name on a line of its own belongs to the block above it, indented to the item above.
        if line > first:
            item = self.item_lines(first, line) if self.lines[line][0] in " \t" else (first, line)
            return item if item[0] > first or _LIST_ITEM.match(self.lines[first]) else (first, line)
        if index > 0:
            return blocks[index - 1].start, blocks[index - 1].end
        return line, line + 1

    def item_lines(self, first: int, line: int) -> tuple[int, int]:
        """A list item with the items inside it; else the block from ``first`` to this line."""
        lines = self.lines
        marker = line
        while marker > first and not _LIST_ITEM.match(lines[marker]):
            marker -= 1
        if not _LIST_ITEM.match(lines[marker]):
            return first, line + 1
        column = indent_of(lines[marker])
        last = end = line + 1
        while end < len(lines):
            if lines[end].strip():
                if indent_of(lines[end]) <= column:
                    break
                last = end + 1
            end += 1
        return marker, last


def _walk(
    every: Sequence[Section], keys: Sequence[frozenset[str]], names: Sequence[str]
) -> int | None:
    """The heading that Obsidian finds: each name in turn, each of a deeper level than the last."""
    level = part = 0
    for index, each in enumerate(every):
        if each.heading.level > level and names[part] in keys[index]:
            part += 1
            level = each.heading.level
            if part == len(names):
                return index
    return None


def _parents(every: Sequence[Section]) -> list[int]:
    """For each heading the one whose section it is in, -1 without one."""
    parents: list[int] = []
    for index, each in enumerate(every):
        parent = index - 1
        while parent >= 0 and every[parent].heading.level >= each.heading.level:
            parent = parents[parent]
        parents.append(parent)
    return parents


def _is_below(
    keys: Sequence[frozenset[str]], parents: Sequence[int], index: int, names: Sequence[str]
) -> bool:
    """Whether the headings above this one hold these names, in order."""
    left = list(names)
    while left and parents[index] >= 0:
        index = parents[index]
        if left[-1] in keys[index]:
            left.pop()
    return not left


def _plain(name: str) -> str:
    folded = fold(name)
    return _PUNCTUATION.sub(" ", folded).strip() or folded.strip()


def _slug(heading: str) -> str:
    return _NO_SLUG.sub("", heading.casefold()).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """
    Whole lines of a text. Lines count from 1, characters from 0; each end is after the last.

    Attributes:
        others: Lines at which the same name stands once more.
    """

    start_line: int
    end_line: int
    start_char: int
    end_char: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """
    A heading and all below it, up to the next heading of its level or a higher one.

    Lines count from 1, characters from 0; each end is after the last.

    Attributes:
        path: The texts of the headings above it and of its own, the outermost first.
        body_line, body_char: Where the text below the heading begins.
        others: Lines of other headings of the same name.
    """

    heading: Heading
    path: tuple[str, ...]
    start_line: int
    body_line: int
    end_line: int
    start_char: int
    body_char: int
    end_char: int
    others: tuple[int, ...] = ()

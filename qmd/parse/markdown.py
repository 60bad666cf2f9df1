"""
Finds the blocks of a Markdown text in one pass over its lines: headings, code, tables, paragraphs.

This is the part of CommonMark that an index needs, written for speed: a full parser takes
twenty times as long and its tree would be thrown away. Headings inside lists and block quotes
are not headings of the document. Every loop moves forward, so hostile input stays linear.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import Literal, NamedTuple

from qmd.parse.heading_text import heading_text
from qmd.parse.lines import lines_and_starts
from qmd.records import dataclass, of_tuples
from qmd.values import Heading

BlockKind = Literal["text", "heading", "fence", "code", "table", "html"]

_MAX_HEADING = 1000  # characters of a heading line that are looked at
_MAX_SETEXT = 300  # a longer paragraph above a rule is prose above a rule

_SPECIAL = frozenset(
    " \t#%`~$-=+*_>|<:0123456789[\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000"
)
_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*)|$)", re.DOTALL)
_FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")
_OPENED_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:([ \t]+)|$)")
#: Lines of a formula between ``$$`` and ``$$``; a longer one is text.
MAX_FORMULA_LINES = 200
_MAX_ITEMS = 9  # that begin in one line, each in the one before
_RULE = re.compile(r"(?:\*[ \t]*){3,}$|(?:-[ \t]*){3,}$|(?:_[ \t]*){3,}$")
_TABLE_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_QUOTE = re.compile(r"[ \t]{0,3}>[ \t]?")
_DEFINITION = re.compile(r"\[[^\[\]]{1,999}\]:")
#: What begins and ends HTML of which nothing is text.
_HIDDEN_HTML = tuple(
    (re.compile(opening, re.IGNORECASE), re.compile(ending, re.IGNORECASE))
    for opening, ending in (
        ("<!--", "-->"),
        (r"<(?:pre|script|style|textarea)(?:[\s>]|$)", "</(?:pre|script|style|textarea)>"),
        (r"<\?", r"\?>"),
        (r"<!\[CDATA\[", r"\]\]>"),
    )
)
_HTML_BLOCK = re.compile(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|"
    r"details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|"
    r"head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|"
    r"option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)"
    r"(?:\s|/?>|$)",
    re.IGNORECASE,
)
_LONE_TAG = re.compile(
    r"<(?:/[a-zA-Z][\w-]*\s*|[a-zA-Z][\w-]*(?:\s+[\w:@.-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'=<>`]+))?)*\s*/?)>\s*$"
)


class Block(NamedTuple):
    """Lines ``[start, end)``, 0-based; ``level`` is a heading's, else 0."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0


_block = of_tuples(Block)
_heading = of_tuples(Heading)


@dataclass(frozen=True, slots=True)
class Outline:
    """
    A document's lines and blocks, in order; blank lines between blocks belong to none.

    ``lines`` and ``starts`` (character offsets) cover the whole text, ``blocks`` the part
    after the frontmatter. ``headings[i]`` belongs to the i-th block of kind heading.
    ``hidden`` are the line ranges ``[start, end)`` of code, HTML comments and formulas;
    ``formulas`` those of formulas alone; ``definitions`` the lines that may define a link
    reference.
    """

    lines: list[str]
    starts: list[int]
    blocks: list[Block]
    headings: tuple[Heading, ...]
    hidden: list[tuple[int, int]]
    formulas: list[tuple[int, int]]
    definitions: list[int]


def outline(text: str, body_start: int = 0) -> Outline:
    """The outline of the text from ``body_start`` on, the offset of the start of a line."""
    lines, starts = lines_and_starts(text)
    scanner = _Scanner(lines, starts, bisect_left(starts, body_start))
    scanner.run()
    return Outline(
        lines,
        starts,
        scanner.blocks,
        tuple(scanner.headings),
        scanner.hidden,
        scanner.formulas,
        scanner.definitions,
    )


def closed(text: str) -> str:
    """Markdown that other text may follow: a code fence that it leaves open ends with it."""
    if "```" not in text and "~~~" not in text:
        return text
    structure = outline(text)
    last = structure.blocks[-1] if structure.blocks else None
    if last is None or last.kind != "fence" or last.end < len(structure.lines):
        return text
    mark = _OPENED_FENCE.match(structure.lines[last.start].lstrip("-*+ \t"))
    if mark is None:
        return text
    end = structure.lines[last.end - 1].strip()
    is_closed = last.end - last.start > 1 and end.startswith(mark[1]) and not end.strip(mark[1][0])
    return text if is_closed else f"{text}\n{mark[1]}"


class _Scanner:
    """The state of one pass: an open block, an open paragraph, and the open list items."""

    def __init__(self, lines: list[str], starts: list[int], first: int) -> None:
        self.lines = lines
        self.starts = starts
        self.at = first
        self.blocks: list[Block] = []
        self.headings: list[Heading] = []
        self.hidden: list[tuple[int, int]] = []
        self.formulas: list[tuple[int, int]] = []
        self.definitions: list[int] = []
        self.block = -1  # first line of the open block of text
        self.kind: BlockKind = "text"
        self.paragraph = -1  # first line of the open paragraph of the document itself
        self.lazy = False  # a paragraph in a list or quote is open: plain lines continue it
        self.items: list[int] = []  # content columns of the open list items
        self.last_mark = len(lines)  # no line after this one has "%%"
        #: For each kind of container, up to which line no formula ends after the last "$$".
        self.formula_searched: dict[int, int] = {}

    def run(self) -> None:
        lines = self.lines
        count = len(lines)
        special = _SPECIAL
        while self.at < count:
            line = lines[self.at]
            if line and line[0] not in special:
                # The common case: a line of prose.
                if self.block < 0:
                    self.block = self.at
                if self.paragraph < 0 and not self.lazy:
                    self.paragraph = self.at
                    self.items.clear()
                self.at += 1
            elif not line or line.isspace():
                if self.block >= 0:  # else no paragraph is open, either
                    self.close()
                self.at += 1
            else:
                self.special(line)
        self.close()

    def close(self) -> None:
        """End the open block and paragraph before the current line."""
        if self.block >= 0:
            self.blocks.append(_block((self.kind, self.block, self.at, 0)))
            self.block = -1
            self.kind = "text"
        self.paragraph = -1
        self.lazy = False

    def take(self, kind: BlockKind, end: int, *, hidden: bool = False) -> None:
        """Lines from the current one up to ``end`` are a block of their own."""
        self.close()
        self.blocks.append(_block((kind, self.at, end, 0)))
        if hidden:
            self.hidden.append((self.at, end))
        self.at = end

    def special(self, line: str) -> None:
        """A line that begins with white space or with a sign that may mean something."""
        indent = base = 0
        body = line
        if line[0] in " \t":
            body = line.lstrip(" \t")
            indent = _columns(line[: len(line) - len(body)])
        if self.items:
            if self.block < 0 and indent < self.items[0]:
                self.leave_items(body, indent)
            base = self.container(indent)
        if indent - base >= 4:
            if self.paragraph < 0 and not self.lazy and self.block < 0:
                self.indented_code(base)
            else:
                self.text()
            return
        handler = _HANDLERS.get(body[0])
        if handler is None or not handler(self, body, indent, base):
            self.text(inside=base > 0)

    def leave_items(self, body: str, indent: int) -> None:
        """
        Behind a blank line, text left of the list's content ends the list, unless it is another
        item.
        """
        if not _LIST_ITEM.match(body):
            self.items.clear()
            return
        while self.items and self.items[-1] > indent:
            self.items.pop()

    def container(self, indent: int) -> int:
        """The content column of the innermost list item that contains this column, else 0."""
        reached = bisect_right(self.items, indent)  # each item lies further right than the last
        return self.items[reached - 1] if reached else 0

    def text(self, *, inside: bool = False) -> None:
        if self.block < 0:
            self.block = self.at
        if inside:
            self.lazy = True
        elif self.paragraph < 0 and not self.lazy:
            self.paragraph = self.at
            self.items.clear()
        self.at += 1

    # Each handler gets the line without its indentation, and returns whether it consumed it.

    def heading(self, body: str, indent: int, base: int) -> bool:
        match = _ATX.match(body)
        if match is None or base:
            return False
        raw = (match[2] or "")[:_MAX_HEADING].strip(" \t")
        bare = raw.rstrip("#")
        if len(bare) < len(raw) and (not bare or bare[-1] in " \t"):
            raw = bare.rstrip(" \t")
        self.add_heading(len(match[1]), raw, self.at, self.at + 1)
        return True

    def add_heading(self, level: int, raw: str, start: int, end: int) -> None:
        if self.block >= 0 and self.block < start:
            self.blocks.append(_block((self.kind, self.block, start, 0)))
        self.block = self.paragraph = -1
        self.lazy = False
        self.kind = "text"
        self.items.clear()
        self.blocks.append(_block(("heading", start, end, level)))
        self.headings.append(_heading((level, heading_text(raw), start + 1, self.starts[start])))
        self.at = end

    def setext(self, body: str, indent: int, base: int) -> bool:
        """A run of ``=`` or ``-`` under a paragraph."""
        if base or self.paragraph < 0 or body.rstrip(" \t").strip(body[0]):
            return False
        if self.starts[self.at] - self.starts[self.paragraph] > 2 * _MAX_SETEXT:
            return False  # not joined again for each further line of signs
        raw = " ".join(line.strip() for line in self.lines[self.paragraph : self.at])
        if len(raw) > _MAX_SETEXT or _DEFINITION.match(raw):
            return False
        self.add_heading(1 if body[0] == "=" else 2, raw, self.paragraph, self.at + 1)
        return True

    def dash(self, body: str, indent: int, base: int) -> bool:
        if self.setext(body, indent, base):
            return True
        return self.table(body, indent, base) or self.star(body, indent, base)

    def star(self, body: str, indent: int, base: int) -> bool:
        """``*``, ``-``, ``_`` or ``+``: a rule or a list item."""
        if _RULE.match(body):
            if self.block < 0:
                self.block = self.at
            self.paragraph = -1
            self.lazy = False
            if not base:
                self.items.clear()
            self.at += 1
            return True
        return self.item(body, indent, base)

    def item(self, body: str, indent: int, base: int) -> bool:
        match = _LIST_ITEM.match(body)
        if match is None:
            return False
        space = match[1]
        if space is None and self.paragraph >= 0:
            return False
        if self.paragraph >= 0 and body[0].isdigit() and body[:2] not in ("1.", "1)"):
            return False  # only a list that begins with 1 may interrupt a paragraph
        marker = match.end() - len(space or "")
        column = indent + (match.end() if space and len(space) <= 4 else marker + 1)
        items = self.items
        while items and items[-1] > indent:
            items.pop()
        items.append(column)
        if self.block < 0:
            self.block = self.at
        self.paragraph = -1
        rest = self.items_in_item(body[match.end() :])
        fence = _FENCE.match(rest)
        if fence is not None:
            self.fence_in_item(fence[1], items[-1])
            return True
        if self.formula(rest, indent, items[-1]):
            return True
        self.lazy = bool(rest)
        self.at += 1
        return True

    def items_in_item(self, rest: str) -> str:
        """Open the items with which an item begins, as ``- 1. text``; returns the text."""
        for _ in range(_MAX_ITEMS):
            match = _LIST_ITEM.match(rest)
            if match is None or not match[1]:
                break
            self.items.append(self.items[-1] + match.end())
            rest = rest[match.end() :]
        return rest

    def fence_in_item(self, mark: str, column: int) -> None:
        """An item line that opens a fence; it belongs to the fence's block."""
        self.at += 1
        self.close()
        self.fence_until(mark, self.at - 1, column)
        if len(self.blocks) == 1:
            return
        item, fence = self.blocks[-2:]
        if item.end - 1 > item.start:
            self.blocks[-2:] = [Block(item.kind, item.start, item.end - 1), fence]
        else:
            self.blocks[-2:] = [fence]

    def table(self, body: str, indent: int, base: int) -> bool:
        """The rule below a table's head makes the line above it a table."""
        if self.paragraph < 0 or "|" not in body:
            return False
        if not _TABLE_RULE.fullmatch(body.rstrip(" \t")):
            return False
        head = self.at - 1
        if "|" not in self.lines[head]:
            return False
        if self.block < head:
            self.blocks.append(Block(self.kind, self.block, head))
        self.block = head
        self.kind = "table"
        self.paragraph = -1
        self.lazy = True
        self.at += 1
        return True

    def fence(self, body: str, indent: int, base: int) -> bool:
        match = _FENCE.match(body)
        if match is None:
            return False
        self.close()
        self.fence_until(match[1], self.at, base)
        return True

    def fence_until(self, mark: str, start: int, base: int) -> None:
        """
        Take the lines of a fence that opens with ``mark`` in the line ``start``.

        It ends with its closing line, or where the list item around it ends (``base`` is the
        item's content column).
        """
        lines = self.lines
        count = len(lines)
        at = start + 1
        character = mark[0]
        length = len(mark)
        while at < count:
            line = lines[at]
            body = line.lstrip(" \t")
            if body.startswith(mark) and len(line) - len(body) < base + 4:
                tail = body.rstrip(" \t")
                if len(tail) >= length and not tail.strip(character):
                    at += 1
                    break
            if base and body and len(line) - len(body) < base and line[0] != "\t":
                break
            at += 1
        self.at = start
        self.take("fence", at, hidden=True)

    def indented_code(self, base: int) -> None:
        lines = self.lines
        count = len(lines)
        need = base + 4
        at = end = self.at
        while at < count:
            line = lines[at]
            body = line.lstrip(" \t")
            if body:
                if _columns(line[: len(line) - len(body)]) < need:
                    break
                end = at + 1
            elif at > end and at - end > 2:
                break  # a long gap: let the next lines be a block of their own
            at += 1
        self.take("code", max(end, self.at + 1), hidden=True)

    def quote(self, body: str, indent: int, base: int) -> bool:
        if self.block < 0:
            self.block = self.at
        self.paragraph = -1
        inner = body[1:].lstrip(" \t")
        fence = _FENCE.match(inner) if inner[:1] in ("`", "~") and inner else None
        if fence is not None:
            self.quoted_fence(fence[1])
        elif not self.formula(inner, indent, -1):
            self.lazy = bool(inner)
            self.at += 1
        return True

    def quoted_fence(self, mark: str) -> None:
        """Code in a block quote ends with the quote at the latest."""
        lines = self.lines
        count = len(lines)
        start = self.at
        at = start + 1
        while at < count:
            prefix = _QUOTE.match(lines[at])
            if prefix is None:
                break
            tail = lines[at][prefix.end() :].strip(" \t")
            at += 1
            if tail.startswith(mark) and not tail.strip(mark[0]):
                break
        self.hidden.append((start, at))
        self.lazy = False
        self.at = at

    def html(self, body: str, indent: int, base: int) -> bool:
        for opening, ending in _HIDDEN_HTML:
            match = opening.match(body)
            if match is not None:
                self.html_until(ending, self.lines[self.at].index("<") + match.end())
                return True
        if _HTML_BLOCK.match(body) or (
            self.paragraph < 0 and not self.lazy and len(body) < 1024 and _LONE_TAG.match(body)
        ):
            # Any line belongs to it, up to the next blank line.
            if self.block < 0:
                self.block = self.at
            self.paragraph = -1
            at = self.at + 1
            lines = self.lines
            while at < len(lines) and lines[at] and not lines[at].isspace():
                at += 1
            self.at = at
            return True
        return False

    def html_until(self, ending: re.Pattern[str], start: int) -> None:
        """Take lines up to one that has the ending, in the current one after ``start``."""
        lines = self.lines
        at = self.at
        while at < len(lines) and not ending.search(lines[at], start):
            at += 1
            start = 0
        self.take("html", min(at + 1, len(lines)), hidden=True)

    def comment(self, body: str, indent: int, base: int) -> bool:
        """Obsidian's ``%%``, up to the next ``%%`` in another line; without one it is text."""
        if not body.startswith("%%") or "%%" in body[2:]:
            return False
        lines = self.lines
        at = self.at + 1
        while at < self.last_mark and "%%" not in lines[at]:
            at += 1
        if at >= self.last_mark:
            self.last_mark = self.at
            return False
        self.take("html", at + 1, hidden=True)
        return True

    def formula(self, body: str, indent: int, base: int) -> bool:
        """
        Lines from one that begins with ``$$`` to one that ends with it, as the page shows them.

        They are text without headings, links, tags and tasks: a line of ``=`` or ``-`` is part of
        the formula. ``base`` is -1 in a quote.
        """
        if not body.startswith("$$"):
            return False
        first = body.rstrip()
        last = self.at
        if len(first) <= 3 or not first.endswith("$$"):
            last = -1 if "$$" in first[2:] else self.formula_end(base)
            if last < 0:
                return False
        if self.block < 0:
            self.block = self.at
        self.paragraph = -1
        self.lazy = False
        if not base:
            self.items.clear()
        self.formulas.append((self.at, last + 1))
        self.hidden.append(self.formulas[-1])
        self.at = last + 1
        return True

    def formula_end(self, base: int) -> int:
        """
        The next line of the same item or quote that ends with ``$$``; -1 without one.

        For one ``base`` no line is searched twice.
        """
        lines = self.lines
        limit = min(len(lines), self.at + MAX_FORMULA_LINES)
        at = max(self.at + 1, self.formula_searched.get(base, 0))
        while at < limit and _is_inside(lines[at], base):
            if lines[at].rstrip().endswith("$$"):
                self.formula_searched[base] = at
                return at
            at += 1
        self.formula_searched[base] = at
        return -1

    def bracket(self, body: str, indent: int, base: int) -> bool:
        if "]:" in body:
            self.definitions.append(self.at)
        return False


def _is_inside(line: str, base: int) -> bool:
    """Whether a line is in the item with this content column; -1 stands for a quote."""
    if base < 0:
        return _QUOTE.match(line) is not None
    return not base or indent_of(line) >= base


def indent_of(line: str) -> int:
    """The column at which the text of a line begins."""
    return _columns(line[: len(line) - len(line.lstrip(" \t"))])


def _columns(lead: str) -> int:
    return len(lead.expandtabs(4)) if "\t" in lead else len(lead)


_HANDLERS = {
    "#": _Scanner.heading,
    "%": _Scanner.comment,
    "$": _Scanner.formula,
    "`": _Scanner.fence,
    "~": _Scanner.fence,
    "-": _Scanner.dash,
    "=": _Scanner.setext,
    "*": _Scanner.star,
    "_": _Scanner.star,
    "+": _Scanner.item,
    ">": _Scanner.quote,
    "|": _Scanner.table,
    ":": _Scanner.table,
    "<": _Scanner.html,
    "[": _Scanner.bracket,
    **dict.fromkeys("0123456789", _Scanner.item),
}

"""The text of a document as HTML: rendered or plain, a long one part by part."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from qmd.parse.lines import split_lines
from qmd.render import LinkResolver, Options, RenderedHeading, end_within, render_note, shown_target

#: Characters of a text that one page shows, about; of one with very short lines, fewer.
PART = 150_000

_MARKED = re.compile(
    r'<[a-z][a-z0-9]*(?=[ >])[^<>]* (?:id="at"|class="(?:[^"<>]* )?at(?: [^"<>]*)?")'
)


_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\r\n]*)", re.MULTILINE)


class PagePart(NamedTuple):
    """
    ``text[start:end]``; its first line is ``first_line`` of the text.

    ``fence`` is the line that opened the block of code in which the part begins, or "".
    """

    start: int
    end: int
    first_line: int
    fence: str = ""


class _CodeBlock(NamedTuple):
    """A fenced block of code, ``text[start:end]``, and the line that opens it."""

    start: int
    end: int
    opening: str


@dataclass(frozen=True, slots=True)
class ShownText:
    """
    A part of a text as HTML.

    Attributes:
        html: Safe to show.
        number: Of the part, from 1.
        parts: How many there are.
    """

    html: str
    headings: Sequence[RenderedHeading]
    number: int
    parts: int


def parts_of(text: str) -> list[PagePart]:
    """
    Cut a text into parts of about `PART` characters, in linear time.

    A cut is made before a heading if there is one in the second half of the part, else after an
    empty line, else after a line; only a line that is longer than a part is cut itself. A fenced
    block of code is cut only if it fills that half.
    """
    parts = []
    start, line, fence = 0, 1, ""
    limit = end_within(text, 0, PART)
    blocks = _code_blocks(text) if limit < len(text) else []
    while limit < len(text):
        end = _cut(text, (start + limit) // 2, limit, blocks)
        parts.append(PagePart(start, end, line, fence))
        line += _newlines(text, start, end)
        block = _block_around(blocks, end)
        start, fence = end, "" if block is None else block.opening
        limit = end_within(text, start, PART)
    parts.append(PagePart(start, len(text), line, fence))
    return parts


def _code_blocks(text: str) -> list[_CodeBlock]:
    blocks = []
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            if match[1][0] == "~" or "`" not in match[2]:  # else it is code in a line
                opened = match
        elif match[1].startswith(opened[1]) and not match[2].strip():
            blocks.append(_CodeBlock(opened.start(), match.end(), opened[0]))
            opened = None
    if opened is not None:
        blocks.append(_CodeBlock(opened.start(), len(text), opened[0]))
    return blocks


def _block_around(blocks: Sequence[_CodeBlock], place: int) -> _CodeBlock | None:
    """The block of code that a cut at ``place`` would divide."""
    at = bisect_right(blocks, place, key=lambda block: block.start) - 1
    return blocks[at] if at >= 0 and blocks[at].start < place < blocks[at].end else None


def part_with_line(parts: Sequence[PagePart], line: int) -> int:
    """The number, from 1, of the part that holds a line."""
    return max(1, sum(part.first_line <= line for part in parts))


def shown_markdown(
    text: str,
    links: LinkResolver,
    *,
    lines: tuple[int, int] | None,
    number: int,
    may_tick: bool = False,
    breaks_lines: bool = False,
    is_note: bool = True,
) -> ShownText:
    """
    Render a part of a text of Markdown.

    Args:
        lines: The first and the last line to mark.
        breaks_lines, is_note: As `Options` has them.
        number: Of the part, from 1; a greater one than there are is the last.
    """
    parts = parts_of(text)
    number = min(number, len(parts))
    part = parts[number - 1]
    shown, first_line = text[part.start : part.end], part.first_line
    if number > 1 and (is_note or part.fence):  # what looks like frontmatter there is none
        shown, first_line = f"{part.fence}\n{shown}", first_line - 1
    options = Options(lines, first_line, may_tick, breaks_lines, is_note)
    rendered = render_note(shown, links, options)
    return ShownText(_focused(rendered.html), rendered.headings, number, len(parts))


def shown_section(
    text: str, links: LinkResolver, *, lines: tuple[int, int] | None, first_line: int
) -> ShownText:
    """
    Render a section of a converted text, such as a page, as a whole and with its line ends.

    Args:
        lines: As `shown_markdown` takes them.
        first_line: The number of the section's first line in the text.
    """
    options = Options(lines, first_line, breaks_lines=True, is_note=False)
    rendered = render_note(text, links, options)
    return ShownText(_focused(rendered.html), rendered.headings, 1, 1)


def shown_plain(text: str, *, lines: tuple[int, int] | None, number: int) -> ShownText:
    """A part of a text as it is, each line with its number."""
    parts = parts_of(text)
    number = min(number, len(parts))
    part = parts[number - 1]
    rows = []
    for line, content in enumerate(split_lines(text[part.start : part.end]), part.first_line):
        mark = ""
        if lines is not None and lines[0] <= line <= lines[1]:
            mark = ' class="at" id="at"' if line == lines[0] else ' class="at"'
        rows.append(f'<span data-line="{line}"{mark}>{escape(content)}</span>')
    html = '<pre class="plain-text">' + "".join(f"{row}\n" for row in rows) + "</pre>"
    return ShownText(_focused(html), (), number, len(parts))


def _focused(html: str) -> str:
    """
    Let browsers scroll to the first marked block, also those that run no scripts.

    Only marked blocks have that id or class: those of a note's own HTML are removed, and `<` is
    escaped in its text.
    """
    return _MARKED.sub(lambda match: f'{match[0]} tabindex="-1" autofocus', html, count=1)


def _cut(text: str, middle: int, end: int, blocks: Sequence[_CodeBlock]) -> int:
    for mark, after in (("\n#", 1), ("\n\n", 2), ("\n", 1)):
        at = text.rfind(mark, middle, end)
        while at >= 0:
            block = _block_around(blocks, at + after)
            if block is None:
                return at + after
            at = text.rfind(mark, middle, max(middle, block.start))
    at = text.rfind("\n", middle, end)
    return at + 1 if at >= 0 else end


def _newlines(text: str, start: int, end: int) -> int:
    """How many line ends there are; a lone CR is one, too."""
    pairs = text.count("\r\n", start, end)
    return text.count("\n", start, end) + text.count("\r", start, end) - pairs


# --- a line of Markdown as a person reads it ------------------------------------------
# For the excerpts of hits and backlinks. A line alone does not say whether it stands in a block of
# code, so only those signs are left out that mean the same nearly everywhere: those around links
# and pictures, pairs of emphasis, the bars of tables, and what stands before the words of headings,
# quotes, tasks and items of lists. Numbers of items stay.


_SIGNS = re.compile(r"[\[\]`|]|\*\*|~~|==|__")
_QUOTE = re.compile(r"^\s*(?:>\s?)+(?:\[!\w+\][+-]?\s*)?")
_HEADING = re.compile(r"^#{1,6}\s+(?=\S)")
_TASK = re.compile(r"^(\s*)[-*+] \[([^\]])\] ")
_ITEM = re.compile(r"^\s*[-*+]\s+(?=\S)")
_RULE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_FENCE_LINE = re.compile(r"^\s*(?:`{3,}|~{3,})[\w+#.-]*\s*$")
_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_DELIMITERS = re.compile(r"^\s*\|[\s|:-]*-[\s|:-]*$")
_BAR = re.compile(r"(?<!\\)\|")
_WIKILINK = re.compile(r"!?\[\[([^\[\]|]{1,300})(?:\|([^\[\]]{1,300}))?\]\]")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,1000}\)")
_PAIRS = re.compile(r"(\*\*|~~|==|`)(?=\S)([^*~=`]{1,500}?)(?<=\S)\1")


def plain_line(line: str) -> str:
    """
    A line without the signs of Markdown; "" for a line of nothing else, as one that draws a rule.

    ``[[Plan#Next|the plan]]`` is "the plan", ``## Next`` is "Next", ``- [x] done`` is "☑ done",
    ``| milk | 2 l |`` is "milk · 2 l". The time grows linearly with the line.
    """
    if _RULE.match(line) or _FENCE_LINE.match(line) or _DELIMITERS.match(line):
        return ""
    line = _HEADING.sub("", _QUOTE.sub("", line))
    line = _TASK.sub(lambda task: f"{task[1]}{'☐' if task[2] == ' ' else '☑'} ", line)
    line = _ITEM.sub("", line)
    line = _WIKILINK.sub(lambda link: link[2] or shown_target(link[1]), line)
    line = _PAIRS.sub(r"\2", _LINK.sub(r"\1", line))
    if row := _ROW.match(line):
        cells = (cell.strip().replace("\\|", "|") for cell in _BAR.split(row[1]))
        return " · ".join(filter(None, cells))
    return line


def has_signs(query: str) -> bool:
    """Whether a query asks for signs that `plain_line` leaves out."""
    return _SIGNS.search(query) is not None

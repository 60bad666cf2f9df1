"""
Rewrites light markup as Markdown, line by line, so that lines keep their numbers.

Headings, items, code and text are written in the place of the line that they come from; what is not
to be read becomes a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from qmd.parse.convert.blocks import heading_line
from qmd.parse.convert.inert import inert, inert_beginnings
from qmd.parse.converted import Converted
from qmd.parse.markdown import outline

#: Lists inside each other; what lies deeper is written at this depth.
_MAX_DEPTH = 12


class _Item(NamedTuple):
    """An open list item: where its sign stands in the source, and where its text is written."""

    indent: int
    column: int


class MarkupLines:
    """
    Collects the lines of a document.

    Args:
        source: The lines of the file; fences are longer than any run of backticks in them.
    """

    def __init__(self, source: Sequence[str]) -> None:
        longest = max((len(run) for line in source for run in re.findall("`{3,}", line)), default=2)
        self._fence = "`" * (longest + 1)
        self._lines: list[str] = []
        self._items: list[_Item] = []
        self.is_in_code = False

    def __len__(self) -> int:
        return len(self._lines)

    def blank(self) -> None:
        """A line without text; the list goes on if the next line is inside it."""
        self._lines.append("")

    def text(self, indent: int, markdown: str) -> None:
        """A line of text; left of the text of an item, it ends that item."""
        self._leave(indent)
        self._lines.append(" " * self._column() + markdown)

    def paragraph_line(self, indent: int, markdown: str) -> None:
        """As `text`, but what would begin a heading, a rule or a quote is marked."""
        if markdown.startswith(">"):
            markdown = f"\\{markdown}"
        self.text(indent, inert_beginnings(markdown))

    def item(self, indent: int, mark: str, markdown: str) -> None:
        """A list item whose sign stands at this column."""
        self._leave(indent)
        column = self._column()
        self._lines.append(f"{' ' * column}{mark} {markdown}")
        if len(self._items) < _MAX_DEPTH:
            self._items.append(_Item(indent, column + len(mark) + 1))

    def heading(self, level: int, text: str) -> None:
        """A heading of plain text; it ends all lists."""
        self._items.clear()
        self._lines.append(heading_line(level, text))

    def begin_code(self, indent: int, language: str = "", *, above: bool = False) -> None:
        """
        A line that opens a fence.

        Args:
            above: It takes the place of the line above, if that is blank.
        """
        if above and self._lines and not self._lines[-1]:
            self._lines.pop()
        self._leave(indent)
        word = language if re.fullmatch(r"[\w+#.-]{1,40}", language) else ""
        self._lines.append(f"{' ' * self._column()}{self._fence}{word}")
        self.is_in_code = True

    def code(self, line: str) -> None:
        """A line of code."""
        self._lines.append(f"{' ' * self._column()}{line}".rstrip())

    def end_code(self) -> None:
        """A line that closes the fence."""
        self._lines.append(f"{' ' * self._column()}{self._fence}")
        self.is_in_code = False

    def converted(
        self,
        *,
        title: str | None = None,
        date: str | None = None,
        properties: dict[str, object] | None = None,
        warnings: tuple[str, ...] = (),
        encoding: str = "utf-8",
    ) -> Converted:
        """
        All lines as one text.

        Args:
            title: None for the first heading of level 1.
        """
        text = "\n".join(self._lines).rstrip() + "\n" if any(self._lines) else ""
        return Converted(
            text,
            title=title or main_heading(text),
            date=date,
            properties={key: value for key, value in (properties or {}).items() if value},
            warnings=warnings,
            encoding=encoding,
        )

    def _column(self) -> int:
        return self._items[-1].column if self._items else 0

    def _leave(self, indent: int) -> None:
        """End the items whose sign does not stand left of this column."""
        while self._items and self._items[-1].indent >= indent:
            self._items.pop()


def main_heading(markdown: str) -> str | None:
    """The first heading of level 1."""
    headings = outline(markdown).headings
    return next((each.text for each in headings if each.level == 1 and each.text), None)


def rewritten(text: str, pattern: re.Pattern[str], rewrite: Callable[[re.Match[str]], str]) -> str:
    """Text in which the matches become Markdown, and the rest means nothing."""
    pieces: list[str] = []
    at = 0
    for match in pattern.finditer(text):
        pieces += [inert(text[at : match.start()]), rewrite(match)]
        at = match.end()
    return "".join([*pieces, inert(text[at:])])


def indent_of(line: str) -> int:
    """The columns of white space before a line's text."""
    return len(line) - len(line.lstrip(" ")) if "\t" not in line else _columns(line)


def _columns(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(8))


def dedented(line: str, columns: int) -> str:
    """A line of code without so many columns of white space before it, if it has them."""
    if "\t" in line[: columns + 1]:
        line = line.expandtabs(8)
    return line[columns:] if not line[:columns].strip() else line.lstrip(" ")

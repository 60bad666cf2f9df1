"""Writes the blocks of a document as Markdown, one behind the other, with its anchors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from qmd.parse.convert.inert import fenced, inert, inert_lines
from qmd.parse.converted import Anchor, Converted
from qmd.parse.heading_text import heading_text
from qmd.parse.warnings import limit_warnings

#: Characters of the Markdown of one file; what is behind them is left out.
MAX_CHARACTERS = 20_000_000
#: Lists and quotes inside each other; what lies deeper is written at this depth.
MAX_DEPTH = 12
#: Characters of a heading; a longer one is a paragraph.
MAX_HEADING = 300

_FORMATTED = re.compile(r"[\\`*_~={}\[\]<>&#]")


@dataclass(slots=True)
class _Container:
    """A list item or a quote; ``first`` begins its first line, ``rest`` the others."""

    first: str
    rest: str
    is_item: bool
    is_begun: bool = False


class Blocks:
    """
    Collects blocks, each inside the list items and quotes that are open.

    Attributes:
        warnings: Sentences for the document's warnings.
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._pieces: list[str] = []
        self._length = 0
        self._anchors: list[Anchor] = []
        self._containers: list[_Container] = []
        self._too_deep = 0
        self._was_in_item = False
        self._is_full = False

    @property
    def is_empty(self) -> bool:
        return not self._pieces

    @property
    def is_full(self) -> bool:
        """Whether nothing more will be written."""
        return self._is_full

    def anchor(self, kind: str, label: str, shown: str | None = None) -> None:
        """A place of the file begins with the next block; one without a block is left out."""
        start = self._length + 2 if self._pieces else 0
        if self._anchors and self._anchors[-1].start_char == start:
            self._anchors.pop()
        self._anchors.append(Anchor(kind, label, start, shown))

    def open_item(self, mark: str = "-") -> None:
        """Begin a list item; blocks belong to it until `close`."""
        self._open(_Container(f"{mark} ", " " * (len(mark) + 1), is_item=True))

    def open_quote(self) -> None:
        """Begin a quote; blocks belong to it until `close`."""
        self._open(_Container("> ", "> ", is_item=False))

    def close(self) -> None:
        """End the list item or quote that was opened last."""
        if self._too_deep:
            self._too_deep -= 1
        else:
            self._containers.pop()

    def paragraph(self, text: str) -> None:
        """A paragraph of plain text."""
        self.markdown(inert_lines(text))

    def heading(self, level: int, text: str) -> None:
        """A heading of plain text on one line; nothing if it is blank."""
        self.markdown(heading_line(level, text))

    def code(self, text: str, language: str = "") -> None:
        """Lines of code; blank lines around them are left out."""
        code = text.strip("\r\n").rstrip()
        if code.strip():
            self.markdown(fenced(code, language))

    def markdown(self, text: str) -> None:
        """A block that is Markdown already; nothing if it is blank."""
        text = text.strip("\n")
        if not text.strip() or self._is_full:
            return
        written = self._in_containers(text.split("\n"))
        if self._length + len(written) > MAX_CHARACTERS:
            self._is_full = True
            self.warnings.append(
                f"Its text is longer than {MAX_CHARACTERS:,} characters; the rest was left out."
            )
            return
        self._length += len(written)
        self._pieces.append(written)

    def _in_containers(self, lines: list[str]) -> str:
        """The lines with the signs of the open items and quotes, behind what separates them."""
        containers = self._containers
        first = "".join(each.rest if each.is_begun else each.first for each in containers)
        rest = "".join(each.rest for each in containers)
        blank = "".join(each.rest for each in containers if each.is_begun).rstrip()
        begins_item = any(each.is_item and not each.is_begun for each in containers)
        is_tight = begins_item and self._was_in_item
        for container in containers:
            container.is_begun = True
        self._was_in_item = any(container.is_item for container in containers)
        written = "\n".join([first + lines[0], *((rest + line).rstrip() for line in lines[1:])])
        if not self._pieces:
            return written
        return ("\n" if is_tight else f"\n{blank}\n") + written

    def converted(
        self,
        *,
        title: str | None = None,
        date: str | None = None,
        properties: Mapping[str, object] | None = None,
        warnings: Iterable[str] = (),
        encoding: str = "utf-8",
    ) -> Converted:
        """All blocks as one text, with what is known of the document."""
        text = "".join(self._pieces) + "\n" if self._pieces else ""
        anchors = tuple(each for each in self._anchors if each.start_char < len(text))
        return Converted(
            text,
            anchors,
            " ".join(title.split()) or None if title else None,
            date,
            {key: value for key, value in (properties or {}).items() if value},
            limit_warnings((*warnings, *self.warnings)),
            encoding,
        )

    def _open(self, container: _Container) -> None:
        if len(self._containers) >= MAX_DEPTH:
            self._too_deep += 1
        else:
            self._containers.append(container)


def heading_line(level: int, text: str) -> str:
    """A heading of plain text as Markdown; if it is long or blank, the text as a paragraph."""
    line = " ".join(text.split())
    if not line or len(line) > MAX_HEADING:
        return inert_lines(line)
    written = inert(line)
    if heading_text(written) != line or written.endswith("#"):
        written = _FORMATTED.sub(r"\\\g<0>", line)
    return f"{'#' * max(1, min(6, level))} {written}"

"""How a text is rendered, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """
    How a text is rendered.

    Attributes:
        lines: The first and the last line to mark, counted from 1; the block of the first gets
            the id ``at``.
        first_line: The number of the text's first line.
        may_tick: Whether the boxes of tasks are said to be changeable (``data-task``).
        breaks_lines: Whether a single line end inside a paragraph is shown as a line end; in
            Markdown it is a space.
    """

    lines: tuple[int, int] | None = None
    first_line: int = 1
    may_tick: bool = False
    breaks_lines: bool = False


@dataclass(frozen=True, slots=True)
class RenderedHeading:
    """A heading: its level from 1, its text, its id in the HTML, and its line from 1."""

    level: int
    text: str
    id: str
    line: int


@dataclass(frozen=True, slots=True)
class Rendered:
    """
    A rendered text.

    Attributes:
        html: Safe to show: see `qmd.render.clean`.
        headings: In their order.
        left_out: How many characters at the end were not rendered.
    """

    html: str
    headings: tuple[RenderedHeading, ...] = ()
    left_out: int = 0

"""Parts of a document that links and tools name: sections below a heading, and named blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qmd.values.documents import Heading


@dataclass(frozen=True, slots=True)
class TextSpan:
    """
    Whole lines of a text. Lines count from 1, characters from 0; each end is behind the last.

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

    Lines count from 1, characters from 0; each end is behind the last.

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

    def with_others(self, lines: tuple[int, ...]) -> Section:
        return replace(self, others=lines)

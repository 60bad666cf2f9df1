"""How a text is rendered, and what comes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from qmd.values.documents import named_place


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
        is_note: Whether emphasis, wikilinks, tags, formulas and the like count, and not only
            blocks, code and links.
    """

    lines: tuple[int, int] | None = None
    first_line: int = 1
    may_tick: bool = False
    breaks_lines: bool = False
    is_note: bool = True


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


# --- ids ------------------------------------------------------------------------------


_NO_SLUG = re.compile(r"[^\w\- ]")


def heading_id(text: str) -> str:
    """The id of the first heading with this text."""
    return f"h-{_NO_SLUG.sub('', text.casefold()).strip().replace(' ', '-')}"


def link_id(anchor: str) -> str:
    """The id that a link leads to by what stands after its ``#``: a heading, or ``^block``."""
    last = anchor.rpartition("#")[2]
    return f"b-{last[1:]}" if last.startswith("^") else heading_id(last)


_PLACE = re.compile(
    r"(.*[^/])\.[A-Za-z]{1,5}#(page|slide|sheet|chapter|cell|message|line|time)=([^#&]+)"
)


def shown_target(target: str) -> str:
    """
    What a wikilink without a text of its own shows: ``note > heading``.

    For a place of a file, what people call it: ``report, p. 12`` for ``report.pdf#page=12``.
    """
    place = _PLACE.fullmatch(target.partition("&")[0])
    if place is not None:
        return f"{place[1]}, {named_place(place[2], place[3])}"
    return " > ".join(part.lstrip("^") for part in target.split("#") if part) or target


# --- links ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenTarget:
    """
    A link as it is written.

    Attributes:
        kind: A wikilink, a Markdown link or image, or an embed (``![[…]]``).
        target: With ``#heading`` or ``#^block``; a Markdown link still percent-encoded.
    """

    kind: Literal["wikilink", "embed", "link", "image"]
    target: str


@dataclass(frozen=True, slots=True)
class Target:
    """
    What a link leads to.

    Attributes:
        kind: A document; an image, sound or video of the collection, which can be shown in place;
            another file of it; an address outside; a document without the section that the link
            names; or nothing.
        address: Where the page goes; for what is missing, where it can be made, or "" for no link.
        title: Shown on hover.
    """

    kind: Literal["note", "image", "audio", "video", "file", "web", "no-section", "missing"]
    address: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    """
    A document, or a part of it, that is shown inside another.

    Attributes:
        text: Markdown without frontmatter.
        links: Says where its links lead.
        identity: The same for the same part of the same document, so that circles are noticed.
    """

    text: str
    links: LinkResolver
    identity: str


#: The languages of the blocks of code that describe tables of notes.
VIEWS = ("qmd", "dataview", "base")


class LinkResolver(Protocol):
    """Where the links of one document lead."""

    def resolve(self, written: Sequence[WrittenTarget]) -> Sequence[Target]:
        """The targets of links, in their order. Called once for a text."""
        ...

    def embedded(self, target: str) -> Embedded | None:
        """The content of an embedded document; None to show a link instead."""
        ...

    def view(self, language: str, text: str) -> Embedded | None:
        """The tables that a block of code describes; None to show the code instead."""
        ...


class NoLinks:
    """A document of which no link leads anywhere but to the web and to itself."""

    def resolve(self, written: Sequence[WrittenTarget]) -> Sequence[Target]:
        return [
            Target("web", link.target)
            if link.target.startswith(("http://", "https://", "mailto:"))
            else Target("missing", "")
            for link in written
        ]

    def embedded(self, target: str) -> Embedded | None:
        return None

    def view(self, language: str, text: str) -> Embedded | None:
        return None

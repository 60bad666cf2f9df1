"""A document of which a request asks for a view, and the sections that it is cut into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from qmd.parse.lines import split_lines
from qmd.render import LinkResolver
from qmd.server.page.note_text import PART, ShownText, shown_section
from qmd.server.page.views import Visit
from qmd.values import DocumentAnchor, DocumentInfo
from qmd.values.reading import DocumentDetails, DocumentSlice


class TextSection(NamedTuple):
    """
    The lines ``[start, end)`` of a text that are a slide, a message or the like, from 1.

    Attributes:
        number: Of the slide; None for a text that is one message.
    """

    number: int | None
    start: int
    end: int


#: Sections that one view shows one below the other.
MOST_SECTIONS = 50


def sections_of(places: Sequence[DocumentAnchor], lines: int) -> list[TextSection]:
    """The sections of a text of so many lines that begin at places, whose labels are numbers."""
    ends = [*(place.line for place in places[1:]), lines + 1]
    return [
        TextSection(int(place.label), place.line, end)
        for place, end in zip(places, ends, strict=bool(places))
    ]


def batches(text: Sequence[str], sections: Sequence[TextSection]) -> Iterator[list[TextSection]]:
    """The sections, as many together as a view shows. ``text``: all lines."""
    batch: list[TextSection] = []
    size = 0
    for section in sections:
        length = sum(map(len, text[section.start - 1 : section.end - 1]))
        if batch and (size + length > PART or len(batch) == MOST_SECTIONS):
            yield batch
            batch, size = [], 0
        batch.append(section)
        size += length
    yield batch


@dataclass(frozen=True)
class ViewedDocument:
    """
    A document of which a request asks for a view.

    Attributes:
        read: All of it.
        lines: The first and the last line to mark.
    """

    visit: Visit
    read: DocumentSlice
    details: DocumentDetails
    links: LinkResolver
    lines: tuple[int, int] | None

    @property
    def document(self) -> DocumentInfo:
        return self.read.document

    @cached_property
    def text_lines(self) -> Sequence[str]:
        """The lines of its text."""
        return split_lines(self.read.text)

    @cached_property
    def places(self) -> Sequence[DocumentAnchor]:
        """Its pages, slides and the like."""
        return self.visit.kb.places(self.document.file)

    def places_of(self, kind: str) -> Sequence[DocumentAnchor]:
        return [each for each in self.places if each.kind == kind]

    def is_marked_whole(self, section: TextSection) -> bool:
        """Whether the lines to mark are all of a section, which is then shown without marks."""
        lines = self.lines
        return lines is not None and lines[0] <= section.start and section.end - 1 <= lines[1]

    def section(self, section: TextSection) -> ShownText:
        """A section of its text, such as a slide, as HTML; see `shown_section`."""
        return shown_section(
            "\n".join(self.text_lines[section.start - 1 : section.end - 1]),
            self.links,
            lines=None if self.is_marked_whole(section) else self.lines,
            first_line=section.start,
        )

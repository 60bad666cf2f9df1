"""A presentation in the view of a note: its slides one below the other, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qmd.render import RenderedHeading
from qmd.server.page.viewed import ViewedDocument, batches, sections_of


@dataclass(frozen=True, slots=True)
class ShownSlide:
    """
    A slide as the template shows it.

    Attributes:
        heading: What the outline has of it.
        is_focused: Whether the request asks for it.
    """

    number: int
    html: str
    heading: RenderedHeading
    is_focused: bool


@dataclass(frozen=True, slots=True)
class SlidesView:
    """A part of a presentation; ``part`` from 1."""

    slides: Sequence[ShownSlide]
    part: int
    parts: int
    total: int


def slides_view(viewed: ViewedDocument) -> SlidesView | None:
    """The slides that a request asks for; None for a document that has none."""
    places = viewed.places_of("slide")
    if not places:
        return None
    text, lines = viewed.text_lines, viewed.lines
    groups = list(batches(text, sections_of(places, len(text))))
    part = min(viewed.visit.page_number("part"), len(groups))
    if lines is not None:
        part = max(1, sum(group[0].start <= lines[0] for group in groups))
    slides = []
    for section in groups[part - 1]:
        assert section.number is not None
        shown = viewed.section(section)
        title = shown.headings[0].text if shown.headings else ""
        name = f"{section.number}  {title}".strip()
        heading = RenderedHeading(1, name, f"slide={section.number}", section.start)
        is_focused = viewed.is_marked_whole(section)
        slides.append(ShownSlide(section.number, shown.html, heading, is_focused))
    return SlidesView(slides, part, len(groups), len(places))

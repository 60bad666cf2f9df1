"""
Draws a note and its neighbours: on the left those that link to it, on the right its own links.

The names stand in rows, so that all of them can be read, and the rows bend around the note.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from qmd.server.page.links import note_address
from qmd.values.graph import Backlinks, Neighbourhood, NoteLinks
from qmd.values.names import file_stem

MOST_DRAWN = 40
"""Neighbours in the large drawing; the small one has room for `MOST_IN_COLUMN`."""

MOST_IN_COLUMN = 16
MOST_NEAR = 100
"""Notes on the canvas, the one in the middle among them."""

_ROW = 26  # pixels between names
_CHARACTER = 7.4  # pixels of a Latin letter in a wide font; others take twice as much


@dataclass(frozen=True, slots=True)
class Neighbour:
    """
    A document that is linked with another one.

    Attributes:
        count: How many links there are between both.
    """

    file: str
    count: int
    links_here: bool
    is_linked: bool

    @property
    def name(self) -> str:
        return file_stem(self.file)

    @property
    def address(self) -> str:
        return note_address(self.file)


@dataclass(frozen=True, slots=True)
class Node:
    """A neighbour in the drawing; ``edge`` is the path of the line to the note."""

    neighbour: Neighbour
    label: str
    x: float
    y: float
    text_x: float
    is_left: bool
    edge: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """
    What the template draws.

    Attributes:
        left_out: Neighbours that are not drawn.
    """

    width: int
    height: int
    x: float
    y: float
    label: str
    nodes: tuple[Node, ...]
    left_out: int


def neighbours(file: str, links: NoteLinks, backlinks: Backlinks) -> list[Neighbour]:
    """The documents that a note links to, or that link to it: those with most links first."""
    outgoing = _counts(
        each.file for each in links.links if each.state in ("document", "section missing")
    )
    incoming = _counts(each.file for each in backlinks.links)
    linked = [
        Neighbour(
            each, incoming.get(each, 0) + outgoing.get(each, 0), each in incoming, each in outgoing
        )
        for each in incoming | outgoing
        if each != file
    ]
    return sorted(linked, key=lambda each: (-each.count, each.file))


def draw(file: str, around: Sequence[Neighbour], *, width: int, most: int) -> Drawing | None:
    """
    A drawing that is ``width`` pixels wide, with at most ``most`` neighbours; None without any.

    The same links give the same drawing.
    """
    if not around:
        return None
    shown = around[:most]
    left = sorted((each for each in shown if not each.is_linked), key=_by_name)
    right = sorted((each for each in shown if each.is_linked), key=_by_name)
    rows = max(len(left), len(right), 3)
    height = (rows + 1) * _ROW
    middle = (width / 2, height / 2)
    reach = width * 0.17
    room = width / 2 - reach - 14
    nodes = [
        *_side(left, middle, -reach, room, height),
        *_side(right, middle, reach, room, height),
    ]
    label = _cut(file_stem(file), width * 0.5)
    return Drawing(width, height, *middle, label, tuple(nodes), len(around) - len(shown))


def near_notes(near: Neighbourhood, places: Sequence[int]) -> list[dict[str, object]]:
    """Some notes of a neighbourhood, as the script and the list need them."""
    return [
        {
            "name": file_stem(note.file),
            "file": note.file,
            "address": note_address(note.file),
            "steps": note.steps,
        }
        for note in (near.notes[place] for place in places)
    ]


def links_among(near: Neighbourhood, places: Sequence[int]) -> list[tuple[int, int]]:
    """The links among them, by their places in this selection; those in both directions once."""
    numbers = {place: number for number, place in enumerate(places)}
    pairs = {
        (min(numbers[one], numbers[other]), max(numbers[one], numbers[other]))
        for one, other in near.links
        if one in numbers and other in numbers
    }
    return sorted(pairs)


def _side(
    side: Sequence[Neighbour], middle: tuple[float, float], reach: float, room: float, height: float
) -> Iterable[Node]:
    """The nodes of one side, on an arc that is widest at the middle row."""
    x0, y0 = middle
    is_left = reach < 0
    for row, each in enumerate(side):
        y = y0 + (row - (len(side) - 1) / 2) * _ROW
        bend = math.cos((y - y0) / height * math.pi)
        x = x0 + reach * (0.55 + 0.45 * bend)
        text_x = x - 9 if is_left else x + 9
        space = room + abs(reach) - abs(x - x0)
        half = (x0 + x) / 2
        edge = f"M{x0:.0f} {y0:.0f}C{half:.0f} {y0:.0f} {half:.0f} {y:.0f} {x:.0f} {y:.0f}"
        yield Node(each, _cut(each.name, space), round(x), round(y), round(text_x), is_left, edge)


def _cut(name: str, room: float) -> str:
    """A name that takes at most so many pixels; "…" stands for the rest."""
    used = 0.0
    for at, character in enumerate(name):
        used += _CHARACTER * (2 if east_asian_width(character) in "WF" else 1)
        if used > room - _CHARACTER and at < len(name) - 1:
            return f"{name[:at].rstrip()}…"
    return name


def _by_name(neighbour: Neighbour) -> tuple[str, str]:
    return (neighbour.name.casefold(), neighbour.file)


def _counts(files: Iterable[str | None]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in files:
        if file is not None:
            counts[file] = counts.get(file, 0) + 1
    return counts

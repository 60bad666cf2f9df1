"""Find the lines of a heading's section, or of a block, in a document."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import SectionNotFoundError
from qmd.parse.lines import split_lines
from qmd.parse.sections import block, block_ids, heading_path, outline_of, section
from qmd.search import lookup
from qmd.values import DocumentAnchor, DocumentInfo

if TYPE_CHECKING:
    from qmd.store import Reader

#: What names a place of a file, as a `DocumentAnchor` does.
_PLACE = re.compile(r"[a-z]+=.", re.IGNORECASE)
#: A sheet, perhaps with a cell of it; and the piece of a sheet that an anchor names.
_SHEET = re.compile(
    r"(?P<name>sheet=.+?)(?:!\$?[a-z]{1,3}\$?(?P<row>\d{1,7}))?(?::[^!]*)?", re.DOTALL
)
_PIECE = re.compile(r"(?P<name>sheet=.+)![a-z]+(?P<first>\d+):[a-z]+(?P<last>\d+)", re.DOTALL)
#: A place that has a number.
_NUMBERED = re.compile(r"(?P<kind>[a-z]+)=(?P<number>-?\d{1,9})")
#: Characters of a heading that an error repeats.
MAX_SHOWN = 200


class AnchoredLines(NamedTuple):
    """The lines ``[start, end)`` of a section or block, from 1; lines of others of its name."""

    start: int
    end: int
    same_name: tuple[int, ...] = ()


def anchored_lines(reader: Reader, document: DocumentInfo, anchor: str) -> AnchoredLines:
    """
    The lines of a section or block, or of a place of the file.

    Args:
        anchor: ``Heading``, ``Heading#Subheading``, ``^block``, ``Heading#^block`` or ``page=12``.

    Raises:
        SectionNotFoundError: With the nearest headings, blocks or places.
    """
    text = reader.documents.text(document.id)
    if _PLACE.match(anchor) and (places := reader.documents.anchors(document.id)):
        return _lines_of_place(document, anchor, places, len(split_lines(text)))
    headings, mark, block_id = anchor.rpartition("^")
    if mark and (not headings or headings.endswith("#")):
        span = block(text, block_id.strip())
        if span is None:
            blocks = (f"^{each}" for each, _ in block_ids(text))
            raise _not_found(document, f"^{block_id}", blocks)
        return AnchoredLines(span.start_line, span.end_line, span.others)
    path = heading_path(anchor)
    if not path:
        return AnchoredLines(1, len(text) + 1)
    named = section(text, path)
    if named is None:
        texts = (each.heading.text for each in outline_of(text))
        raise _not_found(document, f"#{'#'.join(path)}", (f"#{each}" for each in texts if each))
    return AnchoredLines(named.start_line, named.end_line, named.others)


def _lines_of_place(
    document: DocumentInfo, anchor: str, places: Sequence[DocumentAnchor], lines: int
) -> AnchoredLines:
    folded = anchor.strip().casefold()
    numbers = [n for n, place in enumerate(places) if place.fragment.casefold() == folded]
    if not numbers and (sheet := _SHEET.fullmatch(folded)):
        return _lines_of_sheet(document, anchor, sheet, places, lines)
    numbers = numbers or _places_around(folded, places)
    if not numbers:
        raise _no_place(document, anchor, places)
    behind = numbers[0] + 1
    end = places[behind].line if behind < len(places) else lines + 1
    return AnchoredLines(places[numbers[0]].line, end, tuple(places[n].line for n in numbers[1:]))


def _places_around(anchor: str, places: Sequence[DocumentAnchor]) -> list[int]:
    """The piece of a table with a line of the file, or the page that has a number such as xii."""
    kind, _, label = anchor.partition("=")
    if kind == "line" and (match := _NUMBERED.fullmatch(anchor)):
        line = int(match["number"])
        before = [
            n
            for n, place in enumerate(places)
            if place.kind == kind and place.label.isdecimal() and int(place.label) <= line
        ]
        return before[-1:]
    return [
        n
        for n, place in enumerate(places)
        if place.kind == kind
        and place.shown is not None
        and place.shown.casefold() == label
        and not label.isdecimal()  # this counts from the first page
    ]


def _no_place(
    document: DocumentInfo, anchor: str, places: Sequence[DocumentAnchor]
) -> SectionNotFoundError:
    """The error with the places of the nearest numbers, or of the names most like it."""
    match = _NUMBERED.match(anchor.strip().casefold())
    if match is not None:
        number = int(match["number"])
        far = {
            place.fragment: abs(int(place.label) - number)
            for place in places
            if place.kind == match["kind"] and place.label.isdecimal()
        }
        if far:
            nearest = heapq.nsmallest(
                lookup.similar.SUGGESTIONS, far, key=lambda fragment: far[fragment]
            )
            return SectionNotFoundError(
                document.file, _shortened(f"#{anchor}"), [f"#{each}" for each in nearest]
            )
    return _not_found(document, f"#{anchor}", (f"#{place.fragment}" for place in places))


def _lines_of_sheet(
    document: DocumentInfo,
    anchor: str,
    sheet: re.Match[str],
    places: Sequence[DocumentAnchor],
    lines: int,
) -> AnchoredLines:
    """The lines of a whole sheet, which lies in pieces, or of the piece with a cell's row."""
    row = int(sheet["row"] or 0)
    pieces = [
        number
        for number, place in enumerate(places)
        if (piece := _PIECE.fullmatch(place.fragment.casefold())) is not None
        and piece["name"] == sheet["name"]
        and (not row or int(piece["first"]) <= row <= int(piece["last"]))
    ]
    if not pieces:
        raise _no_place(document, anchor, places)
    behind = pieces[-1] + 1
    end = places[behind].line if behind < len(places) else lines + 1
    return AnchoredLines(places[pieces[0]].line, end)


def _not_found(document: DocumentInfo, anchor: str, anchors: Iterable[str]) -> SectionNotFoundError:
    last = anchor.rpartition("#")[2] if anchor.startswith("#") else anchor
    nearest = lookup.similar.similar_anchors(last, anchors)
    return SectionNotFoundError(document.file, _shortened(anchor), nearest)


def _shortened(anchor: str) -> str:
    return anchor if len(anchor) <= MAX_SHOWN else f"{anchor[:MAX_SHOWN]}…"

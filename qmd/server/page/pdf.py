"""
The pages of a PDF: in the view of a note, each as its picture with the text below it.

``/note/FILE?page=12`` is a page, ``&q=words`` marks words on it, and ``?line=`` marks lines of the
document's text. ``/page-picture/FILE?page=12`` is the picture alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.engine_text import engine_text
from qmd.errors import InputError, NotFoundError
from qmd.files.pictures import WIDTHS
from qmd.parse.formats import PDF, format_of
from qmd.server.page.files import MadePictures
from qmd.server.page.note_text import ShownText, shown_section
from qmd.server.page.site import Site
from qmd.server.page.viewed import ViewedDocument
from qmd.server.page.views import Visit
from qmd.values import DocumentAnchor
from qmd.values.documents import place_of_line
from qmd.values.reading import PdfPage

MAX_PAGE = 1_000_000
_MAX_QUERY = 1_000  # characters of what is marked


@dataclass(frozen=True, slots=True)
class PdfView:
    """
    A page of a PDF as the template shows it.

    Attributes:
        number: From 1, of ``pages``.
        shown: What the file itself calls it, if that differs, such as ``xii``.
        picture: Its size and what is marked; None if it cannot be drawn.
        text: Without marks; they are in the picture.
        query: What is marked, for the links to other pages.
        last_line: The last line of the document's text that is on this page or before it.
    """

    number: int
    pages: int
    shown: str | None
    picture: PdfPage | None
    text: ShownText
    query: str
    last_line: int

    def address(self, number: int) -> str:
        """The address of another page, from here."""
        query = {"page": number, **({"q": self.query} if self.query else {})}
        return f"?{urlencode(query)}"

    @property
    def widths(self) -> tuple[int, ...]:
        return WIDTHS


def pdf_view(viewed: ViewedDocument) -> PdfView:
    """The page of a document that a request asks for: by its number, or by a line on it."""
    visit, lines, file = viewed.visit, viewed.lines, viewed.document.file
    places = viewed.places_of("page")
    number = _page_in_address(visit)
    if number is None and lines is not None:
        place = place_of_line(places, lines[0])
        number = None if place is None else _number(place)
    number = number or 1
    query = visit.query("q").strip()[:_MAX_QUERY]
    on_page = _text_of(viewed.text_lines, places, number)
    picture = _picture(visit, file, number, query, on_page.among(lines))
    pages = picture.pages if picture else max((_number(each) for each in places), default=1)
    if number > pages:
        number = pages
        on_page = _text_of(viewed.text_lines, places, number)
    text = shown_section(
        "\n".join(on_page.lines),
        viewed.links,
        lines=lines if picture is None else None,
        first_line=on_page.first_line,
    )
    return PdfView(
        number,
        pages,
        next((each.shown for each in places if each.label == str(number)), None),
        picture,
        text,
        query,
        on_page.first_line + len(on_page.lines) - 1,
    )


def _page_in_address(visit: Visit) -> int | None:
    """The page that the address names: ``page=12``, or ``at=page=12`` as links have it."""
    written = visit.query("page") or visit.query("at").removeprefix("page=")
    number = visit.number(written)
    return None if number is None else min(max(1, number), MAX_PAGE)


@dataclass(frozen=True, slots=True)
class _PageText:
    """The lines of a page, and the number of the first."""

    first_line: int
    lines: Sequence[str]

    def among(self, lines: tuple[int, int] | None) -> Sequence[str]:
        """Those of the page's lines that are among these lines of the document."""
        if lines is None or lines[1] < self.first_line:
            return ()
        first = max(0, lines[0] - self.first_line)
        return [line for line in self.lines[first : lines[1] - self.first_line + 1] if line.strip()]


def _text_of(lines: Sequence[str], places: Sequence[DocumentAnchor], number: int) -> _PageText:
    """The lines of a page; none, after those of the pages before it, if it has no text."""
    after = bisect_right(places, number, key=_number)
    end = places[after].line - 1 if after < len(places) else len(lines)
    if after and _number(places[after - 1]) == number:
        first = places[after - 1].line
        return _PageText(first, lines[first - 1 : end])
    return _PageText(end + 1, ())


def _picture(
    visit: Visit, file: str, number: int, query: str, lines: Sequence[str]
) -> PdfPage | None:
    try:
        return visit.kb.pdf_page(file, number, query=query, lines=lines)
    except NotFoundError:  # the file was deleted meanwhile
        return None


def _number(place: DocumentAnchor) -> int:
    return int(place.label)


# --- pictures -------------------------------------------------------------------------


def routes(site: Site) -> list[Route]:
    return [site.route("/page-picture/{file:file}", _PagePictures(site).answer, compress=False)]


class _PagePictures(MadePictures):
    async def answer(self, request: Request) -> Response:
        kb, file = self.site.kb, request.path_params["file"]
        if format_of(file) is not PDF:
            raise InputError(engine_text("No PDF: {file}", file=file))
        number = min(max(1, Visit.number(request.query_params.get("page", "1")) or 1), MAX_PAGE)
        width = WIDTHS[1] if request.query_params.get("size") == "large" else WIDTHS[0]
        make = partial(kb.page_picture, file, number, width=width)
        return await self.response(request, file, (number, width), make)

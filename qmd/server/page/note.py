"""The view of one document, at ``/note/COLLECTION/PATH``, and the parts that it loads later."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from qmd.errors import (
    AmbiguousNameError,
    DocumentNotEmbeddedError,
    DocumentNotFoundError,
    InferenceError,
    QmdError,
    SectionNotFoundError,
    VectorIndexMissingError,
)
from qmd.kb import KnowledgeBase
from qmd.parse.formats import CANVAS, format_of, is_photo
from qmd.server.page.links import PageLinks, note_address
from qmd.server.page.neighbourhood import (
    MOST_DRAWN,
    MOST_IN_COLUMN,
    Drawing,
    Neighbour,
    draw,
    neighbours,
)
from qmd.server.page.note_properties import ShownProperty, shown_properties
from qmd.server.page.note_text import (
    ShownText,
    part_with_line,
    parts_of,
    shown_markdown,
    shown_plain,
)
from qmd.server.page.site import Site
from qmd.system.editors import program_link
from qmd.values import DocumentInfo
from qmd.values.graph import Backlinks, NoteLink, NoteLinks, SimilarDocument
from qmd.values.names import NOTE_SUFFIXES, fold
from qmd.values.reading import DocumentDetails, OutlinedHeading

MOST_LINKS = 500
"""Links and backlinks that are read for a note's lists and its graph."""

_LINES = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_BOX = re.compile(r'role="checkbox"[^<>]* data-line=')  # only of a task of the note itself
_COLUMN, _LARGE = 336, 960  # pixels: the width of a drawing beside the text, and of its own page


@dataclass(frozen=True, slots=True)
class NoteView:
    """
    What the template shows of a document.

    Attributes:
        text: The text as HTML; the first heading may be the title.
        has_title: Whether the text shows the title itself.
        outline: All headings of a text that has several parts; else those of ``text`` are shown.
        may_edit: Whether it is a note, and the server may write.
        broken: The links that lead nowhere.
        links_left_out: Links behind `MOST_LINKS`.
    """

    details: DocumentDetails
    context: str | None
    text: ShownText
    is_markdown: bool
    may_edit: bool
    outline: tuple[OutlinedHeading, ...]
    properties: list[ShownProperty]
    neighbours: list[Neighbour]
    backlinks: Backlinks
    broken: list[NoteLink]
    attachments: list[str]
    links_left_out: int
    drawing: Drawing | None

    @property
    def document(self) -> DocumentInfo:
        return self.details.document

    @property
    def has_title(self) -> bool:
        first = next(iter(self.text.headings), None)
        if first is None or first.level != 1:
            return False
        return fold(first.text) == fold(self.document.title)

    @property
    def has_tasks(self) -> bool:
        """Whether the text shows boxes that can be ticked."""
        return self.may_edit and _BOX.search(self.text.html) is not None

    @property
    def top_level(self) -> int:
        """The level of the topmost headings in the outline."""
        levels = [each.level for each in self.outline or self.text.headings]
        return min(levels, default=1)

    @property
    def folders(self) -> list[tuple[str, str]]:
        """The names on the way to the document, each with the folder that it stands for."""
        names = self.document.file.split("/")[:-1]
        return [(name, "/".join(names[: at + 1])) for at, name in enumerate(names)]


def routes(site: Site) -> list[Route]:
    views = _Views(site)
    return [
        site.route("/note/{file:file}", views.note),
        site.route("/graph/{file:file}", views.graph),
        site.route("/part/similar/{file:file}", views.similar),
    ]


class _Views:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def note(self, request: Request) -> Response:
        site, name = self._site, request.path_params["file"]
        lines = lines_of(request.query_params.get("line", ""))
        part = _number(request.query_params.get("part", ""))
        create = "" if site.read_only else site.text(request, "note.create")
        no_section = site.text(request, "note.no_section")
        try:
            view = await site.run(
                request,
                lambda: read_note(
                    site.kb,
                    name,
                    lines,
                    part,
                    may_write=site.may_write_in,
                    create_title=create,
                    no_section_title=no_section,
                ),
            )
        except (DocumentNotFoundError, AmbiguousNameError, SectionNotFoundError) as error:
            return await self._missing(request, name, error)
        if isinstance(view, str):
            return RedirectResponse(_with_query(view, request), 302)
        similar = None
        if "similar" in request.query_params:
            similar = await self._similar(request, view.document.file)
        path = Path(view.details.root, view.document.path)
        line = lines[0] if lines else 1
        return site.page(
            request,
            "note.html",
            view=view,
            lines=lines,
            similar=similar,
            disk_path=str(path),
            editor_link=program_link(site.editor, path, line) if is_local(request) else None,
            obsidian_link=_obsidian_link(view.details, path) if is_local(request) else None,
        )

    async def graph(self, request: Request) -> Response:
        site, name = self._site, request.path_params["file"]

        def read() -> tuple[DocumentInfo, list[Neighbour]]:
            document = site.kb.get(name, max_lines=1).document
            links = site.kb.links(document.file, limit=MOST_LINKS)
            backlinks = site.kb.backlinks(document.file, limit=MOST_LINKS)
            return document, neighbours(document.file, links, backlinks)

        document, around = await site.run(request, read)
        drawing = draw(document.file, around, width=_LARGE, most=MOST_DRAWN)
        return site.page(
            request, "note_graph.html", document=document, neighbours=around, drawing=drawing
        )

    async def similar(self, request: Request) -> Response:
        name = request.path_params["file"]
        similar = await self._similar(request, name)
        return self._site.page(request, "note_similar.html", similar=similar)

    async def _similar(self, request: Request, name: str) -> list[SimilarDocument] | str:
        """Similar documents, or a sentence that says why there are none."""
        site = self._site
        language = site.language(request)
        try:
            similar = await site.run(request, lambda: site.kb.similar(name, limit=8))
        except (VectorIndexMissingError, DocumentNotEmbeddedError):
            return site.texts.text(language, "note.no_vectors")
        except InferenceError as error:
            return site.error_text(request, error)
        return list(similar.documents)

    async def _missing(
        self,
        request: Request,
        name: str,
        error: DocumentNotFoundError | AmbiguousNameError | SectionNotFoundError,
    ) -> Response:
        """A page that lists what the name may mean."""
        site = self._site
        if isinstance(error, AmbiguousNameError):
            candidates = error.candidates[: error.LISTED]
        elif isinstance(error, SectionNotFoundError):
            candidates = (error.file,)
        else:
            candidates = error.suggestions

        def has_history() -> bool:
            if not isinstance(error, DocumentNotFoundError):
                return False
            try:
                return bool(site.kb.revisions.history(name))
            except QmdError:  # no file can have this name
                return False

        return site.page(
            request,
            "note_missing.html",
            http_status=error.http_status if error.http_status != 400 else 300,
            name=name,
            candidates=candidates,
            is_ambiguous=isinstance(error, AmbiguousNameError),
            has_history=await site.run(request, has_history),
        )


def read_note(
    kb: KnowledgeBase,
    name: str,
    lines: tuple[int, int] | None,
    part: int,
    *,
    may_write: Callable[[str], bool],
    create_title: str,
    no_section_title: str,
) -> NoteView | str:
    """
    What the view of a document shows; or the address where it is, if it is elsewhere.

    Args:
        lines: The lines to mark.
        part: The part of a long text to show, unless lines are to be marked.
        may_write: Whether notes of a collection may be changed.

    Raises:
        DocumentNotFoundError, AmbiguousNameError, SectionNotFoundError
    """
    read = kb.get(name)
    document = read.document
    if document.file != name or read.from_line != 1 or is_photo(document.path):
        place = f"?line={read.from_line}" if read.from_line != 1 else ""
        return note_address(document.file) + place
    details = kb.details(document.file)
    page_links = PageLinks(
        kb, document.file, create_title=create_title, no_section_title=no_section_title
    )
    is_canvas = format_of(document.path) is CANVAS
    is_markdown = is_canvas or fold(document.path).endswith(NOTE_SUFFIXES)
    may_edit = is_markdown and not is_canvas and may_write(document.collection)
    if lines is not None:
        part = part_with_line(parts_of(read.text), lines[0])
    if is_markdown:
        shown = shown_markdown(
            read.text,
            page_links,
            lines=lines,
            number=part,
            may_tick=may_edit,
            breaks_lines=kb.breaks_lines(document.collection),
        )
    else:
        shown = shown_plain(read.text, lines=lines, number=part)
    links = kb.links(document.file, limit=MOST_LINKS)
    backlinks = kb.backlinks(document.file, limit=MOST_LINKS)
    around = neighbours(document.file, links, backlinks)
    return NoteView(
        details=details,
        context=read.context,
        text=shown,
        is_markdown=is_markdown,
        may_edit=may_edit,
        outline=kb.outline(document.file).headings if shown.parts > 1 else (),
        properties=shown_properties(details, page_links),
        neighbours=around,
        backlinks=backlinks,
        broken=[each for each in links.links if each.state in ("nothing", "section missing")],
        attachments=_attachments(links),
        links_left_out=links.total - len(links.links),
        drawing=draw(document.file, around, width=_COLUMN, most=MOST_IN_COLUMN),
    )


def _attachments(links: NoteLinks) -> list[str]:
    """The files that a note links to and that are no documents, each once."""
    files = (each.file for each in links.links if each.state == "attachment")
    return list(dict.fromkeys(file for file in files if file is not None))


def lines_of(text: str) -> tuple[int, int] | None:
    """The first and the last line of ``12`` or ``12-20``; None for anything else."""
    match = _LINES.fullmatch(text)
    if match is None:
        return None
    first = int(match[1])
    return first, max(first, int(match[2] or first))


def is_local(request: Request) -> bool:
    """Whether the browser runs on this machine, where links to programs and files work."""
    host = request.client.host if request.client else ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _obsidian_link(details: DocumentDetails, path: Path) -> str | None:
    if not details.is_vault:
        return None
    return f"obsidian://open?path={quote(str(path), safe='', errors='surrogateescape')}"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 8 else 1


def _with_query(address: str, request: Request) -> str:
    """The address with the query of the request, unless it has one of its own."""
    query = request.url.query
    return f"{address}?{query}" if query and "?" not in address else address

"""The view of one document, at ``/note/COLLECTION/PATH``, and the parts that it loads later."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from qmd.errors import (
    AmbiguousNameError,
    DocumentNotEmbeddedError,
    DocumentNotFoundError,
    InferenceError,
    QmdError,
    SectionNotFoundError,
    VectorIndexMissingError,
)
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
from qmd.server.page.views import Answer, PageView, Shown, Visit
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


def _note(visit: Visit) -> Answer:
    site, request = visit.site, visit.request
    lines = lines_of(visit.query("line"))
    try:
        view = _read(visit, lines)
    except (DocumentNotFoundError, AmbiguousNameError, SectionNotFoundError) as error:
        return _missing(visit, error)
    if isinstance(view, Response):
        return view
    path = Path(view.details.root, view.document.path)
    in_editor = in_obsidian = None
    if is_local(request):
        in_editor = program_link(site.editor, path, lines[0] if lines else 1)
        in_obsidian = _obsidian_link(view.details, path)
    values = {
        "view": view,
        "lines": lines,
        "similar": _similar(visit, view.document.file) if visit.query("similar") else None,
        "disk_path": str(path),
        "editor_link": in_editor,
        "obsidian_link": in_obsidian,
    }
    return Shown("note.html", values)


def _graph(visit: Visit) -> Shown:
    document = visit.kb.get(visit.file, max_lines=1).document
    links = visit.kb.links(document.file, limit=MOST_LINKS)
    backlinks = visit.kb.backlinks(document.file, limit=MOST_LINKS)
    around = neighbours(document.file, links, backlinks)
    drawing = draw(document.file, around, width=_LARGE, most=MOST_DRAWN)
    values = {"document": document, "neighbours": around, "drawing": drawing}
    return Shown("note_graph.html", values)


VIEWS = (
    PageView("/note/{file:file}", _note),
    PageView("/graph/{file:file}", _graph),
    PageView(
        "/part/similar/{file:file}",
        lambda visit: Shown("note_similar.html", {"similar": _similar(visit, visit.file)}),
    ),
)


def _similar(visit: Visit, name: str) -> Sequence[SimilarDocument] | str:
    """Similar documents, or a sentence that says why there are none."""
    try:
        return visit.kb.similar(name, limit=8).documents
    except (VectorIndexMissingError, DocumentNotEmbeddedError):
        return visit.text("note.no_vectors")
    except InferenceError as error:
        return visit.site.translated(visit.request, error.with_hint)


def _missing(
    visit: Visit, error: DocumentNotFoundError | AmbiguousNameError | SectionNotFoundError
) -> Shown:
    """A page that lists what the name may mean."""
    has_history = False
    match error:
        case AmbiguousNameError():
            candidates = error.candidates[: error.LISTED]
        case SectionNotFoundError():
            candidates = (error.file,)
        case _:
            candidates = error.suggestions
            with suppress(QmdError):  # no file can have this name
                has_history = bool(visit.kb.revisions.history(visit.file))
    is_ambiguous = isinstance(error, AmbiguousNameError)
    values = {
        "name": visit.file,
        "candidates": candidates,
        "is_ambiguous": is_ambiguous,
        "has_history": has_history,
    }
    return Shown("note_missing.html", values, 300 if is_ambiguous else error.http_status)


def _read(visit: Visit, lines: tuple[int, int] | None) -> NoteView | Response:
    """
    What the view of a document shows; or the way to it, if it is elsewhere.

    Args:
        lines: The lines to mark.

    Raises:
        DocumentNotFoundError, AmbiguousNameError, SectionNotFoundError
    """
    kb = visit.kb
    read = kb.get(visit.file)
    document = read.document
    if document.file != visit.file or read.from_line != 1 or is_photo(document.path):
        query = f"line={read.from_line}" if read.from_line != 1 else visit.request.url.query
        address = note_address(document.file)
        return RedirectResponse(f"{address}?{query}" if query else address, 302)
    details = kb.details(document.file)
    page_links = PageLinks(
        kb,
        document.file,
        create_title="" if visit.site.read_only else visit.text("note.create"),
        no_section_title=visit.text("note.no_section"),
    )
    is_canvas = format_of(document.path) is CANVAS
    is_markdown = is_canvas or fold(document.path).endswith(NOTE_SUFFIXES)
    may_edit = is_markdown and not is_canvas and visit.site.may_write_in(document.collection)
    part = visit.page_number("part")
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

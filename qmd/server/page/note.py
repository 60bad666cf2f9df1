"""The view of one document, at ``/note/COLLECTION/PATH``, and the parts that it loads later."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse

from qmd.errors import (
    AmbiguousNameError,
    DocumentNotEmbeddedError,
    DocumentNotFoundError,
    InferenceError,
    QmdError,
    SectionNotFoundError,
    VectorIndexMissingError,
)
from qmd.parse.formats import (
    format_of,
    is_photo,
    is_shown_as_markdown,
)
from qmd.server.page.links import PageLinks, note_address
from qmd.server.page.neighbourhood import (
    MOST_DRAWN,
    MOST_IN_COLUMN,
    MOST_NEAR,
    draw,
    links_among,
    near_notes,
    neighbours,
)
from qmd.server.page.note_body import shown_body
from qmd.server.page.note_properties import shown_properties
from qmd.server.page.note_text import ShownText
from qmd.server.page.tree import tree, tree_is_wanted
from qmd.server.page.viewed import ViewedDocument
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.system.editors import program_link
from qmd.values.graph import NoteLink, NoteLinks, SimilarDocument
from qmd.values.names import fold
from qmd.values.reading import DocumentDetails, DocumentSlice

MOST_LINKS = 500
"""Links and backlinks that are read for a note's lists and its graph."""

_LINES = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_BOX = re.compile(r'role="checkbox"[^<>]* data-line=')  # only of a task of the note itself
_COLUMN, _LARGE = 336, 960  # pixels: the width of a drawing beside the text, and of its own page


def _note(visit: Visit) -> Answer:
    lines = lines_of(visit.query("line"))
    try:
        read = visit.kb.get(visit.file)
        if place := visit.query("at"):  # such as slide=12
            with suppress(SectionNotFoundError):  # of a page without text, for example
                part = visit.kb.get(f"{visit.file}#{place}")
                lines = part.from_line, max(part.from_line, part.last_line)
    except (DocumentNotFoundError, AmbiguousNameError, SectionNotFoundError) as error:
        return _missing(visit, error)
    document = read.document
    if document.file != visit.file or read.from_line != 1 or is_photo(document.path):
        query = f"line={read.from_line}" if read.from_line != 1 else visit.request.url.query
        elsewhere = note_address(document.file)
        return RedirectResponse(f"{elsewhere}?{query}" if query else elsewhere, 302)
    details = visit.kb.details(document.file)
    path = Path(details.root, document.path)
    in_editor = in_obsidian = None
    if is_local(visit.request):
        in_editor = program_link(visit.site.editor, path, lines[0] if lines else 1)
        in_obsidian = _obsidian_link(details, path)
    values = {
        "view": _view(visit, read, details, lines),
        "lines": lines,
        "similar": _similar(visit, document.file) if visit.query("similar") else None,
        "disk_path": str(path),
        "editor_link": in_editor,
        "tree": tree(visit.kb, document.file),
        "has_tree": tree_is_wanted(visit),
        "obsidian_link": in_obsidian,
    }
    return Shown("note.html", values)


def _graph(visit: Visit) -> Shown:
    document = visit.kb.get(visit.file, max_lines=1).document
    near = visit.kb.neighbourhood(document.file, most=MOST_NEAR)
    tags = sorted({tag for each in near.notes for tag in each.tags}, key=str.casefold)
    chosen = visit.query("tag")
    shown = [
        at for at, each in enumerate(near.notes) if not at or not chosen or chosen in each.tags
    ]
    files = {near.notes[at].file for at in shown}
    links = visit.kb.links(document.file, limit=MOST_LINKS)
    backlinks = visit.kb.backlinks(document.file, limit=MOST_LINKS)
    around = [
        each
        for each in neighbours(document.file, links, backlinks)
        if not chosen or each.file in files
    ]
    values = {
        "document": document,
        "neighbours": around,
        "farther": near_notes(near, [at for at in shown if near.notes[at].steps > 1]),
        "drawing": draw(document.file, around, width=_LARGE, most=MOST_DRAWN),
        "notes": near_notes(near, shown),
        "links": links_among(near, shown),
        "tags": tags,
        "chosen": chosen,
        "left_out": near.left_out,
    }
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


def _view(
    visit: Visit, read: DocumentSlice, details: DocumentDetails, lines: tuple[int, int] | None
) -> dict[str, object]:
    """What the template shows of a document, with the ``lines`` marked."""
    kb, document = visit.kb, read.document
    page_links = PageLinks(
        kb,
        document.file,
        create_title="" if visit.site.read_only else visit.text("note.create"),
        no_section_title=visit.text("note.no_section"),
        translated=lambda sentence: visit.site.translated(visit.request, sentence),
    )
    may_edit = (
        is_shown_as_markdown(document.path)
        and format_of(document.path).is_edited
        and visit.site.may_write_in(document.collection)
    )
    viewed = ViewedDocument(visit, read, details, page_links, lines)
    body = shown_body(viewed, may_tick=may_edit)
    shown = body.text
    links = kb.links(document.file, limit=MOST_LINKS)
    backlinks = kb.backlinks(document.file, limit=MOST_LINKS)
    around = neighbours(document.file, links, backlinks)
    outline = kb.outline(document.file).headings if body.is_part else ()
    names = document.file.split("/")[:-1]
    return {
        "details": details,
        "document": document,
        "folders": [(name, "/".join(names[: at + 1])) for at, name in enumerate(names)],
        "context": read.context,
        "body": body,
        "text": shown,
        "is_converted": not format_of(document.path).is_edited,
        "part_address": "?as=text&part=" if visit.query("as") == "text" else "?part=",
        "has_title": _has_title(shown, document.title),
        "may_edit": may_edit,
        "has_tasks": may_edit and _BOX.search(shown.html) is not None,
        # All headings of a text that is shown in part; else those of the text are shown.
        "outline": outline,
        "current": max(
            (n for n, each in enumerate(outline) if each.line <= body.last_line), default=None
        ),
        "top_level": min((each.level for each in outline or shown.headings), default=1),
        "properties": shown_properties(details, page_links),
        "neighbours": around,
        "backlinks": backlinks,
        "broken": _broken(links),
        "attachments": _attachments(links),
        "links_left_out": links.total - len(links.links),
        "drawing": draw(document.file, around, width=_COLUMN, most=MOST_IN_COLUMN),
    }


def _has_title(shown: ShownText, title: str) -> bool:
    """Whether the text shows the title itself, as its first heading."""
    first = next(iter(shown.headings), None)
    return first is not None and first.level == 1 and fold(first.text) == fold(title)


def _broken(links: NoteLinks) -> list[NoteLink]:
    """The links that lead nowhere."""
    return [each for each in links.links if each.state in ("nothing", "section missing")]


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

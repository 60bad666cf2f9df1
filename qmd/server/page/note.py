"""The view of one document, at ``/note/COLLECTION/PATH``, and the parts that it loads later."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import RedirectResponse

from qmd import errors
from qmd.parse import formats
from qmd.parse.frontmatter import written_numbers
from qmd.parse.lines import split_lines
from qmd.render import RenderedHeading, WrittenTarget
from qmd.server.page import beside, note_text
from qmd.server.page.health import work_of
from qmd.server.page.links import PageLinks, may_be_note, note_address
from qmd.server.page.mail import mail_view
from qmd.server.page.office import sheet_view, slides_view
from qmd.server.page.pdf import pdf_view
from qmd.server.page.viewed import ViewedDocument
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.server.security import is_from_loopback
from qmd.system.editors import program_link
from qmd.values.graph import NoteLink, NoteLinks, SimilarDocument
from qmd.values.reading import DocumentDetails, DocumentSlice
from qmd.values.text import fold

#: Links and backlinks that are read for a note's lists and its graph.
MOST_LINKS = 500

_LINES = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_BOX = re.compile(r'role="checkbox"[^<>]* data-line=')  # only of a task of the note itself
_COLUMN, _LARGE = 336, 960  # pixels: the width of a drawing beside the text, and of its own page


def _note(visit: Visit) -> Answer:
    lines = lines_of(visit.query("line"))
    try:
        read = visit.kb.get(visit.file)
        if place := visit.query("at"):  # such as slide=12
            with suppress(errors.SectionNotFoundError):  # of a page without text, for example
                part = visit.kb.get(f"{visit.file}#{place}")
                lines = part.from_line, max(part.from_line, part.last_line)
    except (
        errors.DocumentNotFoundError,
        errors.AmbiguousNameError,
        errors.SectionNotFoundError,
    ) as error:
        return _missing(visit, error)
    document = read.document
    if document.file != visit.file or read.from_line != 1 or formats.is_photo(document.path):
        query = f"line={read.from_line}" if read.from_line != 1 else visit.request.url.query
        elsewhere = note_address(document.file)
        return RedirectResponse(f"{elsewhere}?{query}" if query else elsewhere, 302)
    details = visit.kb.details(document.file)
    path = Path(details.root, document.path)
    in_editor = in_obsidian = None
    if is_from_loopback(visit.request.scope):  # links to programs work on this machine alone
        in_editor = program_link(visit.site.editor, path, lines[0] if lines else 1)
        in_obsidian = _obsidian_link(details, path)
    values = {
        "view": _view(visit, read, details, lines),
        "lines": lines,
        "similar": _similar(visit, document.file) if visit.query("similar") else None,
        "disk_path": str(path),
        "editor_link": in_editor,
        "tree": beside.tree(visit.kb, document.file),
        "has_tree": beside.tree_is_wanted(visit),
        "obsidian_link": in_obsidian,
    }
    return Shown("note.html", values)


def _graph(visit: Visit) -> Shown:
    document = visit.kb.get(visit.file, max_lines=1).document
    near = visit.kb.neighbourhood(document.file, most=beside.MOST_NEAR)
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
        for each in beside.neighbours(document.file, links, backlinks)
        if not chosen or each.file in files
    ]
    values = {
        "document": document,
        "neighbours": around,
        "farther": beside.near_notes(near, [at for at in shown if near.notes[at].steps > 1]),
        "drawing": beside.draw(document.file, around, width=_LARGE, most=beside.MOST_DRAWN),
        "notes": beside.near_notes(near, shown),
        "links": beside.links_among(near, shown),
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
    except (errors.VectorIndexMissingError, errors.DocumentNotEmbeddedError):
        is_embedding = any(each.kind == "embedding" for each in work_of(visit.site))
        return visit.text("note.vectors_coming" if is_embedding else "note.no_vectors")
    except errors.InferenceError as error:
        return visit.site.translated(visit.request, error.with_hint)


def _missing(
    visit: Visit,
    error: errors.DocumentNotFoundError | errors.AmbiguousNameError | errors.SectionNotFoundError,
) -> Shown:
    """A page that lists what the name may mean."""
    has_history = False
    match error:
        case errors.AmbiguousNameError():
            candidates = error.candidates[: error.LISTED]
        case errors.SectionNotFoundError():
            candidates = (error.file,)
        case _:
            candidates = error.suggestions
            with suppress(errors.QmdError):  # no file can have this name
                has_history = bool(visit.kb.revisions.history(visit.file))
    is_ambiguous = isinstance(error, errors.AmbiguousNameError)
    values = {
        "name": visit.file,
        "candidates": candidates,
        "is_ambiguous": is_ambiguous,
        "may_create": not is_ambiguous and may_be_note(visit.file, is_path=True),
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
        formats.is_shown_as_markdown(document.path)
        and formats.format_of(document.path).is_edited
        and visit.site.may_write_in(document.collection)
    )
    viewed = ViewedDocument(visit, read, details, page_links, lines)
    body = shown_body(viewed, may_tick=may_edit)
    shown = body.text
    links = kb.links(document.file, limit=MOST_LINKS)
    backlinks = kb.backlinks(document.file, limit=MOST_LINKS)
    around = beside.neighbours(document.file, links, backlinks)
    outline = kb.outline(document.file).headings if body.is_part else ()
    names = document.file.split("/")[:-1]
    return {
        "details": details,
        "document": document,
        "folders": [(name, "/".join(names[: at + 1])) for at, name in enumerate(names)],
        "context": read.context,
        "body": body,
        "text": shown,
        "is_converted": not formats.format_of(document.path).is_edited,
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
        "properties": shown_properties(details, page_links, split_lines(read.text)),
        "neighbours": around,
        "backlinks": backlinks,
        "broken": _broken(links),
        "attachments": _attachments(links),
        "links_left_out": links.total - len(links.links),
        "drawing": beside.draw(document.file, around, width=_COLUMN, most=beside.MOST_IN_COLUMN),
    }


def _has_title(shown: note_text.ShownText, title: str) -> bool:
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


def _obsidian_link(details: DocumentDetails, path: Path) -> str | None:
    if not details.is_vault:
        return None
    return f"obsidian://open?path={quote(str(path), safe='', errors='surrogateescape')}"


#: Values of one property that are shown, and properties of one document.
MOST_VALUES = 50

#: Characters of a value that are shown.
MAX_VALUE = 300

#: Characters of a value that leads to a search for it; a longer one is a sentence.
MAX_SEARCHED = 30

#: Characters of a value that may stand in one line with others.
MAX_IN_A_ROW = 12

_SHOWN_ELSEWHERE = frozenset({"tags", "tag", "aliases", "alias", "title"})
_WIKILINK = re.compile(r"\s*\[\[([^\[\]|\n]{1,500})(?:\|([^\[\]\n]{1,500}))?\]\]\s*")


class ShownValue(NamedTuple):
    """
    One value.

    Attributes:
        address: A note, a page of the web, or a search for the value; "" for no link.
        is_web: Whether it leads out of this server.
    """

    text: str
    address: str = ""
    is_web: bool = False


class ShownProperty(NamedTuple):
    """A property; ``left_out`` of its values are not shown."""

    key: str
    values: list[ShownValue]
    left_out: int = 0

    @property
    def is_in_a_row(self) -> bool:
        """Whether the values are short enough to stand in one line."""
        return len(self.values) > 2 and all(len(each.text) <= MAX_IN_A_ROW for each in self.values)


def shown_properties(
    details: DocumentDetails, links: PageLinks, lines: Sequence[str]
) -> list[ShownProperty]:
    """
    The properties but for tags, aliases and the title, which stand elsewhere.

    Args:
        lines: Those of the text; a number is shown as they have it.
    """
    shown = []
    written = {
        (key, value): text for key, value, text in written_numbers(details.properties, lines)
    }
    for key, value in list(details.properties.items())[:MOST_VALUES]:
        if key.casefold() in _SHOWN_ELSEWHERE:
            continue
        values = value if isinstance(value, list) else [] if value is None else [value]
        texts = [
            _shown(key, written.get((key, each), each) if isinstance(each, float) else each)
            for each in values[:MOST_VALUES]
        ]
        shown.append(ShownProperty(key, texts, len(values) - len(texts)))
    return _with_notes(shown, links)


def _shown(key: str, value: object) -> ShownValue:
    if isinstance(value, (bool, int, float)):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return ShownValue(text, _search(key, text))
    if not isinstance(value, str):
        return ShownValue(json.dumps(value, ensure_ascii=False)[:MAX_VALUE])
    text = value if len(value) <= MAX_VALUE else f"{value[:MAX_VALUE]}…"
    if value.startswith(("https://", "http://")) and len(value) < 2_000 and " " not in value:
        return ShownValue(text, value, is_web=True)
    is_searched = len(value) <= MAX_SEARCHED and value.strip()
    return ShownValue(text, _search(key, value) if is_searched else "")


def _search(key: str, value: str) -> str:
    """The address that lists the documents with this value of the property."""
    key = re.sub(r"\s+", "-", key.strip())
    if '"' in value or '"' in key or "\n" in value:
        return ""
    quoted = value if re.fullmatch(r"[\w.-]+", value) else f'"{value}"'
    return f"/?q={quote(f'{key}:{quoted}', safe='')}"


def _with_notes(properties: list[ShownProperty], links: PageLinks) -> list[ShownProperty]:
    """Let values such as ``[[Ann]]`` lead to their notes; all are resolved at once."""
    places = [
        (number, at, match)
        for number, each in enumerate(properties)
        for at, value in enumerate(each.values)
        if (match := _WIKILINK.fullmatch(value.text))
    ]
    targets = links.resolve([WrittenTarget("wikilink", match[1].strip()) for *_, match in places])
    for (number, at, match), target in zip(places, targets, strict=True):
        shown = (match[2] or match[1]).strip()
        properties[number].values[at] = ShownValue(shown, target.address, target.kind == "web")
    return properties


class Body(NamedTuple):
    """
    The middle of a view.

    Attributes:
        template: Shows it; the name of the module that made ``value``.
        text: Its text and headings; of a long one, the part that is shown.
        is_part: Whether there are more headings than those of the text.
        last_line: The last line of the document's text that is shown or stands before that.
        value: What the template shows besides the text.
    """

    template: str
    text: note_text.ShownText
    is_part: bool = False
    last_line: int = 0
    value: object = None

    @property
    def style(self) -> str | None:
        """The style of the template, if it has one of its own."""
        return None if self.value is None else self.template.replace(".html", ".css")


def shown_body(viewed: ViewedDocument, *, may_tick: bool) -> Body:
    """
    The document as its reader expects it: as pages, a table, slides, messages or text.

    Args:
        may_tick: Whether the person may tick tasks.
    """
    file_format = formats.format_of(viewed.document.path)
    if not file_format.is_note and viewed.visit.query("as") != "text":
        if file_format is formats.PDF:
            pdf = pdf_view(viewed)
            return Body("pdf.html", pdf.text, pdf.pages > 1, pdf.last_line, pdf)
        if (sheet := sheet_view(viewed)) is not None:
            return Body("sheet.html", _headings(()), value=sheet)
        if (mail := mail_view(viewed)) is not None:
            headings = [each.heading for each in mail.mails]
            return Body("mail.html", _headings(headings), value=mail)
        if (slides := slides_view(viewed)) is not None:
            headings = [each.heading for each in slides.slides]
            return Body("slides.html", _headings(headings), value=slides)
    shown = _text(viewed, may_tick=may_tick)
    return Body("note_text.html", shown, shown.parts > 1)


def _headings(headings: Sequence[RenderedHeading]) -> note_text.ShownText:
    """What the outline has of a view without one text."""
    return note_text.ShownText("", headings, 1, 1)


def _text(viewed: ViewedDocument, *, may_tick: bool) -> note_text.ShownText:
    text, lines = viewed.read.text, viewed.lines
    part = viewed.visit.page_number("part")
    if lines is not None:
        part = note_text.part_with_line(note_text.parts_of(text), lines[0])
    if not formats.is_shown_as_markdown(viewed.document.path):
        return note_text.shown_plain(text, lines=lines, number=part)
    return note_text.shown_markdown(
        text,
        viewed.links,
        lines=lines,
        number=part,
        may_tick=may_tick,
        breaks_lines=_breaks_lines(viewed),
        is_note=formats.has_signs_in_lines(viewed.document.path),
    )


def _breaks_lines(viewed: ViewedDocument) -> bool:
    """Whether a line end inside a paragraph is shown as one."""
    file_format = formats.format_of(viewed.document.path)
    if file_format.is_note:
        return viewed.visit.kb.breaks_lines(viewed.document.collection)
    return file_format in (formats.PDF, formats.MAIL, formats.SUBTITLES)

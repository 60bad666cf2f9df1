"""What stands in the middle of the view of a document, by the format of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qmd.parse.formats import (
    MAIL,
    PDF,
    SUBTITLES,
    format_of,
    has_signs_in_lines,
    is_shown_as_markdown,
)
from qmd.render import RenderedHeading
from qmd.server.page.mail import mail_view
from qmd.server.page.note_text import (
    ShownText,
    part_with_line,
    parts_of,
    shown_markdown,
    shown_plain,
)
from qmd.server.page.pdf import pdf_view
from qmd.server.page.sheet import sheet_view
from qmd.server.page.slides import slides_view
from qmd.server.page.viewed import ViewedDocument


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
    text: ShownText
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
    file_format = format_of(viewed.document.path)
    if not file_format.is_note and viewed.visit.query("as") != "text":
        if file_format is PDF:
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


def _headings(headings: Sequence[RenderedHeading]) -> ShownText:
    """What the outline has of a view without one text."""
    return ShownText("", headings, 1, 1)


def _text(viewed: ViewedDocument, *, may_tick: bool) -> ShownText:
    text, lines = viewed.read.text, viewed.lines
    part = viewed.visit.page_number("part")
    if lines is not None:
        part = part_with_line(parts_of(text), lines[0])
    if not is_shown_as_markdown(viewed.document.path):
        return shown_plain(text, lines=lines, number=part)
    return shown_markdown(
        text,
        viewed.links,
        lines=lines,
        number=part,
        may_tick=may_tick,
        breaks_lines=_breaks_lines(viewed),
        is_note=has_signs_in_lines(viewed.document.path),
    )


def _breaks_lines(viewed: ViewedDocument) -> bool:
    """Whether a line end inside a paragraph is shown as one."""
    file_format = format_of(viewed.document.path)
    if file_format.is_note:
        return viewed.visit.kb.breaks_lines(viewed.document.collection)
    return file_format in (PDF, MAIL, SUBTITLES)

"""
E-mail in the view of a note: a message with the others of its conversation, or a mailbox.

A mailbox is the list of its conversations; one of them, ``?message=12``, is all its messages, each
with its head and its body.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from qmd.errors import QmdError
from qmd.parse.convert.mail import bare_subject
from qmd.parse.formats import MAIL, format_of
from qmd.parse.heading_text import heading_text
from qmd.parse.lines import split_lines
from qmd.render import LinkResolver, RenderedHeading
from qmd.server.page.links import note_address
from qmd.server.page.note_text import PART, shown_section
from qmd.server.page.views import Visit
from qmd.values import DocumentAnchor, DocumentInfo
from qmd.values.reading import DocumentDetails, DocumentSlice

LISTED = 100
"""Conversations of a mailbox in one view."""

MOST_MESSAGES = 50
"""Messages of a conversation in one view; those of other files that are listed."""

_HEAD = re.compile(r"(From|To|Cc|Date): (.*)")
_HEADING = re.compile(r"(#{1,6}) (.*)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


class MailHead(NamedTuple):
    """The head of a message: its subject, and what stands below that."""

    subject: str
    fields: tuple[tuple[str, str], ...]

    @property
    def sender(self) -> str:
        """The name of who wrote it, else the address."""
        written = dict(self.fields).get("From", "")
        return written.partition(" <")[0].strip('" ') or written

    @property
    def date(self) -> str:
        """``2024-03-05 10:00`` by the sender's clock; as it is written if that is no date."""
        written = dict(self.fields).get("Date", "")
        with suppress(ValueError, TypeError, IndexError, OverflowError):
            return parsedate_to_datetime(written[:200]).strftime("%Y-%m-%d %H:%M")
        return written[:40]


@dataclass(frozen=True, slots=True)
class ShownMail:
    """
    A message as the template shows it.

    Attributes:
        number: In its mailbox, from 1; None for a message that is a file.
        line: At which it begins.
        html: Its body.
        is_focused: Whether the request asks for it.
    """

    number: int | None
    line: int
    head: MailHead
    html: str = ""
    is_focused: bool = False

    @property
    def heading(self) -> RenderedHeading:
        """What the outline has of it."""
        text = " · ".join(filter(None, (self.head.sender, self.head.date)))
        return RenderedHeading(1, text, f"message={self.number}", self.line)


class OtherMail(NamedTuple):
    """A message of the same conversation that is another file, or the one that is shown."""

    subject: str
    sender: str
    date: str
    address: str
    is_shown: bool


class ListedThread(NamedTuple):
    """A conversation of a mailbox: its first message, and how many it has."""

    first: ShownMail
    messages: int


@dataclass(frozen=True, slots=True)
class MailView:
    """
    What the template shows: the conversations of a mailbox, or messages.

    Attributes:
        threads: Of a part of the mailbox; empty where messages are shown.
        mails: Of one conversation; a part of a long one.
        others: The messages of the conversation in all files, by date.
        before, behind: The numbers of the first messages of the conversations beside this one.
        part, parts: Of the list or of the conversation.
        total: How many conversations, or how many messages of this one, there are.
    """

    threads: Sequence[ListedThread] = ()
    mails: Sequence[ShownMail] = ()
    others: Sequence[OtherMail] = ()
    before: int | None = None
    behind: int | None = None
    is_of_box: bool = False
    part: int = 1
    parts: int = 1
    total: int = 0

    @property
    def part_address(self) -> str:
        """The address of another part, but for its number."""
        return f"?message={self.mails[0].number}&part=" if self.mails else "?part="


class _Section(NamedTuple):
    """The lines ``[start, end)`` of a message in the text, from 1."""

    number: int | None
    start: int
    end: int


def mail_view(
    visit: Visit,
    read: DocumentSlice,
    details: DocumentDetails,
    links: LinkResolver,
    lines: tuple[int, int] | None,
) -> MailView | None:
    """
    What a request asks for of a file with messages; None for another file.

    Args:
        read: The whole document.
        lines: The first and the last line to mark.
    """
    if format_of(read.document.path) is not MAIL:
        return None
    text = split_lines(read.text)
    places = [each for each in visit.kb.places(read.document.file) if each.kind == "message"]
    if not places:
        section = _Section(None, 1, len(text) + 1)
        mail = _with_body(_mail(text, section), text, section, links, lines)
        return MailView(mails=[mail], others=_conversation(visit, read.document, details), total=1)
    threads = _threads(text, places)
    number = visit.number(visit.query("message"))
    line = None if lines is None else lines[0]
    if number is None and line is None and len(threads) > 1:
        return _list(visit, text, threads)
    return _thread(visit, text, threads, links, lines, number)


def _list(visit: Visit, text: Sequence[str], threads: Sequence[Sequence[_Section]]) -> MailView:
    parts = -(-len(threads) // LISTED)
    part = min(visit.page_number("part"), parts)
    listed = [
        ListedThread(_mail(text, thread[0]), len(thread))
        for thread in threads[(part - 1) * LISTED : part * LISTED]
    ]
    return MailView(threads=listed, is_of_box=True, part=part, parts=parts, total=len(threads))


def _thread(
    visit: Visit,
    text: Sequence[str],
    threads: Sequence[Sequence[_Section]],
    links: LinkResolver,
    lines: tuple[int, int] | None,
    number: int | None,
) -> MailView:
    """The conversation with a message, or with a line."""
    if number is None and lines is not None:
        starts = [section.start for thread in threads for section in thread]
        at = max(0, bisect_right(starts, lines[0]) - 1)
        number = [section.number for thread in threads for section in thread][at]
    chosen = next(
        (n for n, thread in enumerate(threads) if any(each.number == number for each in thread)), 0
    )
    batches = list(_batches(text, threads[chosen]))
    holding = next(
        (n for n, batch in enumerate(batches) if any(each.number == number for each in batch)), 0
    )
    part = min(visit.page_number("part"), len(batches)) if visit.query("part") else holding + 1
    mails = []
    for section in batches[part - 1]:
        mail = _with_body(_mail(text, section), text, section, links, lines)
        mails.append(replace(mail, is_focused=section.number == number))
    return MailView(
        mails=mails,
        before=threads[chosen - 1][0].number if chosen else None,
        behind=threads[chosen + 1][0].number if chosen + 1 < len(threads) else None,
        is_of_box=True,
        part=part,
        parts=len(batches),
        total=len(threads[chosen]),
    )


def _threads(text: Sequence[str], places: Sequence[DocumentAnchor]) -> list[list[_Section]]:
    """The messages of a mailbox by conversation: answers have deeper headings than the first."""
    threads: list[list[_Section]] = []
    for at, place in enumerate(places):
        end = places[at + 1].line if at + 1 < len(places) else len(text) + 1
        section = _Section(int(place.label), place.line, end)
        if threads and text[place.line - 1].startswith("### "):
            threads[-1].append(section)
        else:
            threads.append([section])
    return threads


def _batches(text: Sequence[str], sections: Sequence[_Section]) -> Iterator[list[_Section]]:
    """The messages of a conversation, as many together as a view shows."""
    batch: list[_Section] = []
    size = 0
    for section in sections:
        length = sum(map(len, text[section.start - 1 : section.end - 1]))
        if batch and (size + length > PART or len(batch) == MOST_MESSAGES):
            yield batch
            batch, size = [], 0
        batch.append(section)
        size += length
    yield batch


def _mail(text: Sequence[str], section: _Section) -> ShownMail:
    """A message without its body."""
    heading = _HEADING.fullmatch(text[section.start - 1]) if section.start <= len(text) else None
    subject = heading_text(heading[2]) if heading else ""
    fields = []
    for line in text[_head_start(text, section) - 1 : section.end - 1]:
        field = _HEAD.fullmatch(line)
        if field is None:
            break
        fields.append((field[1], _ESCAPED.sub(r"\1", field[2])))
    return ShownMail(section.number, section.start, MailHead(subject, tuple(fields)))


def _with_body(
    mail: ShownMail,
    text: Sequence[str],
    section: _Section,
    links: LinkResolver,
    lines: tuple[int, int] | None,
) -> ShownMail:
    start = _head_start(text, section) + len(mail.head.fields)
    is_whole = lines is not None and lines[0] <= section.start and section.end - 1 <= lines[1]
    shown = shown_section(
        "\n".join(text[start - 1 : section.end - 1]),
        links,
        lines=None if is_whole else lines,
        first_line=start,
    )
    return replace(mail, html=shown.html)


def _head_start(text: Sequence[str], section: _Section) -> int:
    """The line below the subject; the first one of a message whose subject is no heading."""
    line = section.start
    if line < section.end and _HEADING.fullmatch(text[line - 1]):
        line += 1
    while line < section.end and not text[line - 1].strip():
        line += 1
    return line


# --- conversations of files -----------------------------------------------------------


def _conversation(
    visit: Visit, document: DocumentInfo, details: DocumentDetails
) -> Sequence[OtherMail]:
    """The messages of the same conversation that are files, by date; none if there is one."""
    subject = bare_subject(document.title)
    threads = dict.fromkeys(filter(None, (_value(details, "thread"), subject)))
    documents = {document.file: document}
    for thread in threads:
        if '"' not in thread:
            condition = f'thread:="{thread}"'
            for each in visit.kb.documents(
                properties=[condition], sort="date", limit=MOST_MESSAGES
            ):
                documents.setdefault(each.file, each)
    for file, title in visit.kb.titles_beginning(subject, limit=MOST_MESSAGES):
        if _value(details, "thread") == subject and title.casefold() == subject:
            with suppress(QmdError):  # deleted meanwhile
                documents.setdefault(file, visit.kb.get(file, max_lines=1).document)
    if len(documents) == 1:
        return ()
    return sorted(_others(visit, document, documents.values()), key=lambda each: each.date)


def _others(
    visit: Visit, shown: DocumentInfo, documents: Iterable[DocumentInfo]
) -> Iterator[OtherMail]:
    for document in documents:
        if format_of(document.path) is MAIL:
            with suppress(QmdError):  # deleted meanwhile
                details = visit.kb.details(document.file)
                yield OtherMail(
                    document.title,
                    _value(details, "from"),
                    (details.date or "").replace("T", " ")[:16],
                    note_address(document.file),
                    document.file == shown.file,
                )


def _value(details: DocumentDetails, key: str) -> str:
    """The first value of a property; "" without one."""
    value = details.properties.get(key)
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, str) else ""

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
from qmd.render import RenderedHeading
from qmd.server.page.links import note_address
from qmd.server.page.viewed import TextSection, ViewedDocument, batches, sections_of
from qmd.server.page.views import Visit
from qmd.values import DocumentAnchor, DocumentInfo
from qmd.values.reading import DocumentDetails

#: Conversations of a mailbox in one view.
LISTED = 100

#: Messages of a conversation that are files and are listed.
MOST_FILES = 50

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
        before, after: The numbers of the first messages of the conversations beside this one.
        part, parts: Of the list or of the conversation.
        total: How many conversations, or how many messages of this one, there are.
    """

    threads: Sequence[ListedThread] = ()
    mails: Sequence[ShownMail] = ()
    others: Sequence[OtherMail] = ()
    before: int | None = None
    after: int | None = None
    is_of_box: bool = False
    part: int = 1
    parts: int = 1
    total: int = 0

    @property
    def part_address(self) -> str:
        """The address of another part, but for its number."""
        return f"?message={self.mails[0].number}&part=" if self.mails else "?part="


def mail_view(viewed: ViewedDocument) -> MailView | None:
    """What a request asks for of a file with messages; None for another file."""
    if format_of(viewed.document.path) is not MAIL:
        return None
    visit, text, lines = viewed.visit, viewed.text_lines, viewed.lines
    places = viewed.places_of("message")
    if not places:
        mail = _with_body(viewed, TextSection(None, 1, len(text) + 1))
        return MailView(mails=[mail], others=_conversation(viewed), total=1)
    threads = _threads(text, places)
    number = visit.number(visit.query("message"))
    if number is None and lines is None and len(threads) > 1:
        return _list(visit, text, threads)
    return _thread(viewed, threads, number)


def _list(visit: Visit, text: Sequence[str], threads: Sequence[Sequence[TextSection]]) -> MailView:
    parts = -(-len(threads) // LISTED)
    part = min(visit.page_number("part"), parts)
    listed = [
        ListedThread(_mail(text, thread[0]), len(thread))
        for thread in threads[(part - 1) * LISTED : part * LISTED]
    ]
    return MailView(threads=listed, is_of_box=True, part=part, parts=parts, total=len(threads))


def _thread(
    viewed: ViewedDocument, threads: Sequence[Sequence[TextSection]], number: int | None
) -> MailView:
    """The conversation with a message, or with a line."""
    visit, text, lines = viewed.visit, viewed.text_lines, viewed.lines
    if number is None and lines is not None:
        sections = [section for thread in threads for section in thread]
        at = bisect_right(sections, lines[0], key=lambda section: section.start)
        number = sections[max(0, at - 1)].number
    chosen = _with_number(threads, number)
    groups = list(batches(text, threads[chosen]))
    part = _with_number(groups, number) + 1
    if visit.query("part"):
        part = min(visit.page_number("part"), len(groups))
    mails = []
    for section in groups[part - 1]:
        mail = _with_body(viewed, section)
        mails.append(replace(mail, is_focused=section.number == number))
    return MailView(
        mails=mails,
        before=threads[chosen - 1][0].number if chosen else None,
        after=threads[chosen + 1][0].number if chosen + 1 < len(threads) else None,
        is_of_box=True,
        part=part,
        parts=len(groups),
        total=len(threads[chosen]),
    )


def _with_number(groups: Sequence[Sequence[TextSection]], number: int | None) -> int:
    """Which of some groups of messages, from 0, has that with a number; the first if none has."""
    holding = (
        at for at, group in enumerate(groups) if any(each.number == number for each in group)
    )
    return next(holding, 0)


def _threads(text: Sequence[str], places: Sequence[DocumentAnchor]) -> list[list[TextSection]]:
    """The messages of a mailbox by conversation: answers have deeper headings than the first."""
    threads: list[list[TextSection]] = []
    for section in sections_of(places, len(text)):
        if threads and text[section.start - 1].startswith("### "):
            threads[-1].append(section)
        else:
            threads.append([section])
    return threads


def _mail(text: Sequence[str], section: TextSection) -> ShownMail:
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


def _with_body(viewed: ViewedDocument, section: TextSection) -> ShownMail:
    mail = _mail(viewed.text_lines, section)
    lines = viewed.lines
    if viewed.is_marked_whole(section):
        lines = None
    start = _head_start(viewed.text_lines, section) + len(mail.head.fields)
    body = replace(viewed, lines=lines).section(section._replace(start=start))
    return replace(mail, html=body.html)


def _head_start(text: Sequence[str], section: TextSection) -> int:
    """The line below the subject; the first one of a message whose subject is no heading."""
    line = section.start
    if line < section.end and _HEADING.fullmatch(text[line - 1]):
        line += 1
    while line < section.end and not text[line - 1].strip():
        line += 1
    return line


# --- conversations of files -----------------------------------------------------------


def _conversation(viewed: ViewedDocument) -> Sequence[OtherMail]:
    """The messages of the same conversation that are files, by date; none if there is one."""
    visit, document, details = viewed.visit, viewed.document, viewed.details
    subject = bare_subject(document.title)
    threads = dict.fromkeys(filter(None, (_value(details, "thread"), subject)))
    documents = {document.file: document}
    for thread in threads:
        if '"' not in thread:
            condition = f'thread:="{thread}"'
            for each in visit.kb.documents(properties=[condition], sort="date", limit=MOST_FILES):
                documents.setdefault(each.file, each)
    for file, title in visit.kb.titles_beginning(subject, limit=MOST_FILES):
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

"""
Turns e-mail (RFC 5322, and mailboxes of it) into Markdown.

A message is its subject as a heading, who wrote it to whom and when, its text, and the names of its
attachments. In a mailbox each message is an anchor, and messages of one conversation follow each
other, the answers with headings below that of the first. A message alone has the property
``thread``, which is the same for all messages of a conversation. Attachments are not read, but for
messages that a message forwards.
"""

from __future__ import annotations

import binascii
import email
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from email import policy
from email.errors import HeaderParseError, MessageError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from itertools import islice
from typing import NamedTuple

from qmd.errors import DamagedFileError
from qmd.parse.convert.blocks import Blocks, inert
from qmd.parse.convert.html import html_text, html_tree
from qmd.parse.convert.html_blocks import ElementWriter
from qmd.parse.converted import Converted
from qmd.parse.decode import text_if_any

#: Messages of a mailbox, parts of a message, and messages inside each other that are read.
MAX_MESSAGES = 50_000
MAX_PARTS = 1000
MAX_DEPTH = 10
#: Boundaries that a message may name: each line is compared with those of all parts around it.
MAX_BOUNDARIES = 200
#: Characters of a header that are read.
MAX_HEADER = 5000
_MAX_SOURCE = 4 * MAX_HEADER  # with what encodes them
#: Below this share of the HTML's text, the plain text of a message only points to the HTML.
_SHORT_SHARE = 0.2
#: So does one with fewer of its words in the HTML, of which it should be another form, or of the
#: words of the HTML in it.
_COMMON_SHARE = 0.5
_WORD = re.compile(r"[a-z0-9]+|[^\x00-\x7f\W]")
_ADDRESS = re.compile(r"\w+://\S+")
#: Events of an invitation, and characters of it, that are read.
MAX_EVENTS = 50
_MAX_CALENDAR = 200_000
#: A property with its parameters; in quotes a colon belongs to a parameter.
_PROPERTY = re.compile(r'([^":]*(?:"[^"]*"[^":]*)*):')
_ESCAPED = re.compile(r"\\([\\;,nN])")
_UNITS = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
_DAYS = {"MO": "Mon", "TU": "Tue", "WE": "Wed", "TH": "Thu", "FR": "Fri", "SA": "Sat", "SU": "Sun"}
_DAY_OF_RULE = re.compile(r"\+?(-?\d{0,2})([A-Z]{2})")
_DURATION = re.compile(
    r"\+?P(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,7})S)?)?"
)
_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d*(Z?))?")

_FROM_LINE = re.compile(rb"^From [^\r\n]*\r?\n", re.MULTILINE)
_HEADER_LINE = re.compile(rb"[!-9;-~]{1,100}:")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_ID = re.compile(r"<([^<>\s]{1,300})>")
_ENCODED = re.compile(r"=\?[^?\s]{1,60}\?[bBqQ]\?[^?\s]*\?=")
#: A file name with bytes that are not ASCII, as some programs write it.
_UNENCODED_NAME = re.compile('name="([^";]{0,300}[\udc80-\udcff][^";]{0,300})"')
_REPLY = re.compile(
    r"^(?:\s*(?:re|fwd?|aw|wg|sv|回复|答复|转发)\s*(?:\[\d{1,3}\])?\s*[:：])+\s*", re.IGNORECASE
)


class _ShortHeaders(policy.Compat32):
    """Cuts headers: the standard library takes a time that grows with the square of parameters."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_SOURCE]


class _Mail(NamedTuple):
    number: int
    message: Message
    subject: str


def convert(path: str, data: bytes) -> Converted:
    """
    A message, or all messages of a mailbox.

    Raises:
        DamagedFileError: The file holds no message.
    """
    if data.startswith(b"From ") or path.lower().endswith((".mbox", ".mbx")):
        return _convert_mailbox(data)
    message = _parsed(data)
    if not message.keys():
        raise DamagedFileError(
            "The file is no message: it does not begin with headers such as 'Subject:'.",
            hint="Give the file the suffix of the format it is in, or leave it out.",
        )
    blocks = Blocks()
    _write(blocks, message, level=1)
    return blocks.converted(
        title=_header(message, "Subject"),
        date=_date(message),
        properties={
            "from": _names(message, "From"),
            "to": _names(message, "To"),
            "cc": _names(message, "Cc"),
            "thread": _thread(message),
        },
    )


def _convert_mailbox(data: bytes) -> Converted:
    blocks = Blocks()
    mails: list[_Mail] = []
    for number, source in enumerate(_sources(data), start=1):
        if number > MAX_MESSAGES:
            blocks.warnings.append(f"The mailbox has over {MAX_MESSAGES:,} messages.")
            break
        message = _parsed(source)
        mails.append(_Mail(number, message, _header(message, "Subject")))
    if data.strip() and not any(mail.message.keys() for mail in mails):
        raise DamagedFileError(
            "The file is no mailbox: it holds no message.",
            hint="Give the file the suffix of the format it is in, or leave it out.",
        )
    dates = [date for mail in mails if (date := _date(mail.message))]
    for mail, is_first in _by_conversation(mails):
        blocks.anchor("message", str(mail.number))
        _write(blocks, mail.message, level=2 if is_first else 3)
    return blocks.converted(date=max(dates, default=None))


def _sources(data: bytes) -> Iterator[bytes]:
    """The bytes of each message of a mailbox."""
    begin: int | None = None
    at = 0
    while match := _FROM_LINE.search(data, at):
        at = match.end()
        is_first = begin is None
        before = data[max(0, match.start() - 3) : match.start()]
        after_blank = before.endswith((b"\n\n", b"\n\r\n"))
        if not is_first and not (after_blank and _HEADER_LINE.match(data, at)):
            continue  # a line of a message that begins with "From "
        if begin is not None:
            yield _QUOTED_FROM.sub(rb"\1", data[begin : match.start()])
        begin = at
    if data.strip():
        yield _QUOTED_FROM.sub(rb"\1", data[begin or 0 :])


def _by_conversation(mails: list[_Mail]) -> list[tuple[_Mail, bool]]:
    """
    The messages, those of a conversation after its first one, in the order of the mailbox.

    Of each whether it is the first of its conversation.
    """
    by_id: dict[str, int] = {}
    by_subject: dict[str, int] = {}
    first_of: list[int] = []
    for index, mail in enumerate(mails):
        headers = _earlier(mail.message)
        known_first = next((by_id[each] for each in _ID.findall(headers) if each in by_id), None)
        subject = bare_subject(mail.subject)
        if known_first is None and subject and _REPLY.match(mail.subject):
            known_first = by_subject.get(subject)
        first = index if known_first is None else known_first
        first_of.append(first)
        by_subject.setdefault(subject, first)
        for each in _ID.findall(f"{_header(mail.message, 'Message-ID')} {headers}"):
            by_id.setdefault(each, first)
    order = sorted(range(len(mails)), key=lambda index: (first_of[index], index))
    return [(mails[index], first_of[index] == index) for index in order]


def _earlier(message: Message) -> str:
    """The headers that name the messages before one."""
    return f"{_header(message, 'References')} {_header(message, 'In-Reply-To')}"


def _thread(message: Message) -> str:
    """
    What the messages of a conversation have in common: the id of the first, without brackets.

    The subject of an answer that names no other message; "" for a message without an id.
    """
    subject = _header(message, "Subject")
    earlier = _ID.search(_earlier(message))
    if earlier is None and _REPLY.match(subject):
        return bare_subject(subject)
    id_ = earlier or _ID.search(_header(message, "Message-ID"))
    return "" if id_ is None else id_[1]


def bare_subject(subject: str) -> str:
    """A subject as answers to it have it, too: folded, without ``Re:`` and the like."""
    return " ".join(_REPLY.sub("", subject).split()).casefold()


def _parsed(data: bytes) -> Message:
    try:
        if data.count(b"boundary=") <= MAX_BOUNDARIES:
            return email.message_from_bytes(data, policy=_ShortHeaders())
    except RecursionError:
        pass
    raise DamagedFileError(
        "The message has too many parts inside parts.",
        hint="Save its text or its attachments as files of their own.",
    )


def _write(blocks: Blocks, message: Message, level: int, depth: int = 0) -> None:
    blocks.heading(level, _header(message, "Subject") or "(no subject)")
    lines = []
    for name in ("From", "To", "Cc", "Date"):
        value = _header(message, name)
        if name != "Date":
            value = ", ".join(_addresses(message, name)) or value
        if value:
            lines.append(f"{name}: {inert(value)}")
    blocks.markdown("\n".join(lines))
    parts = _Parts(message)
    _write_body(blocks, parts)
    if parts.attached:
        names = "\n".join(f"- {inert(name)}" for name in parts.attached[:100])
        blocks.markdown(f"Attachments:\n\n{names}")
    for each in parts.forwarded if depth < MAX_DEPTH else ():
        _write(blocks, each, min(6, level + 1), depth + 1)


class _Parts:
    """
    The texts of a message, the names of what is attached, and the messages that it forwards.

    Attributes:
        are_alternatives: The texts are forms of one text.
    """

    def __init__(self, message: Message) -> None:
        self.plain: list[Message] = []
        self.html: list[Message] = []
        self.calendars: list[Message] = []
        self.attached: list[str] = []
        self.forwarded: list[Message] = []
        containers: set[int] = set()
        for part, alternative in islice(_parts(message), MAX_PARTS):
            if self._add(part):
                containers.add(alternative)
        self.are_alternatives = len(containers) == 1 and 0 not in containers

    def _add(self, part: Message) -> bool:
        """Add a part; True for a text of the message."""
        kind = part.get_content_type()
        name = _file_name(part)
        is_named = bool(name) and not (kind == "text/plain" and _is_shown_as(part, "inline"))
        if kind == "text/calendar" and not _is_shown_as(part, "attachment"):
            self.calendars.append(part)
            if is_named:
                self.attached.append(name)
        elif kind == "message/rfc822":
            self.forwarded += _inner(part)
        elif part.get_content_maintype() != "text" or _is_shown_as(part, "attachment") or is_named:
            self.attached.append(name or kind)
        elif kind in ("text/html", "text/plain"):
            (self.html if kind == "text/html" else self.plain).append(part)
            return True
        return False


def _write_body(blocks: Blocks, parts: _Parts) -> None:
    """The plain text of a message; its HTML where that says more."""
    texts = [text for text in map(_text, parts.plain) if text.strip()]
    pages = Blocks()
    for part in parts.html:
        root, _ = html_tree(html_text(_payload(part), part.get_content_charset("") or ""))
        body = None if root is None else root.find("body")
        if body is not None:
            ElementWriter(pages, only_web=True).write(body)
    page = pages.converted().markdown
    length = sum(map(len, texts))
    is_stub = parts.are_alternatives and length < len(page) and _differ(" ".join(texts), page)
    if page and (length < _SHORT_SHARE * len(page) or is_stub):
        blocks.markdown(page)
    else:
        for text in texts:
            blocks.paragraph(_without_signature_mark(text))
    for part in parts.calendars:
        for event in islice(_events(_text(part)), MAX_EVENTS):
            blocks.paragraph(event)


def _differ(text: str, page: str) -> bool:
    """Whether few words of a text are on a page, or few of the page in the text."""
    words, shown = (set(_WORD.findall(_ADDRESS.sub(" ", each).casefold())) for each in (text, page))
    return len(words & shown) < _COMMON_SHARE * max(len(words), len(shown))


def _events(calendar: str) -> Iterator[str]:
    """What the events of an invitation (RFC 5545) are, where and when."""
    lines = re.sub(r"\r?\n[ \t]", "", calendar[:_MAX_CALENDAR]).splitlines()
    opened: list[str] = []  # an alarm in an event has a description of its own
    event: dict[str, tuple[str, str]] = {}
    for line in lines:
        head = _PROPERTY.match(line)
        if head is None:
            continue
        value = line[head.end() :]
        name, _, parameters = head[1].partition(";")
        name = name.strip().upper()
        if name == "BEGIN":
            opened.append(value.strip().upper())
        elif name == "END":
            if opened and opened.pop() == "VEVENT":
                yield _event(event)
                event = {}
        elif opened[-1:] == ["VEVENT"]:
            event.setdefault(name, (parameters, _ESCAPED.sub(_unescaped, value).strip()))


def _event(event: dict[str, tuple[str, str]]) -> str:
    """The lines about an event, from its properties with their parameters."""
    _, summary = event.get("SUMMARY", ("", ""))
    times = _times(event)
    lines = [f"Event: {summary or '(no title)'}", f"When: {' – '.join(times)}" if times else ""]
    lines += [f"Repeats: {repeats}" if (repeats := _recurrence(event)) else ""]
    lines += [f"Where: {event['LOCATION'][1]}" if event.get("LOCATION", ("", ""))[1] else ""]
    text = "\n".join(filter(None, lines))
    return f"{text}\n\n{event.get('DESCRIPTION', ('', ''))[1]}".strip()


def _recurrence(event: dict[str, tuple[str, str]]) -> str:
    """When an event repeats, as people read it: ``every 2 weeks on Mon, Wed, until 2026-12-31``."""
    fields = (part.partition("=") for part in event.get("RRULE", ("", ""))[1].upper().split(";"))
    rule = {name: value for name, _, value in fields}
    unit = _UNITS.get(rule.get("FREQ", ""))
    if unit is None:
        return ""
    interval = rule.get("INTERVAL", "1")[:4]
    text = f"every {unit}" if interval == "1" else f"every {interval} {unit}s"
    days = [_DAY_OF_RULE.fullmatch(day) for day in rule.get("BYDAY", "").split(",")[:31]]
    names = [f"{_place(day[1])}{_DAYS[day[2]]}" for day in days if day and day[2] in _DAYS]
    if rule.get("BYMONTHDAY"):
        names.append(f"day {rule['BYMONTHDAY'][:90].replace(',', ', ')}")
    text += f" on {', '.join(names)}" if names else ""
    if rule.get("COUNT"):
        return f"{text}, {rule['COUNT'][:6]} times"
    until = rule.get("UNTIL")
    return f"{text}, until {_moment('', until)}" if until else text


def _place(number: str) -> str:
    """Which of the days of a month or a year: ``2`` → ``2. ``, ``-1`` → ``last ``."""
    if not number:
        return ""
    if number.startswith("-"):
        return "last " if number == "-1" else f"{number[1:]}. last "
    return f"{number}. "


def _times(event: dict[str, tuple[str, str]]) -> list[str]:
    """When an event begins and, if that is another moment, when it ends."""
    zone, begin = event.get("DTSTART", ("", ""))
    end_zone, end = event.get("DTEND", (zone, ""))
    duration = _DURATION.fullmatch(event.get("DURATION", ("", ""))[1])
    if not end and duration is not None:
        weeks, days, hours, minutes, seconds = (int(each or 0) for each in duration.groups())
        time = timedelta(days, seconds, minutes=minutes, hours=hours, weeks=weeks)
        end = _later(begin, time)
    if end and "T" not in end:  # the day after the last one
        end = max(begin, _later(end, timedelta(days=-1)))
    times = _moment(zone, begin), _moment(end_zone, end)
    return list(dict.fromkeys(filter(None, times)))


def _later(moment: str, time: timedelta) -> str:
    """A moment of a calendar so much later; the same if it is none."""
    form = "%Y%m%d" if "T" not in moment else "%Y%m%dT%H%M%S"
    zone = "Z" if moment.endswith("Z") else ""
    try:
        return f"{datetime.strptime(moment.removesuffix('Z'), form) + time:{form}}{zone}"
    except (ValueError, OverflowError):
        return moment


def _moment(parameters: str, value: str) -> str:
    """A time of a calendar as people read it, with the zone that it is in."""
    match = _MOMENT.fullmatch(value)
    if match is None:
        return value[:40]
    day = "-".join(match.group(1, 2, 3))
    if match[4] is None:
        return day
    zone = re.search(r"TZID=\"?([^;\"]{1,60})", parameters, re.IGNORECASE)
    shown = " UTC" if match[6] else f" ({zone[1]})" if zone else ""
    return f"{day} {match[4]}:{match[5]}{shown}"


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] in "nN" else match[1]


def _parts(message: Message) -> Iterator[tuple[Message, int]]:
    """
    The parts of a message that are no containers; those of forwarded messages left out.

    The number of each is that of the nearest container of alternatives around it, or 0.
    """
    stack = [(message, 0)]
    containers = 0
    while stack:
        part, alternative = stack.pop()
        payload = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(payload, list):
            if part.get_content_subtype() == "alternative":
                alternative = containers = containers + 1
            stack += (
                (each, alternative) for each in reversed(payload) if isinstance(each, Message)
            )
        else:
            yield part, alternative


def _inner(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, Message)] if part.is_multipart() else []


def _payload(part: Message) -> bytes:
    try:
        payload = part.get_payload(decode=True)
    except (ValueError, MessageError, binascii.Error):
        return b""
    return payload if isinstance(payload, bytes) else b""


def _text(part: Message) -> str:
    data = _payload(part)
    try:
        return data.decode(part.get_content_charset("utf-8")).replace("\0", "\ufffd")
    except (LookupError, UnicodeError, ValueError):
        return text_if_any(data) or ""


def _without_signature_mark(text: str) -> str:
    """Plain text without the signature's separator and with one kind of line ends."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"(?m)^-- $", "", text).strip("\n")


def _is_shown_as(part: Message, disposition: str) -> bool:
    """Whether the sender wants a part to be shown so: "attachment", or "inline" as text is."""
    return str(part.get("Content-Disposition") or "").lower().lstrip().startswith(disposition)


def _file_name(part: Message) -> str:
    raw = "; ".join((*_raw(part, "Content-Disposition"), *_raw(part, "Content-Type")))
    unencoded = _UNENCODED_NAME.search(raw)
    if unencoded is not None:
        return " ".join(_decoded_words(unencoded[1]).split())[:300]
    try:
        name = part.get_filename()
    except (ValueError, LookupError, MessageError, TypeError):
        return "?"
    return " ".join(_decoded_words(str(name)).split())[:300] if name else ""


def _header(message: Message, name: str) -> str:
    """A header as people read it, on one line."""
    value = next(_raw(message, name), "")
    return " ".join(_decoded_words(value[:MAX_HEADER]).split())


def _raw(message: Message, name: str) -> Iterator[str]:
    """The values of a header; bytes that are not ASCII are halves of surrogate pairs in them."""
    lower = name.lower()
    return (str(value) for key, value in message.raw_items() if key.lower() == lower)


def _decoded_words(value: str) -> str:
    """A header whose words may be encoded (RFC 2047), or be bytes of UTF-8 as they are."""
    if _ENCODED.search(value):
        try:
            return "".join(_decoded(part, charset) for part, charset in decode_header(value))
        except (HeaderParseError, ValueError, binascii.Error):
            return value
    return _decoded(value.encode("utf-8", "surrogateescape"), None)


def _decoded(part: bytes | str, charset: str | None) -> str:
    if isinstance(part, str):
        return part
    for name in (charset, "utf-8", "gb18030"):
        try:
            return part.decode(name or "utf-8").replace("\0", "\ufffd")
        except (LookupError, UnicodeError, ValueError):
            continue
    return part.decode("utf-8", "replace")


def _people(message: Message, name: str) -> Iterator[tuple[str, str]]:
    """Names with their addresses; either may be empty."""
    values = [value[:MAX_HEADER] for value in islice(_raw(message, name), 5)]
    try:
        pairs: Iterable[tuple[str, str]] = getaddresses(values)
    except (ValueError, TypeError, IndexError, AttributeError):
        pairs = ()
    for shown, address in islice(pairs, 100):
        yield " ".join(_decoded_words(shown).split()), _decoded_words(address).strip()


def _addresses(message: Message, name: str) -> list[str]:
    people = _people(message, name)
    return [f"{who} <{where}>" if who and where else who or where for who, where in people]


def _names(message: Message, name: str) -> list[str]:
    return [each for pair in _people(message, name) for each in dict.fromkeys(pair) if each]


def _date(message: Message) -> str | None:
    try:
        date: datetime = parsedate_to_datetime(_header(message, "Date")[:200])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date.isoformat(timespec="seconds") if date.year >= 1000 else None

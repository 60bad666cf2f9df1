"""Turns a calendar (iCalendar, RFC 5545) into Markdown: each event is a section."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qmd.errors import DamagedFileError
from qmd.parse.convert.blocks import inert_lines
from qmd.parse.converted import Anchor, Converted

MAX_EVENTS = 50_000

_FOLDED = re.compile(r"\r?\n[ \t]")
#: A property with its parameters; in quotes a colon belongs to a parameter.
_PROPERTY = re.compile(r'([^":]*(?:"[^"]*"[^":]*)*):')
_ESCAPED = re.compile(r"\\([nN,;\\])")
_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d))?")


def convert(path: str, data: bytes) -> Converted:
    """A calendar. Raises DamagedFileError if the file is none."""
    text = _FOLDED.sub("", data.decode("utf-8-sig", "replace"))
    if not text.lstrip().upper().startswith("BEGIN:VCALENDAR"):
        raise DamagedFileError("The file is no calendar.", hint="Export it again.")
    sections, anchors, warnings = [], [], []
    length = 0
    for number, event in enumerate(_events(text), start=1):
        if number > MAX_EVENTS:
            warnings.append(f"Only the first {MAX_EVENTS:,} events were read.")
            break
        section = _section(event)
        anchors.append(Anchor("event", str(number), length))
        sections.append(section)
        length += len(section)
    return Converted("".join(sections), anchors=tuple(anchors), warnings=tuple(warnings))


def _events(text: str) -> Iterator[dict[str, str]]:
    event: dict[str, str] | None = None
    for line in text.splitlines():
        head = _PROPERTY.match(line)
        if head is None:
            continue
        value = line[head.end() :]
        key = head[1].partition(";")[0].upper()
        if (key, value.upper()) == ("BEGIN", "VEVENT"):
            event = {}
        elif (key, value.upper()) == ("END", "VEVENT") and event is not None:
            yield event
            event = None
        elif event is not None:
            event.setdefault(key, _ESCAPED.sub(_unescaped, value))


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] in "nN" else match[1]


def _section(event: dict[str, str]) -> str:
    when = _DAY.match(event.get("DTSTART", ""))
    facts = []
    if when is not None:
        time = f" {when[4]}:{when[5]}" if when[4] else ""
        facts.append(f"{when[1]}-{when[2]}-{when[3]}{time}")
    facts += [event[key] for key in ("LOCATION", "DESCRIPTION") if event.get(key, "").strip()]
    title = " ".join(event.get("SUMMARY", "").split()) or "Event"
    return "\n\n".join([f"## {title}", *map(inert_lines, facts)]) + "\n\n"

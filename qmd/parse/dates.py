"""Reads a document's date from its frontmatter, in many spellings, and writes it as ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from qmd.parse.frontmatter import has_placeholder

#: The named groups of a match: the text of each, None where it did not take part.
_Parts = Mapping[str, "str | None"]

_NAMES = ("date", "created", "updated")

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH = "(?P<name>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR_FIRST = re.compile(
    r"(?P<y>\d{4})(?:(?P<sep>[-/.])(?P<m>\d{1,2})(?:(?P=sep)(?P<d>\d{1,2}))?"
    r"|\s*年\s*(?P<cm>\d{1,2})\s*月(?:\s*(?P<cd>\d{1,2})\s*[日号號])?)?(?!\d)"
)
_COMPACT = re.compile(
    r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?:T?(?P<H>\d{2})(?P<M>\d{2})(?P<S>\d{2})?)?(?!\d)"
)
_YEAR_LAST = re.compile(r"(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4})(?!\d)")
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_DAY_MONTH = re.compile(
    _WEEKDAY + r"(?P<d>\d{1,2})(?:st|nd|rd|th)?[\s-]+" + _MONTH + r"[\s,-]+(?P<y>\d{4})(?!\d)",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    _WEEKDAY + _MONTH + r"\s+(?:(?P<d>\d{1,2})(?:st|nd|rd|th)?,?\s+)?(?P<y>\d{4})(?!\d)",
    re.IGNORECASE,
)
_PATTERNS = (_YEAR_FIRST, _COMPACT, _YEAR_LAST, _DAY_MONTH, _MONTH_DAY)
_TIME = re.compile(
    r"(?:[T_,\s]+|\s*at\s+)?(?P<H>\d{1,2})[:：时点](?P<M>\d{2})(?:[:：分](?P<S>\d{2})秒?(?:[.,]\d+)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?"
    r"\s*(?P<zone>Z|UTC|GMT|(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2})?)?(?:\s*\([^()]*\)|\s+[A-Z]{2,5})?\s*",
    re.IGNORECASE,
)

_UNREADABLE = "{} is not a date that qmd can read"


def find_date(properties: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """
    The first of ``date``, ``created`` and ``updated`` that is a date, and warnings.

    Returns:
        ``2025-03-01``, ``2025-03-01T10:00:00`` or ``2025-03-01T10:00:00+08:00``, or None.
    """
    warnings: list[str] = []
    for name in _NAMES:
        value = properties.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if value is None or value == "":
            continue
        date, reason = read_date(value)
        if date is not None:
            return date, tuple(warnings)
        if isinstance(value, str) and has_placeholder(value):
            continue  # a template, which gets its date where it is used
        shown = str(value) if not isinstance(value, dict) else "{…}"
        if len(shown) > 60:
            shown = shown[:60] + "…"
        warnings.append(f"The frontmatter's {name} {reason.format(repr(shown))}.")
    return None, tuple(warnings)


def read_date(value: object) -> tuple[str | None, str]:
    """The date in ISO 8601, or why there is none: a sentence with ``{}`` for the date."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None, _UNREADABLE
    text = str(value).strip().strip("\"'[]").strip()
    if len(text) > 100:
        return None, _UNREADABLE
    if isinstance(value, (int, float)) or (text.isdecimal() and text.isascii()):
        date = _number(text)
        if date is not None:
            return date, ""
    return _read_text(text)


def _read_text(text: str) -> tuple[str | None, str]:
    """As `read_date`, for a date with separators or names."""
    for pattern in _PATTERNS:
        match = pattern.match(text)
        if match is None:
            continue
        part = match.groupdict()
        day = _day_of_year_last(part) if pattern is _YEAR_LAST else _day(part)
        if day is None:
            return None, "{} could be two dates: write it as YYYY-MM-DD"
        clock = _clock(part, text[match.end() :].strip())
        if clock is None:
            continue
        date = _iso(*day, clock)
        return date, "{} is not a day of the calendar" if date is None else ""
    return None, _UNREADABLE


def _day(part: _Parts) -> tuple[int, int, int]:
    """Year, month and day of a match that names them; a missing month or day is 1."""
    name = part.get("name")
    month = _MONTHS[name.lower()] if name else int(part.get("m") or part.get("cm") or 1)
    return int(part["y"] or 0), month, int(part.get("d") or part.get("cd") or 1)


def _day_of_year_last(part: _Parts) -> tuple[int, int, int] | None:
    """Year, month and day of ``1/2/2025``; None where day and month cannot be told apart."""
    first, second = int(part["a"] or 0), int(part["b"] or 0)
    year = int(part["y"] or 0)
    if part["sep"] == "." or first > 12:
        return year, second, first
    if second > 12 or first == second:
        return year, first, second
    return None


def _clock(part: _Parts, rest: str) -> _Parts | None:
    """
    The time of day: parts for `_iso`, empty for a date without a time.

    None where ``rest``, the text after the date, is no time.
    """
    if part.get("H"):  # the date's own pattern has matched the time
        if not rest:
            return part
        zone = _TIME.fullmatch("00:00:00" + rest)
        return None if zone is None else {**part, "zone": zone["zone"], "half": None}
    if not rest:
        return {}
    match = _TIME.fullmatch(rest)
    return None if match is None else match.groupdict()


def _number(text: str) -> str | None:
    """``20250301``, ``202503011015``, a year, or seconds or milliseconds since 1970."""
    if not text.isdecimal():
        return None
    number = int(text)
    if len(text) == 8:
        return _iso(number // 10000, number // 100 % 100, number % 100, {})
    if len(text) == 4 and number >= 1000:
        return _iso(number, 1, 1, {})
    if len(text) == 12:
        minute = _minute(text)
        if minute is not None:
            return minute
    if len(text) in (9, 10, 12, 13):
        seconds = number if len(text) < 12 else number // 1000
        return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)).isoformat()
    return None


def _minute(digits: str) -> str | None:
    """
    ``202503011015`` as a minute of the years 1900 to 2100; None if it is none.

    Read as milliseconds since 1970, these numbers are days of 1976, which no note is from.
    """
    match = _COMPACT.fullmatch(digits)
    if match is None or not "1900" <= digits[:4] <= "2100":
        return None
    part = match.groupdict()
    return _iso(*_day(part), part)


def _iso(year: int, month: int, day: int, clock: _Parts) -> str | None:
    """The date in ISO 8601, with the time if ``clock`` has one; None if there is no such day."""
    try:
        if not clock:
            return datetime(year, month, day).date().isoformat()
        hour = int(clock.get("H") or 0)
        half = (clock.get("half") or "").lower()
        if half.startswith("p") and hour < 12:
            hour += 12
        elif half.startswith("a") and hour == 12:
            hour = 0
        return datetime(
            year,
            month,
            day,
            hour,
            int(clock.get("M") or 0),
            int(clock.get("S") or 0),
            tzinfo=_zone(clock.get("zone")),
        ).isoformat()
    except ValueError:
        return None


def _zone(zone: str | None) -> timezone | None:
    if not zone:
        return None
    digits = zone.upper().removeprefix("UTC").removeprefix("GMT")
    if digits in ("", "Z"):
        return timezone.utc
    sign = -1 if digits[0] == "-" else 1
    hours, _, minutes = digits[1:].partition(":")
    if not minutes and len(hours) > 2:
        hours, minutes = hours[:-2], hours[-2:]
    return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes or 0)))

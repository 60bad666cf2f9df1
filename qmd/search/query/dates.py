"""
Read the dates and spans of time that people write, such as ``7d``, ``昨天`` and ``2026-11``.

A period stands for its beginning: ``2026-11`` for 1 November, ``last week`` for its Monday. Days
begin in the local time zone.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

from qmd import parse
from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.system import clock

#: What is shown where a text is neither a date nor a span.
_HINT = "Write 2026-11-20, 2026-11, yesterday, 7d or 2026-11-20T18:00+08:00."
# These are texts of patterns, compiled when the first date comes: few searches have one.
_ISO = r"\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?"
_HOURS = {
    hours: rf"(?:(?:last|past) |最近|过去)?(\d{{1,6}}) ?(?:{names})(?: ago|以?前)?"
    for hours, names in (
        (1 / 60, "m|min|minutes?|分钟"),
        (1, "h|hours?|个?小时"),
        (24, "d|days?|天"),
        (7 * 24, "w|weeks?|周|个?星期"),
        (30 * 24, "mo|months?|个月"),
        (365 * 24, "y|years?|年"),
    )
}
_DAYS_AGO = {"today": 0, "今天": 0, "yesterday": 1, "昨天": 1, "前天": 2}
_PERIODS = {
    name: (unit, back)
    for unit, back, names in (
        ("week", 0, "this week|本周|这周"),
        ("week", 1, "last week|上周"),
        ("month", 0, "this month|本月|这个月"),
        ("month", 1, "last month|上月|上个月"),
        ("year", 0, "this year|今年"),
        ("year", 1, "last year|去年"),
    )
    for name in names.split("|")
}


def filter_date(text: str, now: datetime | None = None) -> str:
    """
    The day (``2026-11-20``) or the time that a filter compares documents with.

    Args:
        text: A date, a time, or a span before ``now``; one of days or more means a whole day.
        now: With a time zone; None for the current time.

    Returns:
        A time of day has an offset: the local one if none was written.

    Raises:
        InputError: The text is neither a date nor a span.
    """
    now = now or datetime.now().astimezone()
    before = span(text)
    if before is None:
        return _date_or_time(text, now)
    try:
        start = now - before
    except OverflowError:
        return str(date.min)
    if before >= timedelta(days=1):
        return str(start.date())
    return start.astimezone(timezone.utc).isoformat(timespec="seconds")


def moment(text: str, now: datetime) -> str:
    """
    The time that ``text`` means, as the database stores times.

    Args:
        text: A date, a time (local without an offset), or a span, which is exact.
        now: With a time zone.

    Returns:
        "" for a time before all that the database can store.

    Raises:
        InputError: The text is neither a date nor a span.
    """
    before = span(text)
    try:
        start = now - before if before is not None else clock.parse(_date_or_time(text, now))
        utc = start.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return ""
    return utc.replace("+00:00", "Z")


def span(text: str) -> timedelta | None:
    """The length of a span such as ``7d``, ``2 weeks`` or ``3天``; None if the text is none."""
    text = text.strip().lower()
    for hours, pattern in _HOURS.items():
        if match := re.fullmatch(pattern, text, re.ASCII):
            return timedelta(hours=int(match[1]) * hours)
    return None


def _date_or_time(text: str, now: datetime) -> str:
    """Raises InputError."""
    text = text.strip()
    if re.fullmatch(_ISO, text):
        full = text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text
        try:
            clock.parse(full)
        except ValueError:
            raise _unreadable(text, "{} is not a day of the calendar") from None
        return _with_offset(full)
    today, name = now.astimezone().date(), text.lower()
    if name in _DAYS_AGO:
        return str(today - timedelta(days=_DAYS_AGO[name]))
    if name in _PERIODS:
        return str(_beginning(*_PERIODS[name], today))
    written, reason = parse.dates.read_date(text)
    if written is None:
        raise _unreadable(text, reason)
    return _with_offset(written)


def _with_offset(written: str) -> str:
    """A date as it is, and a time with the local offset unless it has one."""
    if len(written) == len("2026-11-20"):
        return written
    time = clock.parse(written)
    try:
        return written if time.tzinfo is not None else time.astimezone().isoformat()
    except (OverflowError, OSError, ValueError):  # the first and last days that Python knows
        return written


def _beginning(unit: str, back: int, today: date) -> date:
    """The first day of the present week, month or year, or of the one ``back`` before."""
    if unit == "week":
        return today - timedelta(days=today.weekday() + 7 * back)
    first = today.replace(day=1)
    if unit == "month":
        return (first - timedelta(days=1)).replace(day=1) if back else first
    return date(today.year - back, 1, 1)


def _unreadable(text: str, reason: str) -> InputError:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return InputError(engine_text(reason.replace("{}", "{date}"), date=repr(shown)), hint=_HINT)

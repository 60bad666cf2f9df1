"""
Write times as the database stores them, in ISO 8601 in UTC with milliseconds and ``Z``, and as
people read them, in the local time zone; and read times in ISO 8601.
"""

from __future__ import annotations

from datetime import datetime
from time import gmtime, strftime, time_ns

#: The range of times in SQLite and ISO, the years 1 to 9999, in seconds since 1970.
_FIRST_S, _LAST_S = -62135596800, 253402300799


def now() -> str:
    """The current time."""
    return from_ns(time_ns())


def now_ns() -> int:
    """The current time in nanoseconds since 1970."""
    return time_ns()


def from_ns(moment_ns: int) -> str:
    """Write a time given in nanoseconds since 1970; it is clamped to the years 1 to 9999."""
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    seconds = min(max(seconds, _FIRST_S), _LAST_S)
    return (
        f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds)).rjust(19, '0')}.{rest // 1_000_000:03}Z"
    )


def parse(text: str) -> datetime:
    """
    Read a date or a time, with any number of decimals and ``Z``, which Python 3.10 does not take.

    Raises:
        ValueError: The text is neither.
    """
    head, dot, tail = text.replace("Z", "+00:00").partition(".")
    if dot:
        zone = tail.lstrip("0123456789")
        decimals = tail[: len(tail) - len(zone)]
        head += f".{decimals[:6]:0<6}{zone}" if decimals else dot
    return datetime.fromisoformat(head)


def local(text: str) -> datetime:
    """A stored time in the local time zone. Raises ValueError as `parse`."""
    return parse(text).astimezone()


def minute(text: str) -> str:
    """``2026-11-23 14:05``: a stored time as people read it; what is none stays as it is."""
    try:
        return local(text).strftime("%Y-%m-%d %H:%M")
    except ValueError:  # in a damaged database
        return text[:16]

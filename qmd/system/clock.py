"""Write times as the database stores them: ISO 8601 in UTC, with milliseconds and ``Z``."""

from __future__ import annotations

from time import gmtime, strftime, time_ns

#: The range of times in SQLite and ISO, the years 1 to 9999, in seconds since 1970.
_FIRST_S, _LAST_S = -62135596800, 253402300799


def now() -> str:
    """The current time."""
    return from_ns(time_ns())


def from_ns(moment_ns: int) -> str:
    """Write a time given in nanoseconds since 1970; it is clamped to the years 1 to 9999."""
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    seconds = min(max(seconds, _FIRST_S), _LAST_S)
    return (
        f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds)).rjust(19, '0')}.{rest // 1_000_000:03}Z"
    )

"""Times as the database stores them: ISO 8601 UTC with milliseconds and ``Z``."""

from __future__ import annotations

from time import gmtime, strftime, time_ns

#: What SQLite and ISO can hold: the years 1 to 9999.
_FIRST_S, _LAST_S = -62135596800, 253402300799


def now() -> str:
    """This moment."""
    return from_ns(time_ns())


def from_ns(moment_ns: int) -> str:
    """A time in nanoseconds since 1970; what lies beyond the years 1 to 9999 is clamped."""
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    seconds = min(max(seconds, _FIRST_S), _LAST_S)
    return (
        f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds)).rjust(19, '0')}.{rest // 1_000_000:03}Z"
    )

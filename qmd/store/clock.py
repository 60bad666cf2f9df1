"""Times as the database stores them."""

from __future__ import annotations

from datetime import datetime, timezone


def now() -> str:
    """This moment, ISO 8601 UTC with milliseconds and ``Z``."""
    return iso(datetime.now(timezone.utc))


def from_ns(mtime_ns: int) -> str:
    """A file's modification time, as `now`; times SQLite and ISO cannot hold are clamped."""
    seconds = min(max(mtime_ns / 1e9, -62135596800.0), 253402300799.0)
    return iso(datetime.fromtimestamp(seconds, timezone.utc))


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

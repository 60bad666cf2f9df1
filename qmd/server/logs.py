"""The log of a server on stderr, as text for people or as JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import datetime, timezone
from typing import Any, Literal

LogFormat = Literal["text", "json"]


def log_to_stderr(log_format: LogFormat, level: int = logging.INFO) -> None:
    """
    Send qmd's records from ``level`` on to stderr; of the libraries, their errors.

    Libraries log session ids and what clients sent at lower levels.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR)
    logging.getLogger("qmd").setLevel(level)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={_plain(value)}" for name, value in _fields(record).items())
        word = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        line = f"qmd: {word}{_plain(record.getMessage())}" + (f" {fields}" if fields else "")
        return "\n".join([line, *_frames(record)])


class JsonLines(logging.Formatter):
    """One object a line: time (ISO 8601, UTC), level, logger, message, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if frames := _frames(record):
            entry["trace"] = frames
        return json.dumps(entry, ensure_ascii=True, default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


def _frames(record: logging.LogRecord) -> list[str]:
    """Where an exception came from; not its message, which may quote a document or a query."""
    if record.exc_info is None or record.exc_info[1] is None:
        return []
    error = record.exc_info[1]
    places = [
        f"  {frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return [f"  {type(error).__module__}.{type(error).__qualname__}", *places]


def _plain(value: object) -> str:
    """On one line, with control characters as escapes."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(value))

"""Writes the log of a server to stderr, as text for people or as JSON for programs."""

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
    Log qmd's records of ``level`` and above to stderr, and the errors of libraries.

    Below errors, libraries would log session ids and data of clients.
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
    """Formats a record as a line of text, with its fields as ``name=value``."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={_plain(value)}" for name, value in _fields(record).items())
        word = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        line = f"qmd: {word}{_plain(record.getMessage())}" + (f" {fields}" if fields else "")
        return "\n".join([line, *_frames(record)])


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: time (ISO 8601, UTC), level, logger, message, fields."""

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
    """The type and traceback of an exception; not its message, which may quote a document."""
    if record.exc_info is None or record.exc_info[1] is None:
        return []
    error = record.exc_info[1]
    places = [
        f"  {frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return [f"  {type(error).__module__}.{type(error).__qualname__}", *places]


def _plain(value: object) -> str:
    """A value on one line, with control characters as escapes."""
    return "".join(
        character if character.isprintable() else f"\\x{ord(character):02x}"
        for character in str(value)
    )

"""
Writes the log of a server: to stderr, as text for people or as JSON for programs; and to a file.

No record has the text of a query or a document, a token or the id of a session.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qmd.errors import InferenceError
from qmd.system.log_file import LogWriter
from qmd.values.text import one_line

if TYPE_CHECKING:
    from qmd.values.location import DatabaseLocation

LogFormat = Literal["text", "json"]

#: The attribute of a record that goes to the file, but not to stderr.
FILE_ONLY = "file_only"


def log_to_stderr(log_format: LogFormat, level: int = logging.INFO) -> None:
    """
    Log qmd's records of ``level`` and above to stderr, and the errors of libraries.

    Below errors, libraries would log session ids and data of clients.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level)
    handler.addFilter(lambda record: not hasattr(record, FILE_ONLY))
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR)
    logging.getLogger("qmd").setLevel(level)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def log_to_file(path: Path, database: DatabaseLocation | None) -> None:
    """
    Also log to a file, from level "info" on, as JSON with the process and the database.

    If the file cannot be written, one line on stderr says so.
    """
    try:
        writer = LogWriter(path)
    except OSError as error:
        logging.getLogger("qmd.server").warning(
            "The log %s cannot be written: %s", path, error.strerror or error
        )
        return
    handler = _FileHandler(writer)
    handler.setFormatter(JsonLines({"pid": os.getpid(), "database": str(database or "")}))
    handler.setLevel(logging.INFO)
    logging.getLogger().addHandler(handler)
    logging.getLogger("qmd").setLevel(logging.INFO)


class _FileHandler(logging.Handler):
    """Writes records to a log file until that fails; stderr has all of them anyway."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer
        self._has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._writer.write(self.format(record))
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                sys.stderr.write(f"qmd: warning: The log cannot be written: {error.strerror}\n")
            self._has_failed = True


class TextLines(logging.Formatter):
    """Formats a record as a line of text, with its fields as ``name=value``."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(
            f"{name}={one_line(str(value))}" for name, value in _fields(record).items()
        )
        word = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        line = f"qmd: {word}{one_line(_message(record))}" + (f" {fields}" if fields else "")
        return "\n".join([line, *_frames(record)])


class JsonLines(logging.Formatter):
    """
    Formats a record as one JSON object: time (ISO 8601, UTC), level, logger, message, fields.

    ``constant``: fields that each record has besides its own.
    """

    def __init__(self, constant: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._constant = dict(constant or {})

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **self._constant,
            **_fields(record),
        }
        if frames := _frames(record):
            entry["trace"] = frames
        return json.dumps(entry, ensure_ascii=True, default=str)


def _message(record: logging.LogRecord) -> str:
    """The message, in which an error of a model stands without the words of its server."""
    if not isinstance(record.args, tuple) or not record.args:
        return record.getMessage()
    return str(record.msg) % tuple(
        arg.for_logs if isinstance(arg, InferenceError) else arg for arg in record.args
    )


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

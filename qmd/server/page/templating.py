"""Renders the templates of the page with Jinja2, which escapes all values."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from datetime import datetime

from jinja2 import Environment, PackageLoader, StrictUndefined

from qmd.server.page.language import engine_texts, page_texts
from qmd.server.page.links import address
from qmd.server.page.note_text import plain_line
from qmd.server.page.static_files import static_files
from qmd.system import clock
from qmd.values.names import file_stem
from qmd.values.notes import Language
from qmd.values.search import shown_relevance


@functools.cache
def environment() -> Environment:
    """The templates, compiled once for all servers of this process."""
    templates = Environment(
        loader=PackageLoader("qmd.server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"static": static_files().address}
    templates.filters |= {
        "number": number,
        "bytes": byte_count,
        "seconds": seconds,
        "day": day,
        "minute": minute,
        "clock": clock_time,
        "address": address,
        "stem": file_stem,
        "lines": lambda text: text.removesuffix("\n").split("\n") if text else [],
        "plain_line": plain_line,
        "relevance": shown_relevance,
        "as_text": as_text,
        "utf16_length": utf16_length,
    }
    return templates


def rendered(name: str, language: Language, values: Mapping[str, object]) -> str:
    """The HTML of a template, which has the texts of the page and of the engine by functions."""
    texts = page_texts()

    def meaning(start: str, reason: str) -> str | None:
        """What a reason of the engine means; None for one without a text."""
        key = start + reason.lower().lstrip("._").rstrip("_").replace(" ", "_")
        return texts.text(language, key) if key in texts.names() else None

    return (
        environment()
        .get_template(name)
        .render(
            {
                "t": functools.partial(texts.text, language),
                "engine": lambda sentence: engine_texts().translated(sentence, language),
                "meaning": meaning,
                "lang": language,
                "script_texts": functools.partial(texts.of_view, language),
                **values,
            }
        )
    )


def number(value: float) -> str:
    return f"{value:,}"


def byte_count(value: float) -> str:
    """``1.4 MB``."""
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def seconds(value: float) -> str:
    """``350 ms``, ``4.2 s``, ``3:05 min``."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)}:{int(value % 60):02} min"


def as_text(value: object, indent: int | None = None) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=indent)


def utf16_length(text: str) -> int:
    """The length of a text as a script counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def day(value: str | datetime) -> str:
    """``2026-11-23``, in the server's time zone."""
    return _local(value).strftime("%Y-%m-%d")


def minute(value: str | datetime) -> str:
    """``2026-11-23 14:05``, in the server's time zone."""
    return _local(value).strftime("%Y-%m-%d %H:%M")


def clock_time(value: str | datetime | float) -> str:
    """``14:05:09`` for a time or seconds since 1970, in the server's time zone."""
    if isinstance(value, (int, float)):
        value = datetime.fromtimestamp(value).astimezone()
    return _local(value).strftime("%H:%M:%S")


def _local(value: str | datetime) -> datetime:
    if isinstance(value, str):
        return clock.local(value)
    return value.astimezone()

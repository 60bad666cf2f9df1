"""Finds the title of a document: what its properties, its headings or its file's name say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import unquote

from qmd.parse.placeholders import is_placeholder
from qmd.values import Heading
from qmd.values.names import file_stem, post_name

#: Characters of a title; it goes to the embedding model with every chunk.
MAX_TITLE = 1000

_JOURNAL = re.compile(r"(?:^|/)journals/(\d{4})_(\d{2})_(\d{2})\.(?:md|markdown)$", re.IGNORECASE)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def find_title(
    path: str, properties: Mapping[str, object], headings: Sequence[Heading]
) -> tuple[str, Literal["frontmatter", "heading", "filename"]]:
    """
    The title and where it is from: the properties, the first heading of level 1, the file's name.

    Headings of other levels name parts of a document: dozens of notes may begin with the same one.
    """
    value = properties.get("title")
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        title = " ".join(str(value).split())[:MAX_TITLE].rstrip()
        if title and not is_placeholder(title):
            return title, "frontmatter"
    for heading in headings:
        if heading.level == 1 and heading.text and not is_placeholder(heading.text):
            return heading.text, "heading"
    return title_of_file(path), "filename"


def title_of_file(path: str) -> str:
    """
    A file's name without its suffix, in the form that Logseq shows.

    Logseq writes the page ``work/plan`` to ``work___plan.md`` (other signs as in a URL), and the
    journal "Mar 1st, 2025" to ``journals/2025_03_01.md``. The time stamp of a post's name is left
    out; a date alone stays, because it is what tells meetings and daily notes apart.
    """
    day = journal_day(path)
    if day is not None:
        return f"{_MONTHS[int(day[5:7]) - 1]} {_ordinal(int(day[8:]))}, {day[:4]}"
    title = file_stem(path)
    post = post_name(title)
    if post is not None and post.time is not None and post.title.strip():
        return post.title
    if "___" in title.strip("_"):
        title = unquote(title.replace("___", "/"))
    return title


def journal_day(path: str) -> str | None:
    """The day ``YYYY-MM-DD`` of a journal of Logseq; None for any other file."""
    match = _JOURNAL.search(path)
    if match is None or not (1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31):
        return None
    return "-".join(match.groups())


def _ordinal(number: int) -> str:
    suffix = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"

"""
The files of a Logseq graph and the pages that they hold: ``work___plan.md`` is "work/plan".

Journals are taken to have Logseq's own date format, as "Mar 1st, 2025".
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_JOURNAL = re.compile(r"(?:^|/)journals/(\d{4})_(\d{2})_(\d{2})\.(?:md|markdown)$", re.IGNORECASE)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAY = re.compile(rf"({'|'.join(_MONTHS)}) (\d{{1,2}})(?:st|nd|rd|th), (\d{{4}})", re.IGNORECASE)
#: What Logseq does not write to a file's name as it is.
_ENCODED = re.compile(r'[<>:"|?*\\#%]')


def journal_day(path: str) -> str | None:
    """The day ``YYYY-MM-DD`` of a journal of Logseq; None for any other file."""
    match = _JOURNAL.search(path)
    if match is None or not (1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31):
        return None
    return "-".join(match.groups())


def page_of_file(path: str) -> str | None:
    """The name of the page in a file, if it differs from the file's; None if it does not."""
    day = journal_day(path)
    if day is not None:
        return f"{_MONTHS[int(day[5:7]) - 1]} {_ordinal(int(day[8:]))}, {day[:4]}"
    name = path.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    return unquote(stem.replace("___", "/")) if "___" in stem.strip("_") else None


def file_of_page(page: str) -> str | None:
    """The path, without ``.md``, of the file that holds a page; None if it is the page's name."""
    day = _DAY.fullmatch(page)
    if day is not None:
        month = _MONTHS.index(day[1].title()) + 1
        return f"journals/{day[3]}_{month:02}_{int(day[2]):02}"
    if "/" not in page.strip("/"):
        return None
    return _ENCODED.sub(lambda match: quote(match[0]), page).replace("/", "___")


def _ordinal(number: int) -> str:
    suffix = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"

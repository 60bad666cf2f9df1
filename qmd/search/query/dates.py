"""Read the dates that people write in filters."""

from __future__ import annotations

import re

from qmd.errors import InputError
from qmd.system import clock

#: Compiled when the first date comes: few searches have one.
_DATE = r"\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?"


def iso_date(date: str) -> str:
    """
    Check a date or time in ISO 8601, and complete a year or a month with its first day.

    Raises:
        InputError: The text is not a date.
    """
    text = date.strip()
    full_date = text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text
    try:
        if re.fullmatch(_DATE, text) is None:
            raise ValueError(text)
        clock.parse(full_date)
    except ValueError:
        raise InputError(
            f"{date!r} is no ISO date", hint="Write 2025-03-01 or 2025-03-01T18:00+08:00."
        ) from None
    return full_date

"""What the descriptions of arguments say in patterns, for programs that check before they call."""

from __future__ import annotations

import re
from datetime import date

from qmd.values.facts import DAY


def test_a_day_is_each_of_the_calendar_and_nothing_else() -> None:
    years = (1895, 1900, 2000, 2023, 2024, 2100, 2400)
    written = (f"{y}-{m:02}-{d:02}" for y in years for m in range(14) for d in range(33))
    for text in written:
        try:
            date.fromisoformat(text)
            is_day = True
        except ValueError:
            is_day = False
        assert bool(re.fullmatch(DAY, text)) == is_day, text

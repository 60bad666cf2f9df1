"""Run with the plugin and qmd installed: python -m pytest integrations/qmd-ics/tests"""

from __future__ import annotations

import pytest
from qmd_ics import CALENDAR
from qmd_ics.convert import convert

from qmd.errors import DamagedFileError
from qmd.parse.document import parse

EVENTS = """BEGIN:VCALENDAR\r
BEGIN:VEVENT\r
SUMMARY:Review of the\r
  plan\r
DTSTART;TZID="(UTC+01:00) Berlin":20260301T093000\r
LOCATION:Room 1\\, second floor\r
DESCRIPTION;ALTREP="cid:agenda":#agenda\\nBudget\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20260302\r
END:VEVENT\r
END:VCALENDAR\r
"""


def test_each_event_is_a_section_with_its_day_place_and_text() -> None:
    document = parse(CALENDAR, "work.ics", EVENTS.encode())
    assert document.text == (
        "## Review of the plan\n\n2026-03-01 09:30\n\nRoom 1, second floor\n\n#agenda\nBudget\n\n"
        "## Event\n\n2026-03-02\n\n"
    )
    assert (document.title, document.tags) == ("work", ())
    assert [anchor.fragment for anchor in document.anchors] == ["event=1", "event=2"]


def test_what_is_no_calendar_is_told() -> None:
    with pytest.raises(DamagedFileError, match="no calendar"):
        convert("a.ics", b"Dear all,")

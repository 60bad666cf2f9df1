"""Times are read on each Python that qmd supports as the newest reads them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.search.query.dates import iso_date
from qmd.system import clock

UTC = timezone.utc


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-03-01", datetime(2025, 3, 1)),
        ("2025-03-01T10:20Z", datetime(2025, 3, 1, 10, 20, tzinfo=UTC)),
        ("2025-03-01T10:20:30.5Z", datetime(2025, 3, 1, 10, 20, 30, 500_000, UTC)),
        ("2025-03-01 10:20:30.123456789", datetime(2025, 3, 1, 10, 20, 30, 123_456)),
        (
            "2025-03-01T10:20:30.25-08:00",
            datetime(2025, 3, 1, 10, 20, 30, 250_000, timezone(-timedelta(hours=8))),
        ),
    ],
)
def test_decimals_and_z_are_read(text: str, moment: datetime) -> None:
    """Python 3.10 takes neither ``Z`` nor any number of decimals but three and six."""
    assert clock.parse(text) == moment
    assert iso_date(text) == text


@pytest.mark.parametrize("text", ["", "today", "2025-13-01", "2025-03-01T10:20:30.", "2025.5"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month"):
        clock.parse(text)


@given(st.integers(0, 253402300799999))
def test_what_was_written_is_read_again(milliseconds: int) -> None:
    written = clock.from_ns(milliseconds * 1_000_000)
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    assert clock.parse(written) == since

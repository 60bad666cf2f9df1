"""Times are read on each Python that qmd supports as the newest reads them."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.errors import InputError
from qmd.search.query import filter_date, moment
from qmd.system import clock

UTC = timezone.utc


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-03-01", datetime(2025, 3, 1)),
        ("2025-03-01T10:20Z", datetime(2025, 3, 1, 10, 20, tzinfo=UTC)),
        ("2025-03-01T10:20:30.5Z", datetime(2025, 3, 1, 10, 20, 30, 500_000, UTC)),
        ("2025-03-01 10:20:30.123456789Z", datetime(2025, 3, 1, 10, 20, 30, 123_456, UTC)),
        (
            "2025-03-01T10:20:30.25-08:00",
            datetime(2025, 3, 1, 10, 20, 30, 250_000, timezone(-timedelta(hours=8))),
        ),
    ],
)
def test_decimals_and_z_are_read(text: str, moment: datetime) -> None:
    """Python 3.10 takes neither ``Z`` nor any number of decimals but three and six."""
    assert clock.parse(text) == moment
    assert filter_date(text) == text


@pytest.mark.parametrize("text", ["", "today", "2025-13-01", "2025-03-01T10:20:30.", "2025.5"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month"):
        clock.parse(text)


@given(st.integers(0, 253402300799999))
def test_what_was_written_is_read_again(milliseconds: int) -> None:
    written = clock.from_ns(milliseconds * 1_000_000)
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    assert clock.parse(written) == since


NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026", "2026-01-01"),
        ("2026-11", "2026-11-01"),
        (" 2026-11-20 ", "2026-11-20"),
        ("20.11.2026", "2026-11-20"),
        ("2026/11/20", "2026-11-20"),
        ("20 Nov 2026", "2026-11-20"),
        ("2026年11月20日", "2026-11-20"),
        ("2026年11月", "2026-11-01"),
        ("today", "2026-11-24"),
        ("Yesterday", "2026-11-23"),
        ("昨天", "2026-11-23"),
        ("前天", "2026-11-22"),
        ("last week", "2026-11-16"),
        ("本周", "2026-11-23"),
        ("上个月", "2026-10-01"),
        ("last year", "2025-01-01"),
        ("7d", "2026-11-17"),
        ("2 weeks ago", "2026-11-10"),
        ("最近3天", "2026-11-21"),
        ("3个月前", "2026-08-26"),
        ("999999y", "0001-01-01"),
        ("12h", "2026-11-24T00:00:00+00:00"),
        ("2026-11-20T18:00+08:00", "2026-11-20T18:00+08:00"),
    ],
)
def test_dates_and_spans_of_filters(text: str, day: str) -> None:
    assert filter_date(text, NOW) == day
    assert filter_date(day, NOW) == day


@pytest.mark.parametrize(
    "text",
    ["", "soon", "7", "-7d", "2026-13-01", "2026-02-30", "01/02/2026", "d7", "٧d", "x" * 999],
)
def test_what_is_no_date_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError) as caught:
        filter_date(text, NOW)
    assert "yesterday" in (caught.value.hint or "") and len(str(caught.value)) < 150


@given(st.text(max_size=30) | st.from_regex(r"\d{1,7} ?[mhdwy]"))
def test_any_text_is_a_date_or_an_error(text: str) -> None:
    try:
        date = filter_date(text, NOW)
    except InputError:
        return
    assert filter_date(date, NOW) == date


def test_a_time_without_an_offset_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert filter_date("2026-11-20T18:00", NOW) == "2026-11-20T18:00:00+08:00"
        assert moment("2026-11-20T18:00", NOW) == "2026-11-20T10:00:00.000Z"
        assert moment("2026-11-20", NOW) == "2026-11-19T16:00:00.000Z"
        assert filter_date("yesterday", NOW.replace(hour=20)) == "2026-11-24"
        assert clock.minute("2026-11-20T20:30:00.000Z") == "2026-11-21 04:30"
        assert clock.minute("no time: damaged") == "no time: damaged"
    finally:
        monkeypatch.undo()
        time.tzset()

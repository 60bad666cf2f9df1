"""Dates of frontmatter: whatever date and time is written in a spelling, that one is read."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.parse.dates import find_date

DAYS = st.dates(min_value=date(1000, 1, 1))
TIMES = st.times().map(lambda t: t.replace(microsecond=0))
MINUTES_OFF = st.integers(-23 * 60, 23 * 60)


@given(
    DAYS,
    st.sampled_from(
        [
            "%Y-%m-%d",
            "%Y/%m/%d",
            "%Y.%m.%d",
            "%Y年%m月%d日",
            "%Y 年 %m 月 %d 號",
            "%Y%m%d",
            "%d.%m.%Y",
            "%d %b %Y",
            "%dth-%B-%Y",
            "%a, %d %b. %Y",
            "%A %d %B, %Y",
            "%B %d, %Y",
            "%a %b %dnd %Y",
            "'%Y-%m-%d'",
            "[%Y-%m-%d]",
            " %Y-%m-%d ",
        ]
    ),
)
def test_a_day_is_read_in_every_spelling(day: date, spelling: str) -> None:
    assert find_date({"date": day.strftime(spelling)}) == (day.isoformat(), ())


@given(DAYS)
def test_a_day_without_its_day_or_month_is_the_first(day: date) -> None:
    month = day.replace(day=1).isoformat()
    for spelling in ("%Y-%m", "%Y/%m", "%Y年%m月", "%B %Y"):
        assert find_date({"date": day.strftime(spelling)}) == (month, ())
    for year in (day.year, str(day.year)):
        assert find_date({"date": year}) == (day.replace(month=1, day=1).isoformat(), ())


@given(DAYS, st.sampled_from("/-"))
def test_day_and_month_before_the_year_are_read_only_if_they_cannot_be_swapped(
    day: date, separator: str
) -> None:
    for spelling in ("%m-%d-%Y", "%d-%m-%Y"):
        text = day.strftime(spelling).replace("-", separator)
        read, warnings = find_date({"date": text})
        if day.day > 12 or day.day == day.month:
            assert (read, warnings) == (day.isoformat(), ())
        else:
            assert read is None
            assert warnings == (
                f"The frontmatter's date {text!r} could be two dates: write it as YYYY-MM-DD.",
            )


@given(
    DAYS,
    TIMES,
    st.sampled_from(
        [
            ("%Y-%m-%dT%H:%M:%S", True),
            ("%Y-%m-%d %H:%M:%S.123", True),
            ("%Y-%m-%d_%H:%M", False),
            ("%Y-%m-%d at %H:%M", False),
            ("%Y年%m月%d日 %H时%M分%S秒", True),
            ("%Y-%m-%d %H:%M:%S", True),
            ("%Y-%m-%d, %I:%M:%S %p", True),
            ("%Y-%m-%d %I:%M%p", False),
            ("%d %b %Y %I:%M p.m.", None),
            ("%Y%m%dT%H%M%S", True),
            ("%Y%m%dT%H%M", False),
            ("%m/%d/%Y %H:%M:%S", True),
        ]
    ),
)
def test_a_time_is_read_in_every_spelling(
    day: date, clock: time, spelling: tuple[str, bool | None]
) -> None:
    pattern, with_seconds = spelling
    if pattern.startswith("%m/%d"):
        day = day.replace(month=11, day=11)
    if with_seconds is None:  # an afternoon
        clock = clock.replace(hour=clock.hour % 12 + 12)
    written = datetime.combine(day, clock)
    expected = written if with_seconds else written.replace(second=0)
    assert find_date({"date": written.strftime(pattern)}) == (expected.isoformat(), ())


@given(DAYS, TIMES, MINUTES_OFF, st.sampled_from(["", "UTC", "GMT", "gmt"]), st.booleans())
def test_a_zone_is_kept_to_the_minute(
    day: date, clock: time, minutes: int, name: str, colon: bool
) -> None:
    sign = "-" if minutes < 0 else "+"
    hours, rest = divmod(abs(minutes), 60)
    spelled = f"{name}{sign}{hours:02}{':' if colon else ''}{rest:02}"
    moment = datetime.combine(day, clock, tzinfo=timezone(timedelta(minutes=minutes)))
    for text in (
        moment.strftime("%Y-%m-%d %H:%M:%S ") + spelled,
        moment.strftime("%Y%m%d%H%M%S ") + spelled,
        moment.strftime("%a, %d %b %Y %H:%M:%S ") + spelled + " (a place)",
    ):
        assert find_date({"date": text}) == (moment.isoformat(), ())


@pytest.mark.parametrize("zone", ["Z", "z", "UTC", "GMT", "gmt", "+0", "UTC+00", "-00:00"])
def test_universal_time_has_many_names(zone: str) -> None:
    expected = "2025-03-01T10:15:00+00:00"
    assert find_date({"date": f"2025-03-01 10:15 {zone}"}) == (expected, ())


@pytest.mark.parametrize("zone", ["-8", "-08", "-0800", "-08:00", "GMT-8", "utc-08:00"])
def test_a_zone_in_hours_has_many_spellings(zone: str) -> None:
    expected = "2025-03-01T10:15:00-08:00"
    assert find_date({"date": f"2025-03-01 10:15 {zone}"}) == (expected, ())


@given(st.integers(100_000_000, 9_999_999_999))
def test_nine_or_ten_digits_count_seconds_since_1970(seconds: int) -> None:
    expected = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    for value in (seconds, str(seconds)):
        assert find_date({"date": value}) == (expected.isoformat(), ())


@given(st.integers(1_000_000_000, 9_999_999_999), st.integers(0, 999))
def test_thirteen_digits_count_milliseconds_since_1970(seconds: int, milliseconds: int) -> None:
    expected = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    assert find_date({"date": seconds * 1000 + milliseconds}) == (expected.isoformat(), ())


@given(st.datetimes(datetime(1900, 1, 1), datetime(2100, 12, 31)))
def test_twelve_digits_are_a_minute_if_they_can_be(written: datetime) -> None:
    """Also 204207290000, which as milliseconds would be a day of 1976."""
    expected = written.replace(second=0, microsecond=0).isoformat()
    assert find_date({"date": int(written.strftime("%Y%m%d%H%M"))}) == (expected, ())


@pytest.mark.parametrize(
    ("value", "shown", "reason"),
    [
        ("2025-02-30", "'2025-02-30'", "is not a day of the calendar"),
        (20251301, "'20251301'", "is not a day of the calendar"),
        ("2025-03-01 25:00", "'2025-03-01 25:00'", "is not a day of the calendar"),
        ("soon", "'soon'", "is not a date that qmd can read"),
        (999, "'999'", "is not a date that qmd can read"),
        (20250, "'20250'", "is not a date that qmd can read"),
        (-5, "'-5'", "is not a date that qmd can read"),
        (True, "'True'", "is not a date that qmd can read"),
        ("X2025-03-01", "'X2025-03-01'", "is not a date that qmd can read"),
        ([["2025-03-01"]], "\"['2025-03-01']\"", "is not a date that qmd can read"),
        ({"a": 1}, "'{…}'", "is not a date that qmd can read"),
        ("20250301101500 later", "'20250301101500 later'", "is not a date that qmd can read"),
        ("x" * 60, repr("x" * 60), "is not a date that qmd can read"),
        ("x" * 61, repr("x" * 60 + "…"), "is not a date that qmd can read"),
    ],
)
def test_what_is_no_date_is_shown_with_the_reason(value: Any, shown: str, reason: str) -> None:
    warning = f"The frontmatter's created {shown} {reason}."
    assert find_date({"created": value}) == (None, (warning,))


@pytest.mark.parametrize("value", ["", None])
def test_a_property_without_a_value_is_no_reason_for_a_warning(value: Any) -> None:
    assert find_date({"date": value, "updated": "2025-03-01"}) == ("2025-03-01", ())

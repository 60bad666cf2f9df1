"""
The charts of the page: numbers become rectangles, which a template draws as SVG.

The drawing is 100 units high, and stretched to the place that the style gives it; so all labels
stand beside it as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from qmd.server.activity import SPAN_S, QueryTimes, SearchKind

HEIGHT = 100
_STEP = 10  # units from one bar to the next
_GAP = 2
_LEAST = 1.5  # units of the smallest bar that is not zero

HOURS = 24
DAYS = 30
SPANS = 24  # of `SPAN_S` seconds: two hours


@dataclass(frozen=True, slots=True)
class Bar:
    """
    A bar, in units of the drawing.

    ``upper`` is the height of the whole bar, ``lower`` that of a darker part at its foot.
    """

    x: int
    width: int
    upper: float
    lower: float


@dataclass(frozen=True, slots=True)
class Chart:
    """
    A bar chart.

    Attributes:
        width: In units.
        most: The value that is as high as the drawing.
        rows: The label and the values of each bar that is not empty, for the table beside it.
        first, last: The labels of the ends of the axis.
    """

    width: int
    bars: tuple[Bar, ...]
    most: float
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    first: str
    last: str


def bar_chart(
    labels: Sequence[str], uppers: Sequence[float], lowers: Sequence[float] | None = None
) -> Chart:
    """
    A chart with a bar for each label.

    Args:
        lowers: The values of the darker parts; None for bars of one colour.
    """
    most = max(uppers, default=0.0)
    darker = uppers if lowers is None else lowers
    bars = tuple(
        Bar(
            position * _STEP + _GAP // 2,
            _STEP - _GAP,
            _height(upper, most),
            _height(lower, most),
        )
        for position, (upper, lower) in enumerate(zip(uppers, darker, strict=True))
        if upper
    )
    rows = tuple(
        (label, (upper,) if lowers is None else (lower, upper))
        for label, upper, lower in zip(labels, uppers, darker, strict=True)
        if upper
    )
    first, last = (labels[0], labels[-1]) if labels else ("", "")
    return Chart(len(labels) * _STEP, bars, most, rows, first, last)


def _height(value: float, most: float) -> float:
    return round(max(_LEAST, value / most * HEIGHT), 2) if value else 0.0


def documents_per_day(hours: Mapping[datetime, int], now: datetime) -> Chart:
    """
    The documents of the last `DAYS` days.

    Args:
        hours: The number in each hour, UTC.
        now: In the time zone whose days are meant.
    """
    days = [(now - timedelta(days=back)).date() for back in reversed(range(DAYS))]
    counts = dict.fromkeys(days, 0)
    for hour, count in hours.items():
        day = hour.astimezone(now.tzinfo).date()
        if day in counts:
            counts[day] += count
    return bar_chart([day.isoformat() for day in days], list(counts.values()))


def documents_per_hour(hours: Mapping[datetime, int], now: datetime) -> Chart:
    """The documents of the last `HOURS` hours. Arguments as `documents_per_day`."""
    latest = now.replace(minute=0, second=0, microsecond=0)
    starts = [latest - timedelta(hours=back) for back in reversed(range(HOURS))]
    counts = dict.fromkeys(starts, 0)
    for hour, count in hours.items():
        start = hour.astimezone(now.tzinfo).replace(minute=0)
        if start in counts:
            counts[start] += count
    return bar_chart([f"{start:%H:%M}" for start in starts], list(counts.values()))


def query_time_chart(times: Sequence[QueryTimes], kind: SearchKind, now: datetime) -> Chart:
    """
    The times of one kind of search in the last `SPANS` spans: p95, with p50 as the darker part.
    """
    latest = int(now.timestamp() // SPAN_S) * SPAN_S
    starts = [latest - back * SPAN_S for back in reversed(range(SPANS))]
    points = {point.start: point for point in times if point.kind == kind}
    labels = [f"{datetime.fromtimestamp(start, now.tzinfo):%H:%M}" for start in starts]
    return bar_chart(
        labels,
        [points[start].p95_s if start in points else 0.0 for start in starts],
        [points[start].p50_s if start in points else 0.0 for start in starts],
    )

"""Notes of days, weeks, months, quarters and years."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Literal, NamedTuple

from qmd.records import dataclass
from qmd.values.facts import Describe, OmitDefault, Range

PeriodKind = Literal["day", "week", "month", "quarter", "year"]


class Period(NamedTuple):
    """A day, or all days from the first to the last of a week, a month, a quarter or a year."""

    kind: PeriodKind
    first: date

    @property
    def last(self) -> date:
        following = self.moved(1)
        return date.max if following is None else following.first - timedelta(days=1)

    def moved(self, by: int) -> Period | None:
        """The period of this kind so many after this one; None out of the years 1 to 9999."""
        try:
            if self.kind in ("day", "week"):
                return self._replace(first=self.first + timedelta(days=by * _DAYS[self.kind]))
            month = self.first.year * 12 + self.first.month - 1 + by * _MONTHS[self.kind]
            return self._replace(first=date(month // 12, month % 12 + 1, 1))
        except (OverflowError, ValueError):
            return None

    @property
    def name(self) -> str:
        """``2026-11-20``, ``2026-W47``, ``2026-11``, ``2026-Q4`` or ``2026``."""
        year, month = f"{self.first.year:04}", self.first.month
        if self.kind == "week":
            thursday = self.first + timedelta(days=(3 - self.first.weekday()) % 7)
            return "{:04}-W{:02}".format(*thursday.isocalendar())
        return {
            "day": self.first.isoformat(),
            "month": f"{year}-{month:02}",
            "quarter": f"{year}-Q{(month + 2) // 3}",
            "year": year,
        }[self.kind]


_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def period_around(kind: PeriodKind, day: date, first_day: int = 1) -> Period:
    """The period with this day; weeks begin on Monday (1), or on Sunday (0) and so on."""
    if kind == "day":
        return Period(kind, day)
    if kind == "week":
        return Period(kind, day - timedelta(days=(day.isoweekday() - first_day) % 7))
    months = _MONTHS[kind]
    return Period(kind, date(day.year, (day.month - 1) // months * months + 1, 1))


class CalendarWeek(NamedTuple):
    """
    A week of a calendar.

    Attributes:
        period: As the vault counts weeks.
        note: ``collection/path`` of its note; None without one.
        days: Its seven days, each with its note or None.
    """

    period: Period
    note: str | None
    days: tuple[tuple[date, str | None], ...]


class MonthCalendar(NamedTuple):
    """The weeks with a day of a month, and the notes that exist of them."""

    period: Period
    note: str | None
    weeks: tuple[CalendarWeek, ...]


@dataclass(frozen=True, slots=True)
class PeriodicNote:
    """
    The note of a day, a week, a month, a quarter or a year, which may not exist yet.

    Attributes:
        text: As it is on the disk now, from its beginning; "" if there is none.
        more_lines: How many lines follow, for which the reply has no room.
        previous, following: The nearest existing notes of this kind, at most a hundred periods
            away.
    """

    file: Annotated[str, Describe("collection/path; get takes it")]
    kind: Annotated[PeriodKind, Describe("day, week, month, quarter or year")]
    period: Annotated[str, Describe("As `when` takes it: 2026-11-20, 2026-W47, 2026-11")]
    first: Annotated[str, Describe("Its first day")]
    last: Annotated[str, Describe("Its last day")]
    exists: bool
    text: Annotated[str, OmitDefault()] = ""
    more_lines: Annotated[int, Range(0), Describe("Lines without room"), OmitDefault()] = 0
    previous: Annotated[str | None, Describe("The nearest note before it"), OmitDefault()] = None
    following: Annotated[str | None, Describe("The nearest note after it"), OmitDefault()] = None

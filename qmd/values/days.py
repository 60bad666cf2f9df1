"""
Has the periods that have notes (days, weeks, months, quarters, years) and the patterns of names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
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


# --- dates in the patterns of moment.js -------------------------------------------------
# Obsidian names notes by them: ``gggg-[W]ww``. What is no token stands for itself, and what is in
# brackets, too. Tokens of times are those of a template; in the name of a note a day has the time
# 00:00.

_TOKENS = re.compile(
    r"\[(?P<text>[^\]]*)\]|\\(?P<escaped>.)"
    r"|(?P<token>YYYY|YY|Y|Qo|Q|MMMM|MMM|MM|Mo|M|DDDD|DDDo|DDD|DD|Do|D|dddd|ddd|dd|do|d|E|e"
    r"|GGGG|GG|gggg|gg|WW|Wo|W|ww|wo|w|HH|H|hh|h|kk|k|mm|m|ss|s|SSS|A|a|X|x|ZZ|Z)",
    re.DOTALL,
)
_ENGLISH_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_ENGLISH_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_CHINESE_MONTHS = (*(f"{each}月" for each in "一二三四五六七八九十"), "十一月", "十二月")
_CHINESE_DAYS = tuple(f"星期{each}" for each in "日一二三四五六")


class Locale(NamedTuple):
    """
    What patterns take from a language.

    Attributes:
        first_day: On which day a week begins; 0 is Sunday, 1 Monday.
        in_first_week: The day of January that always lies in the first week of its year.
    """

    is_chinese: bool = False
    first_day: int = 0
    in_first_week: int = 1

    def week(self, day: date) -> tuple[int, int]:
        """The year and the number of the week with this day."""
        year = day.year
        if day >= self._first(year + 1):
            year += 1
        elif day < self._first(year):
            year -= 1
        return year, (day - self._first(year)).days // 7 + 1

    def with_weeks_from(self, first_day: int) -> Locale:
        """The same with weeks that begin on another day, as moment.js counts them then."""
        return self._replace(
            first_day=first_day, in_first_week=self.in_first_week + first_day - self.first_day
        )

    def _first(self, year: int) -> date:
        """The first day of the first week of a year."""
        return period_around("week", date(year, 1, self.in_first_week), self.first_day).first


ENGLISH = Locale()
CHINESE = Locale(is_chinese=True, first_day=1, in_first_week=4)
#: Of all others: weeks as ISO 8601 counts them, names in English.
ISO = Locale(first_day=1, in_first_week=4)


def formatted_date(pattern: str, when: date | datetime, locale: Locale = ENGLISH) -> str:
    """
    A date in a pattern. A token that is not known stands for itself.

    Args:
        when: A date without a time has the time 00:00; times are local.
    """
    time = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day)

    def shown(match: re.Match[str]) -> str:
        if match["token"] is None:
            return match["text"] if match["escaped"] is None else str(match["escaped"])
        return _FORMATS[match["token"]](time, locale)

    return _TOKENS.sub(shown, pattern)


def _names(chinese: tuple[str, ...], english: tuple[str, ...], locale: Locale) -> tuple[str, ...]:
    return chinese if locale.is_chinese else english


def _month(time: datetime, locale: Locale) -> str:
    return _names(_CHINESE_MONTHS, _ENGLISH_MONTHS, locale)[time.month - 1]


def _short_month(time: datetime, locale: Locale) -> str:
    return f"{time.month}月" if locale.is_chinese else _month(time, locale)[:3]


def _weekday(time: datetime, locale: Locale) -> str:
    return _names(_CHINESE_DAYS, _ENGLISH_DAYS, locale)[time.isoweekday() % 7]


def _short_weekday(length: int) -> Callable[[datetime, Locale], str]:
    def shown(time: datetime, locale: Locale) -> str:
        name = _weekday(time, locale)
        if locale.is_chinese:
            return name[-1] if length == 2 else f"周{name[-1]}"
        return name[:length]

    return shown


def _ordinal(number: int, locale: Locale, unit: str) -> str:
    if locale.is_chinese:
        return f"{number}{unit}"
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ends.get(number % 10, 'th')}"


def _half(time: datetime, locale: Locale) -> str:
    if not locale.is_chinese:
        return "AM" if time.hour < 12 else "PM"
    minutes = time.hour * 100 + time.minute
    limits = ((600, "凌晨"), (900, "早上"), (1130, "上午"), (1230, "中午"), (1800, "下午"))
    return next((name for limit, name in limits if minutes < limit), "晚上")


def _offset(time: datetime, separator: str) -> str:
    text = time.astimezone().strftime("%z")
    return f"{text[:3]}{separator}{text[3:5]}"


_Format = Callable[[datetime, Locale], str]
_FORMATS: Mapping[str, _Format] = {
    "YYYY": lambda time, locale: f"{time.year:04}",
    "YY": lambda time, locale: f"{time.year % 100:02}",
    "Y": lambda time, locale: str(time.year),
    "Q": lambda time, locale: str((time.month + 2) // 3),
    "Qo": lambda time, locale: _ordinal((time.month + 2) // 3, locale, ""),
    "MMMM": _month,
    "MMM": _short_month,
    "MM": lambda time, locale: f"{time.month:02}",
    "Mo": lambda time, locale: _ordinal(time.month, locale, "月"),
    "M": lambda time, locale: str(time.month),
    "DDDD": lambda time, locale: f"{time.timetuple().tm_yday:03}",
    "DDDo": lambda time, locale: _ordinal(time.timetuple().tm_yday, locale, "日"),
    "DDD": lambda time, locale: str(time.timetuple().tm_yday),
    "DD": lambda time, locale: f"{time.day:02}",
    "Do": lambda time, locale: _ordinal(time.day, locale, "日"),
    "D": lambda time, locale: str(time.day),
    "dddd": _weekday,
    "ddd": _short_weekday(3),
    "dd": _short_weekday(2),
    "do": lambda time, locale: _ordinal(time.isoweekday() % 7, locale, "日"),
    "d": lambda time, locale: str(time.isoweekday() % 7),
    "E": lambda time, locale: str(time.isoweekday()),
    "e": lambda time, locale: str((time.isoweekday() - locale.first_day) % 7),
    "GGGG": lambda time, locale: f"{time.isocalendar()[0]:04}",
    "GG": lambda time, locale: f"{time.isocalendar()[0] % 100:02}",
    "gggg": lambda time, locale: f"{locale.week(time.date())[0]:04}",
    "gg": lambda time, locale: f"{locale.week(time.date())[0] % 100:02}",
    "WW": lambda time, locale: f"{time.isocalendar()[1]:02}",
    "Wo": lambda time, locale: _ordinal(time.isocalendar()[1], locale, "周"),
    "W": lambda time, locale: str(time.isocalendar()[1]),
    "ww": lambda time, locale: f"{locale.week(time.date())[1]:02}",
    "wo": lambda time, locale: _ordinal(locale.week(time.date())[1], locale, "周"),
    "w": lambda time, locale: str(locale.week(time.date())[1]),
    "HH": lambda time, locale: f"{time.hour:02}",
    "H": lambda time, locale: str(time.hour),
    "hh": lambda time, locale: f"{(time.hour + 11) % 12 + 1:02}",
    "h": lambda time, locale: str((time.hour + 11) % 12 + 1),
    "kk": lambda time, locale: f"{time.hour or 24:02}",
    "k": lambda time, locale: str(time.hour or 24),
    "mm": lambda time, locale: f"{time.minute:02}",
    "m": lambda time, locale: str(time.minute),
    "ss": lambda time, locale: f"{time.second:02}",
    "s": lambda time, locale: str(time.second),
    "SSS": lambda time, locale: f"{time.microsecond // 1000:03}",
    "A": _half,
    "a": lambda time, locale: _half(time, locale).lower(),
    "X": lambda time, locale: str(int(time.timestamp())),
    "x": lambda time, locale: str(int(time.timestamp() * 1000)),
    "ZZ": lambda time, locale: _offset(time, ""),
    "Z": lambda time, locale: _offset(time, ":"),
}

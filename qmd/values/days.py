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
from qmd.values.text import ordinal

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
        return _token(match["token"], time, locale)

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


def _token(token: str, time: datetime, locale: Locale) -> str:
    """A token for a number may have an ``o``, or be one letter longer for zeros in front."""
    if token in _TEXTS:
        return _TEXTS[token](time, locale)
    if token in _NUMBERS:
        return str(_NUMBERS[token](time, locale))
    short = token[:-1]
    number = _NUMBERS[short](time, locale)
    if not token.endswith("o"):
        return f"{number:0{max(2, len(short))}}"
    return f"{number}{_UNITS.get(short, '日')}" if locale.is_chinese else ordinal(number)


def _half(time: datetime, locale: Locale) -> str:
    if not locale.is_chinese:
        return "AM" if time.hour < 12 else "PM"
    minutes = time.hour * 100 + time.minute
    limits = ((600, "凌晨"), (900, "早上"), (1130, "上午"), (1230, "中午"), (1800, "下午"))
    return next((name for limit, name in limits if minutes < limit), "晚上")


def _offset(time: datetime, separator: str) -> str:
    text = time.astimezone().strftime("%z")
    return f"{text[:3]}{separator}{text[3:5]}"


_NUMBERS: Mapping[str, Callable[[datetime, Locale], int]] = {
    "Y": lambda time, locale: time.year,
    "Q": lambda time, locale: (time.month + 2) // 3,
    "M": lambda time, locale: time.month,
    "DDD": lambda time, locale: time.timetuple().tm_yday,
    "D": lambda time, locale: time.day,
    "d": lambda time, locale: time.isoweekday() % 7,
    "E": lambda time, locale: time.isoweekday(),
    "e": lambda time, locale: (time.isoweekday() - locale.first_day) % 7,
    "W": lambda time, locale: time.isocalendar()[1],
    "w": lambda time, locale: locale.week(time.date())[1],
    "H": lambda time, locale: time.hour,
    "h": lambda time, locale: (time.hour + 11) % 12 + 1,
    "k": lambda time, locale: time.hour or 24,
    "m": lambda time, locale: time.minute,
    "s": lambda time, locale: time.second,
}
#: What follows a number in Chinese where English has an ordinal; after others 日.
_UNITS = {"Q": "", "M": "月", "W": "周", "w": "周"}
#: What is no number, or not all of one.
_TEXTS: Mapping[str, Callable[[datetime, Locale], str]] = {
    "YYYY": lambda time, locale: f"{time.year:04}",
    "YY": lambda time, locale: f"{time.year % 100:02}",
    "MMMM": _month,
    "MMM": _short_month,
    "dddd": _weekday,
    "ddd": _short_weekday(3),
    "dd": _short_weekday(2),
    "GGGG": lambda time, locale: f"{time.isocalendar()[0]:04}",
    "GG": lambda time, locale: f"{time.isocalendar()[0] % 100:02}",
    "gggg": lambda time, locale: f"{locale.week(time.date())[0]:04}",
    "gg": lambda time, locale: f"{locale.week(time.date())[0] % 100:02}",
    "SSS": lambda time, locale: f"{time.microsecond // 1000:03}",
    "A": _half,
    "a": lambda time, locale: _half(time, locale).lower(),
    "X": lambda time, locale: str(int(time.timestamp())),
    "x": lambda time, locale: str(int(time.timestamp() * 1000)),
    "ZZ": lambda time, locale: _offset(time, ""),
    "Z": lambda time, locale: _offset(time, ":"),
}

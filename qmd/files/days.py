"""
Where the notes of days, weeks, months, quarters and years lie, and what a new one holds.

The settings of the vault say it: those of Obsidian's core plugin "Daily notes" and of the plugin
"Periodic Notes". Without them the patterns are those that both have by default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qmd.engine_text import engine_text
from qmd.errors import FileAccessError, InputError, NotFoundError
from qmd.files.vault import note_path
from qmd.ingest.rules import VAULT_FOLDER, read_settings, vault_settings
from qmd.parse.decode import decode
from qmd.system.beneath import READ, open_beneath
from qmd.system.settings_file import read_opened
from qmd.values import days
from qmd.values.days import CalendarWeek, MonthCalendar, Period, PeriodKind, period_around

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import Collection

MAX_TEMPLATE = 1024 * 1024  # bytes
#: How many periods away the nearest notes are looked for.
_MOST_AWAY = 100
#: Characters of a note's text that a reply has; the rest is read with `get`.
_MOST_TEXT = 20_000
MAX_PATTERN = 200  # characters, as of the name of a folder
#: Of a note from a template; a variable may stand for more characters than it has.
_MOST_VARIABLES = 1_000

DEFAULTS: Mapping[PeriodKind, str] = {
    "day": "YYYY-MM-DD",
    "week": "gggg-[W]ww",
    "month": "YYYY-MM",
    "quarter": "YYYY-[Q]Q",
    "year": "YYYY",
}
#: What the settings of "Periodic Notes" call them: up to version 0, and from version 1 on.
_NAMES: Mapping[PeriodKind, tuple[str, str]] = {
    "day": ("daily", "day"),
    "week": ("weekly", "week"),
    "month": ("monthly", "month"),
    "quarter": ("quarterly", "quarter"),
    "year": ("yearly", "year"),
}
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


class NotePattern(NamedTuple):
    """
    Where the notes of one kind lie.

    Attributes:
        folder: Relative to the vault; "" for its root.
        format: Of the path below it, in the tokens of moment.js.
        template: The path of a note in the vault; "" for none.
        dates: The format of ``{{date}}`` in it.
    """

    folder: str
    format: str
    template: str = ""
    dates: str = DEFAULTS["day"]


class DayNotes(NamedTuple):
    """
    How a vault names the notes of periods.

    Attributes:
        patterns: Those that its settings have; the others are `DEFAULTS`, without a folder.
        is_set: Whether the settings say anything of them.
        is_vault: Whether the folder is a vault of Obsidian.
    """

    patterns: Mapping[PeriodKind, NotePattern]
    locale: days.Locale
    is_set: bool
    is_vault: bool

    def pattern(self, kind: PeriodKind) -> NotePattern:
        return self.patterns.get(kind) or NotePattern("", DEFAULTS[kind], dates=DEFAULTS[kind])

    def period(self, kind: PeriodKind, day: date) -> Period:
        """The period of a kind with this day; the locale says when weeks begin."""
        return period_around(kind, day, self.locale.first_day)

    def path(self, period: Period) -> str:
        """The path of its note, relative to the vault."""
        pattern = self.pattern(period.kind)
        name = days.formatted_date(pattern.format, period.first, self.locale)
        return f"{pattern.folder}/{name}.md" if pattern.folder else f"{name}.md"

    def filled(self, template: str, period: Period, now: datetime) -> str:
        """
        The text of a new note.

        Args:
            template: With ``{{date}}``, ``{{time}}``, ``{{title}}``, ``{{yesterday}}``,
                ``{{tomorrow}}`` and the days of a week such as ``{{monday:YYYY-MM-DD}}``; a format
                may stand after a colon, and a distance before it, ``{{date+1d:YYYY-MM-DD}}``.
                Other variables stay.
        """
        title = self.path(period).rpartition("/")[2].removesuffix(".md")

        def value(match: re.Match[str]) -> str:
            name, pattern = match["name"].lower(), (match["format"] or "").strip()
            if name == "title":
                return title
            if name == "time":
                return days.formatted_date(pattern or "HH:mm", now, self.locale)
            day = _moved(period, name, match)
            if day is None:
                return match[0]
            default = self.pattern(period.kind if name == "date" else "day").dates
            at = datetime.combine(day, now.time())
            return days.formatted_date(pattern or default, at, self.locale)

        return _VARIABLE.sub(value, template, count=_MOST_VARIABLES)


_VARIABLE = re.compile(
    r"\{\{[ \t]{0,9}(?P<name>date|time|title|yesterday|tomorrow|sunday|monday|tuesday|wednesday"
    r"|thursday|friday|saturday)[ \t]{0,9}(?P<number>[+-]\d{1,5})?(?P<unit>[dwMyQ])?[ \t]{0,9}"
    r"(?::(?P<format>[^{}\n]{0,200}))?\}\}",
    re.IGNORECASE,
)


def _moved(period: Period, name: str, match: re.Match[str]) -> date | None:
    """The day that a variable stands for; None if there is none."""
    day = period.first
    if name in _WEEKDAYS:
        if period.kind != "week":
            return None
        day += timedelta(days=(_WEEKDAYS.index(name) - day.isoweekday()) % 7)
    by, unit = int(match["number"] or 0), match["unit"] or "d"
    by += {"yesterday": -1, "tomorrow": 1}.get(name, 0)
    kinds: dict[str, PeriodKind] = {"d": "day", "w": "week", "M": "month", "Q": "quarter"}
    kind: PeriodKind = kinds.get(unit, "year")
    if kind in ("day", "week"):
        moved = Period(kind, day).moved(by)
        return None if moved is None else moved.first
    around = period_around(kind, day).moved(by)
    if around is None:
        return None
    # 31 January and a month: 28 February, as moment.js counts.
    month_offset = period_around("month", day).first.month - period_around(kind, day).first.month
    month = Period("month", around.first).moved(month_offset)
    return None if month is None else min(month.first + timedelta(day.day - 1), month.last)


# --- settings ------------------------------------------------------------------------


def day_notes(root: Path) -> DayNotes:
    """What the settings of the vault with this top folder say; what cannot be read says nothing."""
    daily, _ = read_settings(root, f"{VAULT_FOLDER}/daily-notes.json")
    periodic: Mapping[str, Any]
    periodic, _ = read_settings(root, f"{VAULT_FOLDER}/plugins/periodic-notes/data.json")
    patterns: dict[PeriodKind, NotePattern] = {}
    if daily:
        patterns["day"] = _pattern(daily, "day")._replace(dates=DEFAULTS["day"])
    periodic_sets = periodic.get("calendarSets")
    if isinstance(periodic_sets, list):
        periodic = _active(periodic_sets, periodic.get("activeCalendarSet"))
    for kind, names in _NAMES.items():
        for name in names:
            settings = periodic.get(name)
            if isinstance(settings, dict) and settings.get("enabled") is True:
                patterns[kind] = _pattern(settings, kind)
    is_vault = bool(patterns) or vault_settings(root) is not None
    return DayNotes(patterns, _locale(root), bool(patterns), is_vault)


def _active(sets: list[Any], name: object) -> Mapping[str, Any]:
    """The set of calendars that is in use."""
    readable = [each for each in sets if isinstance(each, dict)]
    active = (each for each in readable if each.get("id") == name)
    return next(active, readable[0] if readable else {})


def _pattern(settings: Mapping[str, Any], kind: PeriodKind) -> NotePattern:
    def text(*names: str) -> str:
        values = (settings.get(name) for name in names)
        return next((each.strip() for each in values if isinstance(each, str)), "")

    pattern = text("format")
    if not pattern or len(pattern) > MAX_PATTERN:
        pattern = DEFAULTS[kind]
    template = text("template", "templatePath").strip("/")
    return NotePattern(text("folder").strip("/"), pattern, template, pattern.rpartition("/")[2])


def _locale(root: Path) -> days.Locale:
    """
    The language and the beginning of weeks that the plugin "Calendar" names.

    Obsidian's own language is not in the vault: without that plugin it is English.
    """
    calendar, _ = read_settings(root, f"{VAULT_FOLDER}/plugins/calendar/data.json")
    named = str(calendar.get("localeOverride") or "").lower()
    locale = days.ENGLISH
    if named.startswith("zh"):
        locale = days.CHINESE
    elif named not in ("", "system-default", "en", "en-ca"):
        locale = days.ISO
    week_start = calendar.get("weekStart")
    if week_start in _WEEKDAYS:
        return locale.with_weeks_from(_WEEKDAYS.index(week_start))
    return locale


def read_template(root: Path, path: str) -> str:
    """
    The text of a template of a vault; ``.md`` may be missing.

    Raises:
        NotFoundError: There is no such file.
        FileAccessError: It cannot be read, or is too long.
    """
    name = path if path.lower().endswith(".md") else f"{path}.md"
    try:
        if any(part.startswith(".") for part in name.split("/")):  # no rule shows what is hidden
            raise FileNotFoundError
        data = read_opened(open_beneath(root, name, READ), MAX_TEMPLATE, name)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NotFoundError(
            engine_text("The template {file} does not exist.", file=name),
            hint="Create it, or change the settings of daily notes in Obsidian.",
        ) from None
    except OSError as error:
        raise FileAccessError(name, error, reading=True) from error
    if len(data) > MAX_TEMPLATE:
        raise InputError(
            engine_text(
                "The template {file} has more than {most} bytes.",
                file=name,
                most=f"{MAX_TEMPLATE:,}",
            )
        )
    return decode(data).text


# --- which period --------------------------------------------------------------------

_HINT = "Write today, 2026-11-20, week, 2026-W47, month, 2026-11, 2026-Q4 or 2026."
_DAYS_OFF = {
    **dict.fromkeys(("", "today", "now", "今天"), 0),
    **dict.fromkeys(("yesterday", "昨天"), -1),
    **dict.fromkeys(("tomorrow", "明天"), 1),
    "前天": -2,
    "后天": 2,
}
_SIDES = {"this": 0, "last": -1, "next": 1}
_CHINESE_KINDS: Mapping[str, PeriodKind] = {"周": "week", "月": "month", "季度": "quarter"}
_CHINESE_PERIODS: dict[str, tuple[PeriodKind, int]] = {
    f"{side}{name}": (kind, by)
    for name, kind in _CHINESE_KINDS.items()
    for side, by in (("本", 0), ("上", -1), ("下", 1))
}
_CHINESE_PERIODS |= {"今年": ("year", 0), "去年": ("year", -1), "明年": ("year", 1)}
_RELATIVE = re.compile(r"(?:(this|last|next)[ -])?(day|week|month|quarter|year)")
_NAMED = re.compile(
    r"(?P<year>[1-9]\d{3})(?:-?W(?P<week>\d\d)|-Q(?P<quarter>[1-4])"
    r"|-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?",
    re.IGNORECASE | re.ASCII,
)


def read_period(text: str, today: date, notes: DayNotes) -> Period:
    """
    The period that a person writes: ``today``, ``2026-11-20``, ``week``, ``2026-W47``, ``2026-11``.

    Raises:
        InputError: It is none of the years 1000 to 9998.
    """
    written = " ".join(text.split()).lower()
    relative = _RELATIVE.fullmatch(written)
    around: Period | None
    try:
        if written in _DAYS_OFF:
            return notes.period("day", today + timedelta(days=_DAYS_OFF[written]))
        if relative is not None or written in _CHINESE_PERIODS:
            kind, by = _CHINESE_PERIODS.get(written, ("day", 0))
            if relative is not None:
                kind, by = relative[2], _SIDES[relative[1] or "this"]  # type: ignore[assignment]
            around = notes.period(kind, today).moved(by)
        else:
            around = _named(written, notes)
    except ValueError:
        around = None
    if around is None or not 1000 <= around.first.year <= 9998:
        raise InputError(
            engine_text("No day, week or month is written so: {text}", text=repr(text[:60])),
            hint=_HINT,
        )
    return around


def _named(written: str, notes: DayNotes) -> Period | None:
    """Raises ValueError: the calendar has no such day."""
    match = _NAMED.fullmatch(written)
    if match is None:
        return None
    year = int(match["year"])
    if match["week"]:
        return notes.period("week", date.fromisocalendar(year, int(match["week"]), 1))
    if match["quarter"]:
        return notes.period("quarter", date(year, int(match["quarter"]) * 3, 1))
    if match["day"]:
        return notes.period("day", date(year, int(match["month"]), int(match["day"])))
    if match["month"]:
        return notes.period("month", date(year, int(match["month"]), 1))
    return notes.period("year", date(year, 1, 1))


# --- which note ----------------------------------------------------------------------


def file_of(collection: Collection, notes: DayNotes, period: Period) -> str:
    """``collection/path``. Raises InvalidPathError: the settings lead out of the collection."""
    return f"{collection.name}/{note_path(notes.path(period))}"


def chosen(reader: Reader, name: str | None) -> tuple[Collection, DayNotes]:
    """
    The collection with the notes, and what its settings say of them.

    Raises:
        CollectionNotFoundError.
        InputError: There are several to choose from, or none.
    """
    if name is not None:
        collection = reader.collections.by_name(name)
        return collection, day_notes(Path(collection.path))
    every = [(each, day_notes(Path(each.path))) for each in reader.collections.all()]
    kinds: tuple[Callable[[DayNotes], bool], ...] = (
        lambda notes: notes.is_set,
        lambda notes: notes.is_vault,
        lambda notes: True,
    )
    for is_meant in kinds:
        meant = [each for each in every if is_meant(each[1])]
        if len(meant) == 1:
            return meant[0]
        if meant:
            names = ", ".join(each.name for each, _ in meant)
            raise InputError(
                engine_text("Several collections may have the notes of days: {names}", names=names),
                hint=f"Name one of them as the collection, such as {meant[0][0].name}.",
            )
    raise InputError(
        "There is no collection in which a note of a day could lie.",
        hint="POST /collections/add makes one of a folder; in the shell 'qmd up FOLDER' does.",
    )


def nearest(
    reader: Reader, collection: Collection, notes: DayNotes, period: Period, step: int
) -> str | None:
    """The next indexed note of the same kind before or after a period."""
    for by in range(1, _MOST_AWAY + 1):
        moved = period.moved(step * by)
        if moved is None:
            return None
        document = reader.documents.by_path(collection.name, notes.path(moved))
        if document is not None:
            return document.file
    return None


def calendar(reader: Reader, collection: Collection, notes: DayNotes, day: date) -> MonthCalendar:
    """The month with a day."""

    def note(period: Period) -> str | None:
        document = reader.documents.by_path(collection.name, notes.path(period))
        return None if document is None else document.file

    month = notes.period("month", day)
    weeks: list[CalendarWeek] = []
    week: Period | None = notes.period("week", month.first)
    while week is not None and week.first <= month.last:
        days = tuple(
            (each, note(notes.period("day", each)))
            for each in (week.first + timedelta(days=number) for number in range(7))
        )
        weeks.append(CalendarWeek(week, note(week), days))
        week = week.moved(1)
    return MonthCalendar(month, note(month), tuple(weeks))


def beginning(text: str) -> tuple[str, int]:
    """As many lines of a text as a reply has room for, and how many follow."""
    if len(text) <= _MOST_TEXT:
        return text, 0
    end = text.rfind("\n", 0, _MOST_TEXT) + 1 or _MOST_TEXT
    return text[:end], len(text[end:].splitlines())

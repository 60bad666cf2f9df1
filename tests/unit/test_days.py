"""Notes of days and longer periods: where they lie, and what a new one holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import InputError, InvalidPathError, NotFoundError
from qmd.files.days import DayNotes, day_notes, read_period
from qmd.values.days import CHINESE, ENGLISH, ISO, formatted_date

FRIDAY = date(2026, 11, 20)
PERIODIC = ".obsidian/plugins/periodic-notes/data.json"


def vault(folder: Path, files: dict[str, object]) -> DayNotes:
    for name, value in {".obsidian/app.json": {}, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = value if isinstance(value, str) else json.dumps(value)
        path.write_text(text, encoding="utf-8")
    return day_notes(folder)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        yield kb


@pytest.mark.parametrize(
    ("pattern", "english", "chinese"),
    [
        ("YYYY-MM-DD", "2026-11-20", "2026-11-20"),
        ("YYYY/MM/YYYY-MM-DD dddd", "2026/11/2026-11-20 Friday", "2026/11/2026-11-20 星期五"),
        ("dd, MMM Do YY", "Fr, Nov 20th 26", "五, 11月 20日 26"),
        ("D. MMMM Y [on] ddd", "20. November 2026 on Fri", "20. 十一月 2026 on 周五"),
        ("[W]WW GGGG e E d", "W47 2026 5 5 5", "W47 2026 4 5 5"),
        ("Qo [Q]Q DDD Mo", "4th Q4 324 11th", "4 Q4 324 11月"),
        ("HH:mm:ss h A", "18:05:09 6 PM", "18:05:09 6 晚上"),
        ("[a [b] f·\\Y", "a [b f·Y", "a [b f·Y"),
        ("", "", ""),
    ],
)
def test_dates_have_the_pattern_of_moment_js(pattern: str, english: str, chinese: str) -> None:
    time = datetime(2026, 11, 20, 18, 5, 9)
    assert formatted_date(pattern, time, ENGLISH) == english
    assert formatted_date(pattern, time, CHINESE) == chinese


@pytest.mark.parametrize(
    ("day", "english", "iso"),
    [
        ("2026-11-22", "2026-48", "2026-47"),  # a Sunday
        ("2027-01-01", "2027-01", "2026-53"),
        ("2027-01-04", "2027-02", "2027-01"),
        ("2025-12-28", "2026-01", "2025-52"),
        ("2024-12-30", "2025-01", "2025-01"),
    ],
)
def test_weeks_are_counted_as_the_language_counts_them(day: str, english: str, iso: str) -> None:
    when = date.fromisoformat(day)
    assert formatted_date("gggg-ww", when, ENGLISH) == english
    assert formatted_date("gggg-ww", when, ISO) == formatted_date("GGGG-WW", when) == iso


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "2026-11-20"),
        ("Today", "2026-11-20"),
        ("昨天", "2026-11-19"),
        ("2026-02-28", "2026-02-28"),
        ("week", "2026-W47"),
        ("last week", "2026-W46"),
        ("next-month", "2026-12"),
        ("下周", "2026-W48"),
        ("2026-w53", "2026-W53"),
        ("2026W01", "2026-W01"),
        ("2026-Q1", "2026-Q1"),
        ("last quarter", "2026-Q3"),
        ("2027", "2027"),
        ("next year", "2027"),
    ],
)
def test_a_period_is_written_in_words_or_numbers(tmp_path: Path, text: str, name: str) -> None:
    assert read_period(text, FRIDAY, vault(tmp_path, {})).name == name


@pytest.mark.parametrize("text", ["2026-02-30", "2026-W54", "2025-W53", "9999", "12", "x" * 9999])
def test_other_texts_are_no_period(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="No day, week or month"):
        read_period(text, FRIDAY, vault(tmp_path, {}))


@pytest.mark.parametrize(
    ("files", "when", "path"),
    [
        ({}, "2026-11-20", "2026-11-20.md"),
        ({}, "2026-W47", "2026-W47.md"),
        ({}, "2026-Q4", "2026-Q4.md"),
        (
            {".obsidian/daily-notes.json": {"folder": "/Day/", "format": "YYYY/DD MMM"}},
            "2026-11-20",
            "Day/2026/20 Nov.md",
        ),
        (
            {
                ".obsidian/daily-notes.json": {"folder": "Day"},
                PERIODIC: {
                    "daily": {"enabled": False, "folder": "Unused"},
                    "weekly": {"enabled": True, "folder": "Weeks", "format": "gggg-[w]ww"},
                    "monthly": {"enabled": True, "format": "", "folder": "Months"},
                },
            },
            "2026-W47",
            "Weeks/2026-w47.md",
        ),
        (
            {
                PERIODIC: {
                    "activeCalendarSet": "work",
                    "calendarSets": [
                        {"id": "home", "day": {"enabled": True, "folder": "Home"}},
                        {"id": "work", "day": {"enabled": True, "folder": "Work"}},
                    ],
                }
            },
            "2026-11-20",
            "Work/2026-11-20.md",
        ),
        (
            {
                ".obsidian/daily-notes.json": {"format": "dddd YYYY-ww"},
                ".obsidian/plugins/calendar/data.json": {
                    "localeOverride": "zh-cn",
                    "weekStart": "sunday",
                },
            },
            "2026-11-22",
            "星期日 2026-48.md",
        ),
        ({".obsidian/daily-notes.json": "no JSON"}, "2026-11-20", "2026-11-20.md"),
        ({".obsidian/daily-notes.json": {"folder": 3, "format": []}}, "2026", "2026.md"),
        ({PERIODIC: {"calendarSets": [3], "daily": 4}}, "2026-11", "2026-11.md"),
    ],
)
def test_the_settings_of_the_vault_say_where_a_note_lies(
    tmp_path: Path, files: dict[str, object], when: str, path: str
) -> None:
    notes = vault(tmp_path, files)
    assert notes.path(read_period(when, FRIDAY, notes)) == path


def test_a_week_begins_on_the_day_of_its_language(tmp_path: Path) -> None:
    notes = vault(tmp_path, {})
    week = read_period("week", date(2026, 11, 22), notes)  # a Sunday
    assert (week.first, week.last) == (date(2026, 11, 22), date(2026, 11, 28))
    assert notes.path(week) == "2026-W48.md" and week.name == "2026-W48"


def test_a_template_has_variables(tmp_path: Path) -> None:
    notes = vault(tmp_path, {PERIODIC: {"weekly": {"enabled": True}}})
    now = datetime(2026, 11, 25, 9, 7)
    day, week = (read_period(each, FRIDAY, notes) for each in ("today", "week"))
    text = (
        "{{title}} {{date:D MMM}} {{ time }} {{date+1M:YYYY-MM-DD}} {{yesterday}} {{Tomorrow:DD}}"
    )
    assert notes.filled(text, day, now) == "2026-11-20 20 Nov 09:07 2026-12-20 2026-11-19 21"
    text = "{{date}} {{monday:DD}}-{{sunday:DD}} {{other}} {{{date:[x]}}} <% tp.file %>"
    assert notes.filled(text, week, now) == "2026-W47 16-15 {{other}} {x} <% tp.file %>"
    assert notes.filled("{{monday}}", day, now) == "{{monday}}"
    last = read_period("2026-01-31", FRIDAY, notes)
    assert notes.filled("{{date+1M}} {{date-1y}} {{date+1Q}}", last, now) == (
        "2026-02-28 2025-01-31 2026-04-30"
    )
    assert notes.filled("{{date+99999y}}", last, now) == "{{date+99999y}}"


def test_a_note_is_created_only_when_asked_to(kb: KnowledgeBase, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    vault(
        root,
        {
            ".obsidian/daily-notes.json": {"folder": "Day", "template": "Templates/Day"},
            "Templates/Day.md": "# {{title}}\n\n- [ ] Write\n",
            "Day/2026-11-17.md": "Tuesday\n",
            "Day/2026-12-01.md": "x\n" * 20_000,
        },
    )
    kb.add_collection(root, name="notes")
    kb.index()
    note = kb.periodic_note("2026-11-20")
    assert (note.file, note.exists, note.text) == ("notes/Day/2026-11-20.md", False, "")
    assert note.previous == "notes/Day/2026-11-17.md"
    assert note.following == "notes/Day/2026-12-01.md"
    assert not (root / "Day/2026-11-20.md").exists()
    created = kb.create_periodic_note("2026-11-20")
    assert created.written and created.file == note.file
    assert kb.periodic_note("2026-11-20").text == "# 2026-11-20\n\n- [ ] Write\n"
    assert kb.tasks(due="none").total == 2  # the template's own, too
    again = kb.create_periodic_note("2026-11-20")
    assert (again.written, again.docid) == (False, created.docid)
    assert kb.undo.undo_change(created.change or 0).undone
    assert not kb.periodic_note("2026-11-20").exists
    long = kb.periodic_note("2026-12-01")
    assert len(long.text) == 20_000 and long.more_lines == 10_000
    (root / "Templates/Day.md").unlink()
    (root / ".obsidian/daily-notes.json").write_text('{"template": ".obsidian/app"}')
    with pytest.raises(NotFoundError, match=r"app\.md does not exist"):
        kb.create_periodic_note("2026-11-19")
    (root / ".obsidian/daily-notes.json").write_text('{"template": "Templates/Day"}')
    with pytest.raises(NotFoundError, match=r"Templates/Day\.md does not exist"):
        kb.create_periodic_note("2026-11-20")


def test_of_several_collections_the_one_with_settings_is_meant(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no collection"):
        kb.periodic_note()
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        kb.add_collection(tmp_path / name, name=name)
    with pytest.raises(InputError, match="a, b, c"):
        kb.periodic_note()
    assert kb.periodic_note("2026", collection="b").file == "b/2026.md"
    vault(tmp_path / "c", {})
    assert kb.periodic_note("2026").file == "c/2026.md"
    vault(tmp_path / "b", {".obsidian/daily-notes.json": {"folder": "Day"}})
    assert kb.periodic_note("2026-11-20").file == "b/Day/2026-11-20.md"


@pytest.mark.parametrize("setting", [{"folder": "../out"}, {"format": "[../../x]"}])
def test_settings_do_not_lead_out_of_the_vault(
    kb: KnowledgeBase, tmp_path: Path, setting: dict[str, object]
) -> None:
    vault(tmp_path / "notes", {".obsidian/daily-notes.json": setting})
    kb.add_collection(tmp_path / "notes", name="notes")
    with pytest.raises(InvalidPathError):
        kb.periodic_note()
    with pytest.raises(InvalidPathError):
        kb.create_periodic_note()

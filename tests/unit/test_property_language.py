"""Conditions on properties in a query, and as filters."""

from __future__ import annotations

import pytest

from qmd.errors import InputError
from qmd.search.query import parse_string, possible_keys
from qmd.values.properties import (
    PropertyCondition,
    ValueRange,
    date_of,
    fold_key,
    fold_value,
    number_of,
    parse_filter,
    property_rows,
)

KEYS = frozenset({"status", "due", "rating", "author", "due-date", "note", "状态"})


def conditions(query: str) -> list[str]:
    """The keys of the conditions of a query, with OR between alternatives and ``-`` in front."""
    parsed = parse_string(query, KEYS)
    either = [" OR ".join(each if isinstance(each, str) else each.key for each in group)
              for group in parsed.either]  # fmt: skip
    return either + [f"-{each if isinstance(each, str) else each.key}" for each in parsed.none_of]


@pytest.mark.parametrize(
    ("query", "keys", "text"),
    [
        ("boat status:draft", ["status"], "boat"),
        ("status:draft -due:2026-12", ["status", "-due"], ""),
        ("status:draft OR rating:>4 boat", ["status OR rating"], "boat"),
        ("status:draft OR tag:work", ["status OR work"], ""),
        ("status:draft OR boat", ["status"], "boat"),
        ('author:"Li Lei" boat', ["author"], "boat"),
        ("author：「李 雷」 －状态：草稿", ["author", "-状态"], ""),
        ("Status:Draft DUE-DATE:*", ["status", "due-date"], ""),
        ("http://x std:vector", [], "http://x std:vector"),
        ("note: this is text", [], "note: this is text"),
        ("rating:> 4", [], "rating:> 4"),
        ("rating:>many", [], "rating:>many"),
        ("(status:draft)", [], "(status:draft)"),
        ("--status:draft", [], "--status:draft"),
        ('"status:draft"', [], "status:draft"),
    ],
)
def test_a_condition_narrows_and_all_else_is_text(query: str, keys: list[str], text: str) -> None:
    assert conditions(query) == keys
    assert parse_string(query, KEYS).text == text


def test_a_field_wins_over_a_property_of_its_name() -> None:
    query = "title:plan tag:work path:a description:b Title:x"
    assert possible_keys(query) == set()


def test_only_what_may_be_a_condition_is_looked_up() -> None:
    assert possible_keys("plain words, no sign") == set()
    assert possible_keys("at 12:30 see http://x, note: -Due Date:x status：甲") == {
        *("12", "http", "date", "status"),
    }


@pytest.mark.parametrize(
    ("text", "ranges", "negated"),
    [
        ("status:In progress", (ValueRange("text", "in progress", "in progress"),), False),
        ("Due Date : <2026-12-01", (ValueRange("date", high="2026-12-01", open_high=True),), False),
        ("-status:*", (), True),
        ("rating:3..5", (ValueRange("number", 3.0, 5.0),), False),
        ("rating:>=4", (ValueRange("number", low=4.0),), False),
        ("due:<2026-12-01", (ValueRange("date", high="2026-12-01", open_high=True),), False),
    ],
)
def test_a_filter_is_one_condition(
    text: str, ranges: tuple[ValueRange, ...], negated: bool
) -> None:
    condition, is_negated = parse_filter(text)
    assert (condition.ranges, is_negated) == (ranges, negated)
    assert isinstance(condition, PropertyCondition)


@pytest.mark.parametrize("text", ["", "status", "status:", ":x", "rating>4", "due:>soon"])
def test_a_filter_that_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_filter(text)
    assert "KEY:VALUE" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2026-12-01", "2026-12-01"),
        ("2026/2/3", "2026-02-03"),
        ("2026年12月1日", "2026-12-01"),
        ("2026-12", "2026-12"),
        ("2026-12-01T18:00:05+08:00", "2026-12-01T18:00:05"),
        ("[[2026-12-01]]", "2026-12-01"),
        ("2026-13-01", None),
        ("2026-12-01T25:00", None),
        ("2026.12", None),
        ("in 2026-12", None),
    ],
)
def test_dates_are_read_in_a_few_spellings(written: str, date: str | None) -> None:
    assert date_of(fold_value(written)) == date


def test_numbers_and_folded_forms() -> None:
    assert [number_of(each) for each in ("4", "-4.5", ".5", "1e3")] == [4, -4.5, 0.5, 1000]
    assert [number_of(each) for each in ("", "4a", "1.2.3", "1e999", "nan", "٤")] == [None] * 6
    assert [number_of(each) for each in ("02134", "007", "00.5", "+01")] == [None] * 4
    assert [number_of(each) for each in ("0", "-0.5", "+5", "5.")] == [0, -0.5, 5, 5]
    assert fold_key("Due  Date:") == "due-date"
    assert fold_value("[[People/Li Lei.md#Job|Lei]]") == "li lei"


def test_values_of_every_kind_become_rows() -> None:
    properties = {
        "rating": [4, "none", None],
        "Book": {"Author": "[[Li Lei]]", "read": True},
        "due": "2026-12",
        "empty": [],
    }
    assert [(row.key, row.kind, row.text, row.date) for row in property_rows(properties)] == [
        ("rating", "number", "4", None),
        ("rating", "text", "none", None),
        ("rating", "empty", "", None),
        ("book.author", "text", "li lei", None),
        ("book.read", "boolean", "true", None),
        ("due", "date", "2026-12", "2026-12-01"),
        ("empty", "empty", "", None),
    ]

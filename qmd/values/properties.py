"""
Makes the properties of documents comparable, and reads conditions on them.

A property of a document is a key with one or more values, which its frontmatter and its inline
fields say. A list has one value per element, and a key inside another is written ``book.author``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import date as Date
from functools import lru_cache
from typing import Annotated, Literal

from qmd import lazy
from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.records import NamedTuple, dataclass, of_tuples
from qmd.values.facts import DAY, MONTH, Describe, Range

PropertyKind = Literal["text", "number", "date", "boolean", "empty"]

#: The most values that are kept of one document. Frontmatter that has more is data, not metadata.
MAX_VALUES = 1000
#: Characters of a value that are kept and compared.
MAX_VALUE = 200
#: A longer key, in characters, is left out.
MAX_KEY = 100
#: Deeper values are left out.
MAX_DEPTH = 20

_UNTYPABLE = lazy.pattern(r"[\s:：\"“”„＂「」]+")
#: As the parser has it: "02134" and "007" are text.
_NUMBER = lazy.pattern(
    r"[+-]?(?:(?:0|[1-9]\d{0,29})(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?", re.ASCII
)
_DATE = lazy.pattern(
    r"(\d{4})(?:([-/])(\d{1,2})(?:\2(\d{1,2}))?|年(\d{1,2})月(?:(\d{1,2})[日号])?)"
    r"(?:(?<=\d)[t ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_YEAR = lazy.pattern(r"\d{4}", re.ASCII)
_WIKILINK = lazy.pattern(r"\[\[(?:[^\[\]|#]*/)?([^\[\]|#/]+)(?:#[^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")


class PropertyRow(NamedTuple):
    """
    One value of a property of a document.

    Attributes:
        key: As `fold_key` makes it.
        text: As `fold_value` makes it; what conditions compare.
        value: The text as written, cut to `MAX_VALUE` characters.
        number: The number that the text is; None if it is none.
        date: The date or time that the text is, in ISO 8601 without the offset from UTC; None if
            it is none.
    """

    key: str
    kind: PropertyKind
    text: str
    value: str
    number: float | None = None
    date: str | None = None


_property_row = of_tuples(PropertyRow)


@dataclass(frozen=True, slots=True)
class PropertySummary:
    """A key that documents have, and what its values are."""

    key: Annotated[str, Describe("As in a query; a.b is b inside a")]
    documents: Annotated[int, Range(1), Describe("How many have it")]
    kinds: Annotated[
        Mapping[str, int], Describe("text, number, date, boolean or empty: how many values")
    ]


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """A value that documents have for one key."""

    value: Annotated[str, Describe("As written; one spelling if letter case differs")]
    kind: PropertyKind
    documents: Annotated[int, Range(1), Describe("How many have it")]


@dataclass(frozen=True, slots=True)
class PropertyList:
    """The properties of all documents, or the values of one."""

    keys: Annotated[tuple[PropertySummary, ...], Describe("Those of most documents first")] = ()
    values: Annotated[tuple[PropertyValue, ...], Describe("Those of most documents first")] = ()
    total: Annotated[int, Range(0), Describe("How many there are in all")] = 0


# --- folded forms -----------------------------------------------------------------------


@lru_cache(maxsize=1024)  # the notes of a collection have the same few keys
def fold_key(key: str) -> str:
    """
    The form of a key in which it is typed and compared: ``Due Date`` gives ``due-date``.

    Letter case does not count, and what cannot stand before the colon of a condition (blanks,
    colons, quotes) is written ``-``.
    """
    return _UNTYPABLE.sub("-", _without_case(key)).strip("-")


def fold_value(text: str) -> str:
    """
    The form in which values are compared: without letter case, at most `MAX_VALUE` characters.

    A wikilink counts as the name of its note: ``[[People/Li Lei|Lei]]`` gives ``li lei``.
    """
    return _folded(" ".join(text[: 4 * MAX_VALUE].split()))


def _folded(plain: str) -> str:
    """As `fold_value`, for a text with single blanks."""
    link = _WIKILINK.fullmatch(plain) if plain.startswith("[[") else None
    return _without_case(link[1].removesuffix(".md") if link else plain)[:MAX_VALUE].strip()


def _without_case(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


# --- numbers and dates ------------------------------------------------------------------


def number_of(folded: str) -> float | None:
    """The number that a folded text is; None if it is none."""
    if not folded or folded[0] not in "+-.0123456789" or _NUMBER.fullmatch(folded) is None:
        return None
    number = float(folded)
    return number if math.isfinite(number) else None


def date_of(folded: str) -> str | None:
    """
    The month, day or moment that a folded text names, in ISO 8601; None if it names none.

    ``2026-12-01``, ``2026/12/1``, ``2026年12月1日``, ``2026-12`` and ``2026-12-01T18:00`` do.
    An offset from UTC is left out: the time on the clock counts.
    """
    match = _DATE.fullmatch(folded) if folded[:4].isdigit() else None
    if match is None:
        return None
    year, month, day = match[1], int(match[3] or match[5]), match[4] or match[6]
    try:
        Date(int(year), month, int(day or 1))
    except ValueError:
        return None
    if day is None:
        return None if match[7] else f"{year}-{month:02}"
    iso = f"{year}-{month:02}-{int(day):02}"
    if match[7] is None:
        return iso
    if int(match[7]) > 23 or int(match[8]) > 59 or int(match[9] or 0) > 59:
        return None
    return f"{iso}T{match[7]}:{match[8]}" + (f":{match[9]}" if match[9] else "")


def year_of(folded: str) -> str | None:
    """The text, if it can be a year; else None."""
    return folded if _YEAR.fullmatch(folded) else None


# --- rows -------------------------------------------------------------------------------


def property_rows(
    properties: Mapping[str, object], numbers: Iterable[tuple[str, float, str]] = ()
) -> list[PropertyRow]:
    """
    The values of a document's properties, at most `MAX_VALUES` of them.

    Args:
        properties: JSON values by key.
        numbers: What is written of some numbers, with their keys.
    """
    rows: list[PropertyRow] = []
    _add_rows(rows, "", properties, 0)
    written: dict[tuple[str, float | None], str] = {
        (fold_key(key), value): text for key, value, text in numbers
    }
    if not written:
        return rows
    return [row._replace(value=written.get((row.key, row.number), row.value)) for row in rows]


def _add_rows(rows: list[PropertyRow], key: str, value: object, depth: int) -> None:
    """Add the rows of a value and of those inside it, as far as there is room."""
    if depth > MAX_DEPTH or len(rows) >= MAX_VALUES:
        return
    if isinstance(value, str):
        rows.append(_property_row((key, *_written_row(value[: 4 * MAX_VALUE]))))
    elif isinstance(value, dict) and (value or not key):
        for name, member in value.items():
            inner = fold_key(str(name)[: 4 * MAX_KEY])
            whole = f"{key}.{inner}" if key and inner else inner
            if inner and len(whole) <= MAX_KEY:
                _add_rows(rows, whole, member, depth + 1)
    elif isinstance(value, list) and value:
        for element in value:
            _add_rows(rows, key, element, depth + 1)
    else:
        rows.append(_row(key, value))


def _row(key: str, value: object) -> PropertyRow:
    if isinstance(value, bool):
        text = "true" if value else "false"
        return PropertyRow(key, "boolean", text, text)
    if value is None or isinstance(value, (dict, list)):
        return PropertyRow(key, "empty", "", "")
    return PropertyRow(key, *_written_row(_number_text(value)[: 4 * MAX_VALUE]))


@lru_cache(maxsize=4096)  # many notes have the same values: a status, a type, a day
def _written_row(written: str) -> tuple[PropertyKind, str, str, float | None, str | None]:
    """The columns of a row after its key, for a value that is written as text."""
    plain = " ".join(written.split())
    text = _folded(plain)
    if not text:
        return "empty", "", "", None, None
    number = number_of(text)
    date = date_of(text) if number is None else None
    if date is not None and len(date) == len("2026-12"):
        date += "-01"
    kind: PropertyKind = "text" if date is None else "date"
    return kind if number is None else "number", text, plain[:MAX_VALUE], number, date


def _number_text(value: object) -> str:
    """A number as text; ``4`` for 4.0. (Python refuses to write integers of 5,000 digits.)"""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    try:
        return str(value)
    except ValueError:
        return "…"


# --- conditions -------------------------------------------------------------------------
# Such as ``status:draft``, ``rating:>4``, ``due:2026-12``, ``author:"Li Lei"``. A value meets a
# condition if it lies in one of a few ranges, so the store knows no signs.

Column = Literal["text", "number", "date"]

#: Sorts after each text that begins with what stands before it.
_LAST = "\U0010ffff"

_KEY = rf"[^\s:：\"“”„＂「」－-][^\s:：\"“”„＂「」]{{0,{MAX_KEY - 1}}}"
_BLANKS = r" \t-\r\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SIGN = ">=|<=|>|<|=|≥|≤|＞＝|＜＝|＞|＜|＝"
_SIGNS_ALONE = "<>=≥≤＞＜＝"
_QUOTES = '"“”„＂「」'
_PHRASE = r'"([^"]*)"|[“”„＂]([^“”„＂]*)[“”＂]|「([^「」]*)」'
#: A condition at the beginning of a text: "-", key, sign, one of three kinds of phrase, word.
CONDITION = lazy.pattern(
    rf"([-－])?({_KEY})[:：]({_SIGN})?(?:(?:{_PHRASE})(?=\s|$)|([^\s{_SIGNS_ALONE}]\S*))"
)
#: The key of a filter may have blanks inside.
_FILTER_KEY = rf"[^\s:：\"“”„＂「」－-][^:：\"“”„＂「」\r\n]{{0,{MAX_KEY - 1}}}"
_FILTER = lazy.pattern(
    rf"\s*([-－])?({_FILTER_KEY})[:：]\s*({_SIGN})?\s*((?:[^\s{_SIGNS_ALONE}].*)?)", re.DOTALL
)
#: What `parse_filter` accepts, as patterns of JSON Schema, but not every spelling of a date. They
#: name all blanks, because other languages have a narrower ``\s`` than Python.
FILTER_PATTERNS = tuple(
    pattern.replace("\\s", _BLANKS)
    for pattern in (
        rf"^[\s]*[-－]?{_FILTER_KEY}[:：][\s]*[=＝]?[\s]*[^\s{_SIGNS_ALONE}]",
        rf"^[\s]*[-－]?{_FILTER_KEY}[:：][\s]*({_SIGN})[\s]*"
        rf"([+-]?(0|[1-9][0-9]{{0,14}})(\.[0-9]{{1,9}})?|{MONTH}|{DAY})[\s]*$",
    )
)
#: What may be the key of a condition, anywhere in a text.
POSSIBLE_KEY = lazy.pattern(rf"(?:(?<=\s)|(?<=\s[-－])|(?<=^[-－])|^)({_KEY})[:：](?=\S)")
_SIGNS = {"≥": ">=", "≤": "<=", "＞＝": ">=", "＜＝": "<=", "＞": ">", "＜": "<", "＝": "="}
#: YAML reads these words as booleans, and people search for what they have written.
_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}

#: The keys that are about tasks and facts of notes, too, and the columns that they compare.
LINE_COLUMNS = {
    "task": "tasks.status",
    **{key: f"tasks.{key}" for key in ("due", "scheduled", "start")},
    "fact": "observations.category",
}

_HINT = "Write KEY:VALUE, such as status:draft, rating:>4, due:<2026-12-01 or author:*."


class ValueRange(NamedTuple):
    """
    The values from ``low`` to ``high`` in one form of a value.

    Attributes:
        column: Whether values are compared as folded texts, as numbers or as dates.
        low, high: None for no limit.
        open_low, open_high: Whether the limit itself is outside.
    """

    column: Column
    low: str | float | None = None
    high: str | float | None = None
    open_low: bool = False
    open_high: bool = False


class PropertyCondition(NamedTuple):
    """
    A document meets it if a value of its property ``key`` lies in one of the ranges.

    Without ranges it is enough to have the property.
    """

    key: str
    ranges: tuple[ValueRange, ...] = ()


def parse_filter(text: str) -> tuple[PropertyCondition, bool]:
    """
    Read a filter, such as ``rating:>4`` or ``-status:done``.

    It is one condition, so its value may have blanks without quotes around it.

    Returns:
        The condition, and whether documents that meet it are left out.

    Raises:
        InputError: The text is no condition.
    """
    match = _FILTER.fullmatch(text.encode("utf-8", "replace").decode())  # no half surrogates
    if match is None or not match[4]:
        raise InputError(
            engine_text("{text} is no condition on a property.", text=f"{text!r}"), hint=_HINT
        )
    key, value = fold_key(match[2]), match[4].rstrip()
    is_quoted = len(value) > 1 and value[0] in _QUOTES and value[-1] in _QUOTES
    plain = value[1:-1] if is_quoted else value
    sign: str | None = _SIGNS.get(match[3], match[3])
    if sign is None and not is_quoted:
        return _of_word(key, plain), bool(match[1])
    ranges = _compared(sign or "=", fold_value(plain))
    if not ranges:
        raise InputError(
            engine_text("{value} is neither a number nor a date.", value=f"{value!r}"), hint=_HINT
        )
    return PropertyCondition(key, ranges), bool(match[1])


def read_condition(match: re.Match[str]) -> PropertyCondition | None:
    """The condition of a match of `CONDITION`; None if it is text, such as ``a:>b``."""
    key = fold_key(match[2])
    sign: str | None = _SIGNS.get(match[3], match[3])
    phrase = next((part for part in match.group(4, 5, 6) if part is not None), None)
    if phrase is None:
        word = match[7].strip(_QUOTES)
        if not word:
            return None
        if sign is None:
            return _of_word(key, word)
        phrase = word
    ranges = _compared(sign or "=", fold_value(phrase))
    return PropertyCondition(key, ranges) if ranges else None


def _of_word(key: str, word: str) -> PropertyCondition:
    """The condition for a word without a sign: a value, a beginning, an interval, or any value."""
    if word in ("*", "＊"):
        return PropertyCondition(key)
    if word.endswith(("*", "＊")):
        beginning = fold_value(word[:-1])
        return PropertyCondition(key, (ValueRange("text", beginning, beginning + _LAST),))
    low, dots, high = word.partition("..")
    if dots:
        interval = _interval(fold_value(low), fold_value(high))
        if interval is not None:
            return PropertyCondition(key, (interval,))
    return PropertyCondition(key, _compared("=", fold_value(word)))


def _interval(low: str, high: str) -> ValueRange | None:
    """Numbers or dates between two, both inside; None if they are neither."""
    first, last = number_of(low), number_of(high)
    if first is not None and last is not None:
        return ValueRange("number", first, last)
    start, end = date_of(low), date_of(high)
    if start is not None and end is not None:
        return ValueRange("date", start, end + _LAST)
    return None


def _compared(sign: str, value: str) -> tuple[ValueRange, ...]:
    """The ranges of the values that compare so with ``value``; none if they cannot be compared."""
    ranges = []
    number = number_of(value)
    date = date_of(value) if number is None else year_of(value)
    if sign == "=":
        texts = filter(None, (value, _BOOLEANS.get(value))) if value else ("",)
        ranges += [ValueRange("text", text, text) for text in texts]
    if number is not None:
        ranges.append(_range("number", sign, number, number))
    if date is not None:
        # All moments of a day begin with it, and so do the days of a month.
        ranges.append(_range("date", sign, date, date + _LAST))
    return tuple(ranges)


def _range(column: Column, sign: str, low: str | float, high: str | float) -> ValueRange:
    """The range of what compares so with all that lies from ``low`` to ``high``."""
    if sign == "<":
        return ValueRange(column, high=low, open_high=True)
    if sign == "<=":
        return ValueRange(column, high=high)
    if sign == ">":
        return ValueRange(column, low=high, open_low=True)
    if sign == ">=":
        return ValueRange(column, low=low)
    return ValueRange(column, low, high)

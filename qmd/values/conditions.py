"""
Conditions on properties: ``status:draft``, ``rating:>4``, ``due:2026-12``, ``author:"Li Lei"``.

A value meets a condition if it lies in one of a few ranges, so the store knows no signs.
"""

from __future__ import annotations

import re
from typing import Literal

from qmd import lazy
from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.records import NamedTuple
from qmd.values.properties import MAX_KEY, date_of, fold_key, fold_value, number_of, year_of

Column = Literal["text", "number", "date"]

#: Sorts behind each text that begins with what stands before it.
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
        r"([+-]?[0-9]{1,15}(\.[0-9]{1,9})?|[1-9][0-9]{3}-(0[1-9]|1[0-2])(-(0[1-9]|1[0-9]|2[0-8]))?)"
        r"[\s]*$",
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

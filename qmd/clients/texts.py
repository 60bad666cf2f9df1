"""
Changes one member of a JSON or TOML text, and leaves every other character as it is.

A parser that writes the whole text anew would lose comments, order and indentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qmd.system.settings_file import toml_values

#: The most levels of nesting.
MAX_DEPTH = 100

# A repeated group takes some 100 bytes of memory each time, so none is repeated by the character.
_BLANK = re.compile(r"[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r'(?P<string>"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*")'
    r"|(?P<scalar>-?[0-9][0-9.eE+-]*|true|false|null)|(?P<sign>[{}\[\]:,])"
)


class Member(NamedTuple):
    """The place of a member: from its key to the end of its value."""

    key: str
    start: int
    value: int
    end: int


class Object(dict[str, Any]):
    """
    The values of an object by their keys.

    Attributes:
        start, end: Its place in the text.
        members: The places of its members. Of those with one key the last counts.
    """

    def __init__(self, start: int) -> None:
        super().__init__()
        self.start = self.end = start
        self.members: list[Member] = []

    def place(self, key: str) -> Member | None:
        """The place of the member of this key."""
        return next((each for each in reversed(self.members) if each.key == key), None)


def decoded(text: str) -> Any:
    """The value of a text. Raises ValueError."""
    return _Scanner(text).whole()


def with_member(text: str, path: Sequence[str], value: object) -> str:
    """
    The text with ``value`` at the keys of ``path``; objects that are missing are made.

    Raises:
        ValueError: The text is no JSON, or something on the way is no object.
    """
    at, unit = decoded(text), _unit(text)
    begin, end = 0, len(text)
    for depth, key in enumerate(path):
        if not isinstance(at, Object):
            where = ".".join(path[:depth]) or "the file"
            raise ValueError(f"{where} is no object")  # noqa: TRY004 - the text is wrong
        place = at.place(key)
        if place is None:
            for outer in reversed(path[depth + 1 :]):
                value = {outer: value}
            return _with_new_member(text, at, key, value, unit, depth)
        at, begin, end = at[key], place.value, place.end
    earlier = text[begin:end]
    if isinstance(at, Object) and at and "\n" not in earlier and "\r" not in earlier:
        written = json.dumps(value, ensure_ascii=False)
    else:
        written = _written(value, unit, _indent(text, begin, unit, len(path)), _newline(text))
    return text[:begin] + written + text[end:]


def value_at(values: object, path: Sequence[str]) -> Any:
    """What decoded values have at the keys of ``path``; None if there is nothing."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def without_member(text: str, path: Sequence[str]) -> str:
    """
    The text without the member at ``path``; the same text if there is none.

    Raises:
        ValueError: The text is no JSON.
    """
    *outer, last = path
    at = decoded(text)
    for key in outer:
        at = at.get(key) if isinstance(at, Object) else None
    place = at.place(last) if isinstance(at, Object) else None
    return text if place is None else _cut(text, at, place)


def _cut(text: str, at: Object, place: Member) -> str:
    position = at.members.index(place)
    if position + 1 < len(at.members):
        return text[: place.start] + text[at.members[position + 1].start :]
    comma = _after_blank(text, place.end)
    end = comma + 1 if text.startswith(",", comma) else place.end
    if position:
        return text[: at.members[position - 1].end] + text[end:]
    inside = text[at.start + 1 : place.start] + text[end : at.end - 1]
    kept = inside if inside.strip() else ""  # comments need their line ends
    return text[: at.start + 1] + kept + text[at.end - 1 :]


def _after_blank(text: str, position: int) -> int:
    """Where the next token begins, after spaces and comments."""
    while (match := _BLANK.match(text, position)) is not None:
        position = match.end()
    return position


def _with_new_member(text: str, at: Object, key: str, value: object, unit: str, depth: int) -> str:
    newline = _newline(text)
    close = at.end - 1
    body = text[at.start + 1 : close]
    name = json.dumps(key, ensure_ascii=False)
    outer = _indent(text, at.start, unit, depth)
    is_flat = bool(at.members) and "\n" not in body and "\r" not in body
    inner = outer + unit
    if at.members and not is_flat:
        inner = _line_indent(text, at.members[-1].start) or inner
    written = _written(value, unit, inner, newline)
    if is_flat:
        written = json.dumps(value, ensure_ascii=False)
    last = at.members[-1].end if at.members else at.start + 1
    rest = text[last:close]
    comma = ""
    if at.members:
        comma = "" if text.startswith(",", _after_blank(text, last)) else ","
    kept = rest.rstrip(" \t\r\n")
    before = text[:last] + comma + kept
    if is_flat and "//" not in kept:
        return f"{before} {name}: {written}{rest[len(kept) :]}{text[close:]}"
    tail = rest[len(kept) :] if at.members and not is_flat else newline + outer
    return f"{before}{newline}{inner}{name}: {written}{tail}{text[close:]}"


def _written(value: object, unit: str, indent: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """The indentation of one level: that of the first line that has one."""
    match = re.search(r"(?m)^([ \t]+)\"", text)
    return match[1] if match is not None and len(match[1]) <= 8 else "  "


def _line_indent(text: str, position: int) -> str:
    line = text[:position].splitlines()[-1] if position else ""
    return line if line.strip(" \t") == "" else ""


def _indent(text: str, position: int, unit: str, depth: int) -> str:
    """The indentation of the line in which a value begins."""
    start = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
    match = re.compile(r"[ \t]*").match(text, start)
    assert match is not None
    return match[0] if match[0] or not depth else unit * depth


class _Scanner:
    """Reads the value of a text, with the places of its objects. Raises ValueError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._token_end = 0  # the end of the token before
        self._next()

    def whole(self) -> Any:
        value = self._value(0)
        if self._start < len(self._text):
            raise self._error("something stands behind the value")
        return value

    def _next(self) -> None:
        """Go to the next token; there is none at the end, and where none can be."""
        self._start = _after_blank(self._text, self._token_end)
        token = _TOKEN.match(self._text, self._start)
        self._kind, self._word = (token.lastgroup, token[0]) if token else ("", "")

    def _take(self, sign: str = "") -> str:
        """Go after a token, of which there is one; ``sign``: that which it must be."""
        token = self._word
        if sign not in ("", token):
            raise self._error(f"{sign!r} is missing")
        self._token_end = self._start + len(token)
        self._next()
        return token

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self._error("it is nested too deeply")
        if self._word == "{":
            return self._object(depth)
        if self._word == "[":
            return self._items(depth)
        if self._kind not in ("string", "scalar"):
            raise self._error("a value is missing")
        return json.loads(self._take())

    def _object(self, depth: int) -> Object:
        values = Object(self._start)
        self._take("{")
        while self._word != "}":
            start = self._start
            if self._kind != "string":
                raise self._error("a key is missing")
            key = json.loads(self._take())
            self._take(":")
            begin = self._start
            values[key] = self._value(depth + 1)
            values.members.append(Member(key, start, begin, self._token_end))
            self._separator("}")
        self._take()
        values.end = self._token_end
        return values

    def _items(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self._take("[")
        while self._word != "]":
            items.append(self._value(depth + 1))
            self._separator("]")
        self._take()
        return items

    def _separator(self, close: str) -> None:
        if self._word != close:
            self._take(",")

    def _error(self, problem: str) -> ValueError:
        line = self._text.count("\n", 0, self._start) + 1
        if not self._text[self._start :].strip():
            problem = "the text ends too early"
        return ValueError(f"line {line}: {problem}")


_HEADER = re.compile(r"(?m)^[ \t]*\[")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BOM = "\ufeff"


def with_table(text: str, path: Sequence[str], value: Mapping[str, object]) -> str:
    """
    The text with a table of these values, in the place of an earlier one or at the end.

    Raises:
        ValueError: The text is no TOML, or the table stands in it in another way.
    """
    expected = toml_values(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    table = _table(path, value, newline)
    if value_at(expected, path) is None:
        gap = newline if text.endswith("\n") else newline * 2
        if not text.strip(_BOM + " \t\r\n"):
            gap = ""
        changed = text + gap + table
    else:
        start, end = _place(text, path)
        changed = text[:start] + table + text[end:]
    *outer, last = path
    at = expected
    for key in outer:
        at = at.setdefault(key, {})
    at[last] = dict(value)
    return _checked(changed, expected)


def without_table(text: str, path: Sequence[str]) -> str:
    """The text without the table; the same text if there is none. Raises ValueError."""
    expected = toml_values(text)
    if value_at(expected, path) is None:
        return text
    start, end = _place(text, path)
    *outer, last = path
    del value_at(expected, outer)[last]
    kept, rest = text[:start], text[end:]
    if not rest:  # the blank line before the last table was made with it
        kept = re.sub(r"(\r?\n)\r?\n$", r"\1", kept)
    elif not kept or re.search(r"\n\r?\n$", kept):  # one blank line between two tables
        rest = re.sub(r"^(?:[ \t]*\r?\n)+", "", rest)
    return _checked(kept + rest, expected)


def _place(text: str, path: Sequence[str]) -> tuple[int, int]:
    """
    Where the table with its own tables begins and ends.

    Comments and blank lines before the next table are not part of it.
    """
    name = r"[ \t]*\.[ \t]*".join(rf"(?:{re.escape(key)}|\"{re.escape(key)}\")" for key in path)
    headers = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*(?:\.[^\]]*)?\]")
    starts = [match.start() for match in _HEADER.finditer(text)]
    of_table = [index for index, start in enumerate(starts) if headers.match(text, start)]
    if not of_table or of_table != list(range(of_table[0], of_table[-1] + 1)):
        raise ValueError(f"{'.'.join(path)} is written in a way that is not changed here")
    following = starts[of_table[-1] + 1 :]
    if not following:
        return starts[of_table[0]], len(text)
    end = following[0]
    for line in reversed(text[starts[of_table[-1]] : end].splitlines(keepends=True)):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        end -= len(line)
    return starts[of_table[0]], end


def _table(path: Sequence[str], value: Mapping[str, object], newline: str) -> str:
    lines = [f"[{'.'.join(map(_written_key, path))}]"]
    lines += [f"{_written_key(key)} = {_written_table(each)}" for key, each in value.items()]
    return newline.join([*lines, ""])


def _written_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _written_table(key)


def _written_table(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {_written_table(each)}" for key, each in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written_table, value)) + "]"
    # A basic string of TOML is written as one of JSON, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _checked(text: str, expected: Mapping[str, Any]) -> str:
    _drop_empty(expected)
    values = toml_values(text)
    _drop_empty(values)
    if values != expected:
        raise ValueError("its layout is one that is not changed here")
    return text


def _drop_empty(values: Any) -> None:
    """Remove tables without values, which a text may or may not name."""
    for key in [key for key, value in values.items() if isinstance(value, dict)]:
        _drop_empty(values[key])
        if not values[key]:
            del values[key]

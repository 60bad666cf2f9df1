"""
Set and remove properties in YAML frontmatter by editing its text.

Only the lines of the property change: other keys, comments, their order and quoting stay. The
result is parsed and compared with what the edit means; if the values differ, nothing is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qmd.errors import EditError
from qmd.files.edits.text_file import line_end
from qmd.parse import frontmatter
from qmd.values.text import fold, is_utf8
from qmd.values.writing import PropertyValue

_LINE_END = r"(?:\r\n|\r|\n)"
_OPEN = re.compile(rf"---[ \t]*{_LINE_END}")
_EMPTY = re.compile(
    rf"---[ \t]*{_LINE_END}(?P<inside>(?:[ \t]*{_LINE_END})*)---[ \t]*(?=[\r\n]|\Z)"
)
_CLOSE = re.compile(rf"(?:---|\.\.\.)[ \t]*(?:{_LINE_END}|\Z)")
_DOUBLE_QUOTED = r"\"(?:[^\"\\]|\\.)*\""
_SINGLE_QUOTED = r"'(?:[^']|'')*'"
_PLAIN_KEY = r"""(?:[^\s#?:,\[\]{}&*!|>'"%@`-]|-(?=[^\s:#]))(?:[^:#\r\n]|:(?=\S)|(?<=\S)#)*"""
_KEY = re.compile(
    rf"(?:(?P<key>{_DOUBLE_QUOTED}|{_SINGLE_QUOTED})[ \t]*|(?P<plain>{_PLAIN_KEY})):"
    r"(?=[ \t\r\n]|\Z)"
)
_QUOTED = re.compile(rf"(?:{_DOUBLE_QUOTED}|{_SINGLE_QUOTED})(?=[ \t]*(?:#|$))")
_COMMENT = re.compile(r"(?<=[ \t])#")
_ITEM = re.compile(r"([ \t]*)-(?:[ \t]|$)")
#: The longest key; YAML has the same limit for keys on one line.
MAX_KEY = 1024


class _Entry(NamedTuple):
    """The lines ``[first, last)`` of a property, from 0 below the opening line."""

    key: str
    first: int
    last: int


def set_property(text: str, key: str, value: PropertyValue) -> str:
    """
    Set a property of the frontmatter, which is created if there is none.

    An existing list keeps its style, an existing text its quotes, and a comment behind a value on
    one line stays. The name of an existing property is found in any letter case.

    Raises:
        EditError: The frontmatter is TOML, has the key twice, or cannot be edited safely.
    """
    key = _checked(key)
    if not all(is_utf8(each) for each in _texts(key, value)):
        raise EditError("A property holds no half of a character.", hint="Write it in UTF-8.")
    _require_yaml(text)
    end = line_end(text)
    start, lines, stop = _parts(text)
    if stop == 0:
        new = f"---{end}{''.join(_new_lines(key, value, end))}---{end}{text}"
        return _verified(text, new, key, value)
    entry = _entry(lines, key)
    if entry is None:
        changed = [*lines, *_new_lines(key, value, end)]
    else:
        key = entry.key
        new_lines = _replaced_lines(lines[entry.first : entry.last], value, end)
        changed = [*lines[: entry.first], *new_lines, *lines[entry.last :]]
    return _verified(text, text[:start] + "".join(changed) + text[stop:], key, value)


def _texts(key: str, value: PropertyValue) -> Iterator[str]:
    yield key
    items = value if isinstance(value, tuple) else (value,)
    yield from (each for each in items if isinstance(each, str))


def remove_property(text: str, key: str) -> str:
    """
    Remove a property; with the last one the frontmatter goes, unless it holds comments or the
    body begins as another frontmatter would.

    Raises:
        EditError: As `set_property`, or there is no such property.
    """
    key = _checked(key)
    _require_yaml(text)
    start, lines, stop = _parts(text)
    entry = _entry(lines, key)
    if entry is None:
        names = ", ".join(each.key for each in _entries(lines)) or "none"
        raise EditError(f"The note has no property {key!r}.", hint=f"Its properties: {names}")
    changed = [*lines[: entry.first], *lines[entry.last :]]
    if not "".join(changed).strip():
        closing = _CLOSE.match(text, stop)
        assert closing is not None  # `_parts` found it
        body = text[closing.end() :]
        # An empty frontmatter stays where the body would else be read as one.
        new = text[:start] + text[stop:] if frontmatter.split(body).body_start else body
        return _verified(text, new, entry.key, None, is_removed=True)
    new = text[:start] + "".join(changed) + text[stop:]
    return _verified(text, new, entry.key, None, is_removed=True)


def _checked(key: str) -> str:
    key = key.strip()
    if not key or len(key) > MAX_KEY or any(each in key for each in "\r\n\0"):
        raise EditError("The name of a property must be one line of text.")
    return key


def _require_yaml(text: str) -> None:
    if text.startswith("+++") and frontmatter.split(text).body_start:
        raise EditError(
            "The frontmatter is TOML, whose properties are not edited.",
            hint="Use the action replace on its text.",
        )


def _parts(text: str) -> tuple[int, list[str], int]:
    """Where the YAML begins, its lines with their ends, and where it ends; 0 if there is none."""
    opening = _OPEN.match(text)
    empty = _EMPTY.match(text)
    if opening is None:
        return 0, [], 0
    if empty is not None:
        return opening.end(), [], empty.end("inside")
    body_start = frontmatter.split(text).body_start
    if not body_start:
        return 0, [], 0
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text[opening.end() : body_start])
    last = lines.pop()  # the closing line
    return opening.end(), lines, body_start - len(last)


def _entries(lines: Sequence[str]) -> list[_Entry]:
    """The top-level properties with their lines; the comments above a key are not part of it."""
    starts: list[tuple[str, int]] = []
    for number, line in enumerate(lines):
        match = _KEY.match(line)
        if match is not None:
            starts.append((_plain_key(match["key"] or match["plain"]), number))
    entries = []
    for index, (key, first) in enumerate(starts):
        last = starts[index + 1][1] if index + 1 < len(starts) else len(lines)
        while last > first + 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
            last -= 1
        entries.append(_Entry(key, first, last))
    return entries


def _entry(lines: Sequence[str], key: str) -> _Entry | None:
    """The property of this name; else the only one that differs in case alone."""
    entries = _entries(lines)
    same = [each for each in entries if each.key == key]
    similar = same or [each for each in entries if fold(each.key) == fold(key)]
    if len(similar) > 1:
        raise EditError(
            f"The frontmatter has the property {key!r} {len(similar)} times.",
            hint="Use the action replace on its text.",
        )
    return similar[0] if similar else None


def _plain_key(written: str) -> str:
    if written.startswith('"'):
        try:
            return str(json.loads(written))
        except ValueError:
            return written[1:-1]
    if written.startswith("'"):
        return written[1:-1].replace("''", "'")
    return written.strip()


# --- writing -----------------------------------------------------------------------------


def _new_lines(key: str, value: PropertyValue, end: str) -> list[str]:
    is_plain = frontmatter.split(f"---\n{key}: 1\n---\n").properties == {key: 1}
    name = key if is_plain else _double_quoted(key)
    if isinstance(value, tuple):
        if not value:
            return [f"{name}: []{end}"]
        return [f"{name}:{end}", *(f"  - {_scalar(item)}{end}" for item in value)]
    written = _scalar(value)
    return [f"{name}: {written}{end}" if written else f"{name}:{end}"]


def _replaced_lines(lines: Sequence[str], value: PropertyValue, end: str) -> list[str]:
    """The lines of a property with a new value, in the style of the old one."""
    first = lines[0].rstrip("\r\n")
    match = _KEY.match(first)
    assert match is not None  # it was found by it
    head = first[: match.end()]
    old = first[match.end() :].strip()
    comment = _comment(old)
    old = old[: len(old) - len(comment)].rstrip() if comment else old
    if old and len(lines) > 1:  # a "#" in the first line of several may be no comment
        comment = ""
    end = lines[0][len(first) :] or end
    if isinstance(value, tuple):
        return _list_lines(head, value, lines, comment, end, is_flow=old.startswith("["))
    quote = old[:1] if old.startswith(("'", '"')) else ""
    return [f"{head} {_scalar(value, quote=quote)}".rstrip() + comment + end]


def _list_lines(
    head: str,
    value: Sequence[str | int | float | bool],
    old_lines: Sequence[str],
    comment: str,
    end: str,
    *,
    is_flow: bool,
) -> list[str]:
    """The lines of a list; ``head`` is the key with the colon."""
    if not value or (is_flow and len(old_lines) == 1):
        return [f"{head} [{', '.join(map(_flow_item, value))}]{comment}{end}"]
    indent = next((item[1] for line in old_lines[1:] if (item := _ITEM.match(line))), "  ")
    return [f"{head}{comment}{end}", *(f"{indent}- {_scalar(item)}{end}" for item in value)]


def _comment(value: str) -> str:
    """The comment behind a value on one line, with the blanks before it; or ""."""
    quoted = _QUOTED.match(value)
    if value.startswith("#"):
        return f" {value}"
    match = _COMMENT.search(value, quoted.end() if quoted else 0)
    if match is None:
        return ""
    return value[len(value[: match.start()].rstrip()) :]


def _scalar(value: str | int | float | bool | None, *, quote: str = "") -> str:
    """A value in YAML on one line; a text without quotes if it is read as this text then."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if (
        quote == "'"
        and value.isprintable()
        and _reads_as(single := "'" + value.replace("'", "''") + "'", value)
    ):
        return single
    if not quote and value and value == value.strip() and _reads_as(value, value):
        return value
    return _double_quoted(value)


def _flow_item(value: str | int | float | bool) -> str:
    written = _scalar(value)
    if any(each in written for each in ",[]{}") and not written.startswith('"'):
        return _double_quoted(str(value))
    return written


def _double_quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(
        each if each.isprintable() and ord(each) < 0x10000 else _escaped(each) for each in quoted
    )


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _reads_as(written: str, value: object) -> bool:
    """Whether YAML reads what is written as this value."""
    if any(each in written for each in "\r\n"):
        return False
    read = frontmatter.split(f"---\nkey: {written}\n---\n")
    return not read.warnings and read.properties == {"key": value}


def _verified(
    old: str, new: str, key: str, value: PropertyValue, *, is_removed: bool = False
) -> str:
    """The new text, if it means the old one with this property. Raises EditError."""
    before, after = frontmatter.split(old), frontmatter.split(new)
    expected = dict(before.properties)
    if is_removed:
        expected.pop(key, None)
    else:
        expected[key] = list(value) if isinstance(value, tuple) else value
    same_rest = old[before.body_start :] == new[after.body_start :] or not before.body_start
    if after.properties != expected or len(after.warnings) > len(before.warnings) or not same_rest:
        raise EditError(
            f"The property {key!r} cannot be changed without changing more of the frontmatter.",
            hint="Use the action replace on its text.",
        )
    return new

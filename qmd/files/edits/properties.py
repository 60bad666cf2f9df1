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

from qmd import parse
from qmd.errors import EditError, InputError
from qmd.files.edits.operations import require_end_of_frontmatter
from qmd.files.edits.text_file import line_end
from qmd.parse import frontmatter
from qmd.parse.links import mask_code
from qmd.parse.markdown import outline
from qmd.values.properties import fold_key
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
#: Anchors and tags before a value.
_MARKS = re.compile(r"\A(?:[&!][^\s\[\]{},]*(?:[ \t]+|$))*")
_PLAIN_TEXT = re.compile(r"[^\[{\"'|>]")
_CLOSING = {"[": "]", "{": "}", '"': '"', "'": "'"}
_WHOLE_MANTISSA = re.compile(r"\A(-?\d+)e")
#: The longest key; YAML has the same limit for keys on one line.
MAX_KEY = 1024


class _Block(NamedTuple):
    """
    The frontmatter of a text.

    Attributes:
        start: Where its lines begin, after the opening line.
        lines: With their ends, without the closing line.
        stop: Where the closing line begins; 0 if there is no frontmatter.
        body_start: Where the body begins.
        is_damaged: It is no valid YAML.
    """

    start: int = 0
    lines: tuple[str, ...] = ()
    stop: int = 0
    body_start: int = 0
    is_damaged: bool = False


class _Entry(NamedTuple):
    """
    The lines ``[first, last)`` of a property, from 0 below the opening line.

    Attributes:
        is_clear: Nothing stands below them that may be a part of the value, and may be text.
    """

    key: str
    first: int
    last: int
    is_clear: bool


def set_property(text: str, key: str, value: PropertyValue) -> str:
    """
    Set a property of the frontmatter, which is created if there is none.

    An existing list keeps its style, an existing text its quotes, and a comment after a value on
    one line stays. The name of an existing property is found in any letter case.

    Raises:
        EditError: The frontmatter is TOML, never ends, has the key twice, or cannot be edited
            safely; or the text states the property.
        InputError: The name or the value cannot be written.
    """
    key = _checked(key)
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = tuple(value)  # Python may give a list
    if not all(is_utf8(each) for each in _texts(key, value)):
        raise InputError("A property holds no half of a character.", hint="Write it in UTF-8.")
    _require_numbers(value)
    _require_yaml(text)
    end = line_end(text)
    block = _block(text)
    entry = _entry(block, key)
    if entry is None:
        _require_no_field(text, key)
    if block.stop == 0:
        new = f"---{end}{''.join(_new_lines(key, value, end))}---{end}{text}"
        return _verified(text, new, block, key, value)
    if entry is None:
        added = _new_lines(key, value, end)
        # In a damaged block the last lines may be prose: its end is then some rule below.
        changed = [*added, *block.lines] if block.is_damaged else [*block.lines, *added]
    else:
        key = entry.key
        written = _replaced_lines(block.lines[entry.first : entry.last], value, end)
        changed = _without(block, entry, written)
    new = text[: block.start] + "".join(changed) + text[block.stop :]
    return _verified(text, new, block, key, value)


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
        InputError: It is the name of none.
    """
    key = _checked(key)
    _require_yaml(text)
    block = _block(text)
    entry = _entry(block, key)
    if entry is None:
        _require_no_field(text, key)
        names = ", ".join(each.key for each in _entries(block)) or "none"
        raise EditError(f"The note has no property {key!r}.", hint=f"Its properties: {names}")
    changed = _without(block, entry)
    new = text[: block.start] + "".join(changed) + text[block.stop :]
    if not "".join(changed).strip():
        body = text[block.body_start :]
        # An empty frontmatter stays where the body would else be read as one.
        is_needed = frontmatter.split(body).body_start > 0
        new = text[: block.start] + text[block.stop :] if is_needed else body
    return _verified(text, new, block, entry.key, None, is_removed=True)


def _checked(key: str) -> str:
    key = key.strip()
    if not key or len(key) > MAX_KEY or any(each in key for each in "\r\n\0"):
        raise InputError("The name of a property must be one line of text.")
    return key


def _require_numbers(value: PropertyValue) -> None:
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, (int, float)) and frontmatter.json_safe(each, "") == "":
            raise InputError(
                f"The number {each} cannot be written.",
                hint="It is infinite, or too large for JSON and the index. Write it as text.",
            )


def _require_yaml(text: str) -> None:
    require_end_of_frontmatter(text)
    if text.startswith("+++") and frontmatter.split(text).body_start:
        raise EditError(
            "The frontmatter is TOML, whose properties are not edited.",
            hint="Use the action replace on its text.",
        )


def _require_no_field(text: str, key: str) -> None:
    """Raises EditError: an inline field (``key:: value``) gives the property."""
    if not frontmatter.may_have_fields(text):
        return
    body_start = frontmatter.split(text).body_start
    parsed = outline(text, body_start)
    masked = mask_code(text, body_start, parsed)
    fields = frontmatter.find_fields(text, masked, parsed)
    name = fold_key(key)
    if not any(fold_key(each.key) == name for each in (*fields.page, *fields.others)):
        return
    lines = [
        masked[start : start + len(line)]
        for line, start in zip(parsed.lines, parsed.starts, strict=False)
    ]
    at = frontmatter.property_line(lines, 0, (name,))
    place = "its text" if at is None else f"line {at + 1}"
    raise EditError(
        f"The note states the property {key!r} in {place}, as an inline field.",
        hint="Use the action replace on this field.",
    )


def _block(text: str) -> _Block:
    opening = _OPEN.match(text)
    empty = _EMPTY.match(text)
    if opening is None:
        return _Block()
    if empty is not None:
        closing = _CLOSE.match(text, empty.end("inside"))
        assert closing is not None  # `_EMPTY` ends with one
        return _Block(opening.end(), (), closing.start(), closing.end())
    front = frontmatter.split(text)
    if not front.body_start:
        return _Block()
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text[opening.end() : front.body_start])
    stop = front.body_start - len(lines.pop())  # the closing line
    return _Block(opening.end(), tuple(lines), stop, front.body_start, front.is_damaged)


def _entries(block: _Block) -> list[_Entry]:
    """The top-level properties with their lines; the comments above a key are not part of it."""
    starts: list[tuple[str, int]] = []
    for number, line in enumerate(block.lines):
        match = _KEY.match(line)
        if match is not None:
            starts.append((_plain_key(match["key"] or match["plain"]), number))
    entries = []
    for index, (key, first) in enumerate(starts):
        stop = starts[index + 1][1] if index + 1 < len(starts) else len(block.lines)
        entries.append(_Entry(key, first, *_end_of_value(block, first, stop)))
    return entries


def _end_of_value(block: _Block, first: int, stop: int) -> tuple[int, bool]:
    """
    The line after a property's last one, and whether it is clear that the value ends there.

    YAML that is not valid is often prose: the line that should close the frontmatter is missing.
    Only what no prose looks like belongs to a property there.

    Args:
        stop: The line of the next property.
    """
    value = _value_in_line(block.lines[first])
    is_text_block = value.startswith(("|", ">"))
    last, is_apart = first + 1, False
    for number in range(first + 1, stop):
        line = block.lines[number]
        if line.startswith("#"):
            is_text_block = False  # a comment ends it
        if not line.strip() or (line.lstrip().startswith("#") and not is_text_block):
            is_apart = not is_text_block
            continue
        is_part = _is_part_of_value(line, value, block, is_apart=is_apart)
        if not is_part:
            return last, is_part is False
        last = number + 1
    return last, True


def _is_part_of_value(line: str, value: str, block: _Block, *, is_apart: bool) -> bool | None:
    """
    Whether a line is a part of the value that begins above it; None if it may be.

    Args:
        value: What stands of it after its key.
        is_apart: Blank lines or comments stand between.
    """
    closing = _CLOSING.get(value[:1])
    is_item = not value and _ITEM.match(line) is not None
    if line.startswith((" ", "\t")):
        # YAML joins an indented paragraph with a text above; a person may mean another property.
        # Any two of these make it doubtful.
        reasons = (is_apart, block.is_damaged, _PLAIN_TEXT.match(value) is not None)
        return None if sum(reasons) > 1 else True
    if not block.is_damaged:
        return True if closing or is_item else None
    if is_item and not is_apart:
        return True
    return False if closing is None or closing in value[1:] else None


def _value_in_line(line: str) -> str:
    """What stands after the key in its own line, without marks and comment."""
    match = _KEY.match(line)
    assert match is not None  # it is the line of a property
    return _MARKS.sub("", _parted(line[match.end() :].strip())[0], count=1)


def _without(block: _Block, entry: _Entry, instead: Sequence[str] = ()) -> list[str]:
    """The lines with others instead of a property's own; comments of the block stay."""
    property_lines = block.lines[entry.first : entry.last]
    comments = [line for line in property_lines if line.startswith("#")]
    return [*block.lines[: entry.first], *instead, *comments, *block.lines[entry.last :]]


def _entry(block: _Block, key: str) -> _Entry | None:
    """The property of this name; else the only one that differs in case alone."""
    entries = _entries(block)
    same = [each for each in entries if each.key == key]
    similar = same or [each for each in entries if fold(each.key) == fold(key)]
    if len(similar) > 1:
        raise EditError(
            f"The frontmatter has the property {key!r} {len(similar)} times.",
            hint="Use the action replace on its text.",
        )
    if similar and not similar[0].is_clear:
        raise _refusal(key)
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
    is_plain = list(frontmatter.split(f"---\n{key}: 1\n---\n").properties) == [key]
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
    old, comment = _parted(first[match.end() :].strip())
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


def _parted(written: str) -> tuple[str, str]:
    """A value on one line, and the comment after it with the blanks before it; or ""."""
    if written.startswith("#"):
        return "", f" {written}"
    quoted = _QUOTED.match(written)
    match = _COMMENT.search(written, quoted.end() if quoted else 0)
    if match is None:
        return written, ""
    value = written[: match.start()].rstrip()
    return value, written[len(value) :]


def _scalar(value: str | int | float | bool | None, *, quote: str = "") -> str:
    """A value in YAML on one line; a text without quotes if all programs read this text then."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        # YAML 1.1 reads 1e+22 as a text.
        return _WHOLE_MANTISSA.sub(r"\1.0e", repr(value))
    if (
        quote == "'"
        and value.isprintable()
        and _reads_as(single := "'" + value.replace("'", "''") + "'", value)
    ):
        return single
    # (PyYAML refuses a tab in a text without quotes, where it has no parser in C.)
    is_plain = not quote and value and value == value.strip() and "\t" not in value
    if is_plain and _reads_as(value, value) and parse.yaml_values.is_text_for_all(value):
        return value
    return _double_quoted(value)


def _flow_item(value: str | int | float | bool) -> str:
    written = _scalar(value)
    if not isinstance(value, str) or written.startswith('"'):
        return written
    # (In a list in brackets PyYAML refuses "?" where it has no parser in C.)
    is_same = "?" not in written and _reads_as(f"[{written}]", [value])
    return written if is_same else _double_quoted(value)


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
    old: str, new: str, block: _Block, key: str, value: PropertyValue, *, is_removed: bool = False
) -> str:
    """The new text, if it means the old one with this property. Raises EditError."""
    before, after = frontmatter.split(old), frontmatter.split(new)
    expected = dict(before.properties)
    if is_removed:
        expected.pop(key, None)
    else:
        expected[key] = _read_value(key, value)
    if (
        after.properties != expected
        or len(after.warnings) > len(before.warnings)
        or (after.is_damaged and not before.is_damaged)
        or old[block.body_start :] != new[after.body_start :]
    ):
        raise _refusal(key)
    return new


def _read_value(key: str, value: PropertyValue) -> object:
    """What is read of a value that was written."""
    if isinstance(value, tuple):
        return [_read_value(key, item) for item in value]
    is_text = value is None or key not in frontmatter.NAMES
    return value if is_text or isinstance(value, str) else _scalar(value)


def _refusal(key: str) -> EditError:
    return EditError(
        f"The property {key!r} cannot be changed without changing more of the frontmatter.",
        hint="Use the action replace on its text.",
    )

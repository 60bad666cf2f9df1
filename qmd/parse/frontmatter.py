"""
Reads frontmatter, YAML between ``---`` lines or TOML between ``+++`` lines, as JSON-safe values.

Plain ``key: value`` lines, which most frontmatter consists of, are read without a YAML parser:
that is twenty times as fast, and a property test checks that the result is the same. The rest
is read by `qmd.parse.yaml_values`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from qmd.parse.json_values import json_safe
from qmd.parse.placeholders import has_placeholder, quoted

MAX_CHARACTERS = 256 * 1024  # of frontmatter that is read at all
MAX_TOML_CHARACTERS = 32 * 1024

_YAML_OPEN = re.compile(r"---[ \t]*(?:\r\n|\r|\n)")
_YAML_CLOSE = re.compile(r"(?:(?<=\n)|(?<=\r))(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)")
_TOML_OPEN = re.compile(r"\+\+\+[ \t]*(?:\r\n|\r|\n)")
_TOML_CLOSE = re.compile(r"(?:(?<=\n)|(?<=\r))\+\+\+[ \t]*(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")

_LONG_TOML_KEY = re.compile(r"(?:\.[ \t]*[\w\"'-]+[ \t]*){51}")

# Text that means itself in YAML: begins with a letter (of any script YAML lets pass) and holds
# nothing that ends a plain scalar.
_LETTER = "A-Za-z\u00c0-\u024f\u4e00-\u9fff"
_WORD = f"[{_LETTER}][0-9_./()，。、？！（）《》“”—+*&!?'=<>@%$;~^{_LETTER}-]*"
_OTHER_PLAIN = (
    "[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}|[0-9]+\\.[0-9]+\\.[0-9.]+"
    "|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|https?://[A-Za-z0-9_./%?=&~+-]+"
)
_PLAIN = f"{_WORD}(?: {_WORD})*"
_DOUBLE = '"[^"\\\\\\x00-\\x1f\\x7f-\\xa0\u2028\u2029\ufeff\ufffe\uffff\U00010000-\U0010ffff]*"'
_SINGLE = "'[^'\\x00-\\x1f\\x7f-\\xa0\u2028\u2029\ufeff\ufffe\uffff\U00010000-\U0010ffff]*'"
_SCALAR = (
    f"({_DOUBLE}|{_SINGLE})|({_PLAIN}|{_OTHER_PLAIN})"
    "|([0-9]{1,15})|([0-9]{4}-[0-9]{2}-[0-9]{2})"
)
_ITEM = f"(?:{_DOUBLE}|{_SINGLE}|{_WORD})"
_SIMPLE_LINE = re.compile(
    f"([A-Za-z][A-Za-z0-9_.-]*(?: [A-Za-z][A-Za-z0-9_.-]*)*):"
    f"(?: +(?:{_SCALAR}|\\[ ?((?:{_ITEM}(?:, ?{_ITEM})*)?) ?\\]))? *"
)
_SIMPLE_ENTRY = re.compile(f"( *)- +(?:{_SCALAR}) *")
_SIMPLE_ITEM = re.compile(f"({_DOUBLE}|{_SINGLE})|({_WORD})")
# (A comment ends with its line: if a blank could end it too, "# # # #" had 2^n readings.)
_LOOKS_LIKE_MAPPING = re.compile(r"\s*(?:#[^\r\n]*[\r\n]\s*)*[\w\"'][^\r\n:]*:(?:\s|$)")
_SALVAGE = re.compile(r"(\w[\w .-]*)[:：](?:[ \t]+(.*))?$")

# YAML 1.1 words that are no strings.
_RESERVED = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"))


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """``body_start`` is the character behind the closing line, 0 without frontmatter."""

    properties: dict[str, Any] = field(default_factory=dict)
    body_start: int = 0
    warnings: tuple[str, ...] = ()


def split(text: str) -> Frontmatter:
    """
    The frontmatter of a text, if it begins with one.

    A ``---`` that is never closed, or that has no mapping behind it, is a rule and no
    frontmatter. Whatever is wrong inside becomes a warning; what can be read is kept.
    """
    if text.startswith("---"):
        opened = _YAML_OPEN.match(text)
        closed = _YAML_CLOSE.search(text, opened.end()) if opened else None
        if opened and closed:
            return _yaml(text[opened.end() : closed.start()], closed.end())
    elif text.startswith("+++"):
        opened = _TOML_OPEN.match(text)
        closed = _TOML_CLOSE.search(text, opened.end()) if opened else None
        if opened and closed:
            return _toml(text[opened.end() : closed.start()], closed.end())
    return Frontmatter()


def _yaml(source: str, end: int) -> Frontmatter:
    simple = _simple(source)
    if simple is not None:
        return Frontmatter(simple, end)
    if len(source) > MAX_CHARACTERS:
        if not _LOOKS_LIKE_MAPPING.match(source[:4096]):
            return Frontmatter()
        return Frontmatter({}, end, ("The frontmatter is over 256 KiB and was not read.",))
    is_template = has_placeholder(source)
    if is_template:
        source = quoted(source)
    # PyYAML takes long to import, and most frontmatter does not need it.
    from yaml import YAMLError

    from qmd.parse.yaml_values import YamlReader, YamlRefused

    try:
        value, warnings = YamlReader().read(source)
    except YamlRefused as refused:
        return Frontmatter({}, end, (f"The frontmatter was not read: {refused}.",))
    except YAMLError as error:
        if not _LOOKS_LIKE_MAPPING.match(source):
            return Frontmatter()
        warnings = [] if is_template else [_yaml_warning(error)]
        return Frontmatter(dict(_salvage(source)), end, tuple(warnings))
    if value is None:
        # Empty frontmatter or comments only. Blank lines between two rules are no frontmatter.
        return Frontmatter({}, end) if not source or source.strip() else Frontmatter()
    if not isinstance(value, dict):
        return Frontmatter()
    return Frontmatter(value, end, tuple(warnings))


def _yaml_warning(error: Exception) -> str:
    """A sentence about a ``yaml.YAMLError``."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if not problem:
        is_reader_error = type(error).__name__ == "ReaderError"
        problem = (
            "it holds a character that YAML forbids" if is_reader_error else "it cannot be parsed"
        )
    line = f" in line {mark.line + 2}" if mark is not None else ""
    return f"The frontmatter is not valid YAML{line} ({problem}); read line by line."


def _simple(source: str) -> dict[str, Any] | None:
    """The mapping, if it is plain ``key: value`` lines and lists of plain entries; else None."""
    if "\r" in source:
        source = source.replace("\r\n", "\n")
    if not source.endswith("\n"):
        return None
    try:
        return _simple_mapping(source[:-1].split("\n"))
    except ValueError:
        return None


def _simple_mapping(lines: list[str]) -> dict[str, Any]:
    """Raises ValueError: The lines are not plain, see `_simple`."""
    properties: dict[str, Any] = {}
    entries: list[Any] | None = None  # the list of the last key, if it may have one
    key = indent = ""
    fullmatch = _SIMPLE_LINE.fullmatch
    for line in lines:
        match = fullmatch(line)
        if match is None:
            if entries is None:
                raise ValueError(line)
            indent = _add_entry(line, entries, indent)
            properties[key] = entries
            continue
        key, quoted, plain, number, day, flow = match.groups()
        if key in properties or key.lower() in _RESERVED:
            raise ValueError(line)
        entries = None
        if flow is not None:
            properties[key] = [
                _plain_value(double or None, word) for double, word in _SIMPLE_ITEM.findall(flow)
            ]
        elif quoted is plain is number is day:  # all None: a list may follow
            properties[key] = None
            entries = []
        else:
            properties[key] = _plain_value(quoted, plain, number, day)
    return properties


def _add_entry(line: str, entries: list[Any], indent: str) -> str:
    """Add a list entry, which is indented like those before it; returns the indentation."""
    match = _SIMPLE_ENTRY.fullmatch(line)
    if match is None or (entries and match[1] != indent):
        raise ValueError(line)
    entries.append(_plain_value(*match.groups()[1:]))
    return match[1]


def _plain_value(
    quoted: str | None, plain: str | None, number: str | None = None, day: str | None = None
) -> Any:
    """
    The value of a scalar, by the group that matched.

    Raises:
        ValueError: It only looks plain; YAML may mean something else by it.
    """
    if quoted is not None:
        return quoted[1:-1]
    if plain is not None:
        if plain.lower() in _RESERVED:
            raise ValueError(plain)
        return plain
    if number is not None:
        if number[0] == "0" and number != "0":
            raise ValueError(number)
        return int(number)
    return date.fromisoformat(day or "").isoformat()


def _salvage(source: str) -> Iterator[tuple[str, Any]]:
    """The ``key: value`` lines of invalid YAML, and the lists below its keys."""
    key: str | None = None
    items: list[Any] = []
    for line in _LINE_END.split(source):
        stripped = line.strip()
        if key is not None and stripped.startswith("- "):
            items.append(stripped[2:].strip().strip("\"'"))
            continue
        if key is not None and items:
            yield key, items
        key, items = None, []
        match = _SALVAGE.match(line)
        if match is None:
            continue
        value = (match[2] or "").strip()
        if not value:
            key = match[1].rstrip()
            continue
        simple = _simple(f"x: {value}\n")
        yield match[1].rstrip(), simple["x"] if simple is not None else value.strip("\"'")
    if key is not None and items:
        yield key, items


def _toml(source: str, end: int) -> Frontmatter:
    # Few files have TOML, and the parser takes as long to import as the rest of this module.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    if len(source) > MAX_TOML_CHARACTERS:
        return Frontmatter({}, end, ("The frontmatter is over 32 KiB and was not read.",))
    if _LONG_TOML_KEY.search(source):
        # The parser's time grows with the square of a dotted key's length.
        return Frontmatter({}, end, ("The frontmatter is nested too deeply and was not read.",))
    try:
        value = tomllib.loads(_LINE_END.sub("\n", source))
        return Frontmatter({key: _toml_value(item) for key, item in value.items()}, end)
    except RecursionError:
        return Frontmatter({}, end, ("The frontmatter is nested too deeply and was not read.",))
    except ValueError as error:
        return Frontmatter({}, end, (f"The frontmatter is not valid TOML ({error}).",))


def _toml_value(value: object) -> Any:
    if isinstance(value, dict):
        return {str(key): _toml_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_toml_value(item) for item in value]
    return json_safe(value, str(value))

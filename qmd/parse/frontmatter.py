"""Reads frontmatter, YAML between ``---`` or TOML between ``+++``, as JSON-safe values."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from qmd import parse
from qmd.records import dataclass, field

MAX_CHARACTERS = 256 * 1024  # of frontmatter that is read at all
MAX_TOML_CHARACTERS = 32 * 1024

_YAML_OPEN = re.compile(r"---[ \t]*(?:\r\n|\r|\n)")
_YAML_CLOSE = re.compile(r"[\r\n](?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)")
_TOML_OPEN = re.compile(r"\+\+\+[ \t]*(?:\r\n|\r|\n)")
_TOML_CLOSE = re.compile(r"[\r\n]\+\+\+[ \t]*(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")

_LONG_TOML_KEY = re.compile(r"(?:\.[ \t]*[\w\"'-]+[ \t]*){51}")

# (A comment ends with its line: if a blank could end it too, "# # # #" had 2^n readings.)
_LOOKS_LIKE_MAPPING = re.compile(r"\s*(?:#[^\r\n]*[\r\n]\s*)*[\w\"'][^\r\n:]*:(?:\s|$)")
_SALVAGE = re.compile(r"(\w[\w .-]*)[:：](?:[ \t]+(.*))?$")
# In YAML that is not valid: a whole number, and a list of words or of quoted text.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")
_QUOTED = r"""(?:"[^"\\]*"|'[^']*')"""
_ITEM = rf"""(?:{_QUOTED}|[^\W\d_][^\s,:#"'\[\]{{}}]*)"""
_LIST = re.compile(rf"\[ ?(?:{_ITEM}(?:, ?{_ITEM})*)? ?\]")
_ITEMS = re.compile(_ITEM)
_IS_QUOTED = re.compile(_QUOTED)

# A placeholder of a template: ``{{date}}``, ``<% tp.file.title %>``. A vault has a folder of
# templates, whose properties hold placeholders where a note has values. That is normal, so it
# causes no warning.
_PLACEHOLDER = r"\{\{[^{}]*\}\}|<%(?:[^%]|%(?!>))*%>"
_ONLY = re.compile(rf"(?:(?:{_PLACEHOLDER})[\s_-]*)+")
_ANY = re.compile(r"\{\{[^{}\r\n]*\}\}|<%")
# A value that begins with a placeholder: "{{" would open mappings, and "%" is refused by YAML.
_BARE_VALUE = re.compile(
    r"^([ \t]*(?:-[ \t]+)?(?:[\w .-]{1,100}:[ \t]+)?)((?:\{\{|<%)[^\r\n]*)$", re.MULTILINE
)


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
    is_toml = text.startswith("+++")
    opened = (_TOML_OPEN if is_toml else _YAML_OPEN).match(text)
    if opened is None:
        return Frontmatter()
    # The closing pattern begins with the end of the line above, which may be the opening line.
    closed = (_TOML_CLOSE if is_toml else _YAML_CLOSE).search(text, opened.end() - 1)
    if closed is None:
        return Frontmatter()
    source = text[opened.end() : closed.start() + 1]
    return (_toml if is_toml else _yaml)(source, closed.end())


def _yaml(source: str, end: int) -> Frontmatter:
    if len(source) > MAX_CHARACTERS:
        if not _LOOKS_LIKE_MAPPING.match(source[:4096]):
            return Frontmatter()
        return Frontmatter({}, end, ("The frontmatter is over 256 KiB and was not read.",))
    is_template = has_placeholder(source)
    if is_template:
        source = _quoted(source)
    yaml = parse.yaml_values
    try:
        value, warnings = yaml.YamlReader().read(source)
    except yaml.YamlRefused as refused:
        return Frontmatter({}, end, (f"The frontmatter was not read: {refused}.",))
    except yaml.YAMLError as error:
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
        yield match[1].rstrip(), _salvaged_value(value)
    if key is not None and items:
        yield key, items


def _salvaged_value(value: str) -> Any:
    if _NUMBER.fullmatch(value):
        return int(value)
    if _LIST.fullmatch(value):
        return [_unquoted(item) for item in _ITEMS.findall(value)]
    return _unquoted(value)


def _unquoted(text: str) -> str:
    return text[1:-1] if _IS_QUOTED.fullmatch(text) else text.strip("\"'")


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


def is_placeholder(text: str) -> bool:
    """Whether a text consists of placeholders."""
    return _ONLY.fullmatch(text) is not None


def has_placeholder(text: str) -> bool:
    """Whether a placeholder stands anywhere in a text, or begins there."""
    return ("{{" in text or "<%" in text) and _ANY.search(text) is not None


def _quoted(source: str) -> str:
    """YAML in which the values that begin with a placeholder stand in quotes."""
    return _BARE_VALUE.sub(
        lambda match: match[1] + json.dumps(match[2].strip(), ensure_ascii=False), source
    )


def json_safe(value: object, written: str) -> Any:
    """
    Convert a scalar to a value that JSON and SQLite can hold.

    A date becomes an ISO string. A number that is infinite or too large, and a value of
    another type, become ``written``, the text of the scalar in the source.
    """
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else written
    if isinstance(value, float):
        return value if math.isfinite(value) else written
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return written

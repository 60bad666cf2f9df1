"""Reads the properties of a document: its frontmatter, and the fields that stand in its text."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, NamedTuple

from qmd import lazy, libraries, parse
from qmd.parse.markdown import Outline
from qmd.records import dataclass, field
from qmd.values.properties import MAX_KEY, fold_key

#: Properties that are names, or lists of names: their values are texts, as written.
NAMES = frozenset(("title", "tags", "tag", "alias", "aliases"))
MAX_CHARACTERS = 256 * 1024  # of frontmatter that is read at all
MAX_TOML_CHARACTERS = 32 * 1024
_MAX_LOOKED_AT = 4096  # of frontmatter that never ends

_YAML_OPEN = re.compile(r"---[ \t]*(?:\r\n|\r|\n)")
_YAML_CLOSE = re.compile(r"[\r\n](?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)")
_TOML_OPEN = re.compile(r"\+\+\+[ \t]*(?:\r\n|\r|\n)")
_TOML_CLOSE = re.compile(r"[\r\n]\+\+\+[ \t]*(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")

_LONG_TOML_KEY = re.compile(r"(?:\.[ \t]*[\w\"'-]+[ \t]*){51}")

# (A comment ends with its line: if a blank could end it too, "# # # #" had 2^n readings.)
_LOOKS_LIKE_MAPPING = re.compile(r"\s*(?:#[^\r\n]*[\r\n]\s*)*[\w\"'][^\r\n:]*:(?:\s|$)")
# A ``key: value`` in any line. Behind a blank first line is prose between two rules.
_KEY_LINE = re.compile(r"[\r\n]\w[\w .-]{0,59}:(?:[ \t]|[\r\n]|\Z)")
_BLANK_LINE = re.compile(r"[ \t]*(?:[\r\n]|\Z)")
# What may stand in the lines of properties, from the first key to the first blank line.
_PROPERTY_LINE = re.compile(r"[\w\"'][\w .\"'-]{0,59}(:(?:[ \t]|\Z)|[ \t]*=)|[ \t#-]")
_SALVAGE = re.compile(r"(\w[\w .-]*)[:：](?:[ \t]+(.*))?$")
# In YAML that is not valid: a whole number, and a list of words or of quoted text, perhaps without
# its last bracket.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")
_QUOTED = r"""(?:"[^"\\]*"|'[^']*')"""
_ITEM = rf"""(?:{_QUOTED}|[^\W\d_][^\s,:#"'\[\]{{}}]*)"""
_LIST = re.compile(rf"\[ ?(?:{_ITEM}(?:, ?{_ITEM})*)? ?\]?")
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
    """
    Attributes:
        body_start: The character after the closing line, 0 without frontmatter.
        is_damaged: It is no valid YAML or TOML, and was read line by line or not at all.
    """

    properties: dict[str, Any] = field(default_factory=dict)
    body_start: int = 0
    warnings: tuple[str, ...] = ()
    is_damaged: bool = False


def split(text: str) -> Frontmatter:
    """
    The frontmatter of a text, if it begins with one.

    A ``---`` that is never closed, or that has no mapping after it, is a rule and no
    frontmatter; properties after one that is never closed are text, with a warning. Whatever is
    wrong inside becomes a warning; what can be read is kept.
    """
    is_toml = text.startswith("+++")
    opened = (_TOML_OPEN if is_toml else _YAML_OPEN).match(text)
    if opened is None:
        return Frontmatter()
    # The closing pattern begins with the end of the line above, which may be the opening line.
    closed = (_TOML_CLOSE if is_toml else _YAML_CLOSE).search(text, opened.end() - 1)
    if closed is None:
        return Frontmatter(warnings=_never_ends(text[:3], text[opened.end() :][:_MAX_LOOKED_AT]))
    source = text[opened.end() : closed.start() + 1]
    return (_toml if is_toml else _yaml)(source, closed.end())


def is_unended(text: str) -> bool:
    """Whether a text begins with properties that no line ends."""
    front = split(text)
    return not front.body_start and bool(front.warnings)


def _never_ends(fence: str, source: str) -> tuple[str, ...]:
    """A warning about properties after a line that may as well be a rule above prose."""
    lines = list(itertools.takewhile(str.strip, _LINE_END.split(source)))
    matches: list[re.Match[str]] = []
    for line in lines:
        match = _PROPERTY_LINE.match(line)
        if match is None:
            break
        matches.append(match)
    keys = [match.string[: match.start(1)].strip() for match in matches if match[1]]
    # The first line has to be a key: after a rule may stand a list.
    if not matches or not matches[0][1]:
        return ()
    # If prose follows without a blank line, one key alone may be its beginning ("Note: …").
    if len(matches) < len(lines) and len(keys) == 1 and fold_key(keys[0]) not in NAMES:
        return ()
    return (f"The frontmatter never ends: the line '{fence}' below it is missing; read as text.",)


def _yaml(source: str, end: int) -> Frontmatter:
    if len(source) > MAX_CHARACTERS:
        if not _LOOKS_LIKE_MAPPING.match(source[:4096]):
            return Frontmatter()
        return _unread("The frontmatter is over 256 KiB and was not read.", end)
    is_template = has_placeholder(source)
    if is_template:
        source = _quoted(source)
    yaml = parse.yaml_values
    try:
        value, warnings = yaml.YamlReader().read(source)
    except yaml.YamlRefused as refused:
        return _unread(f"The frontmatter was not read: {refused}.", end)
    except yaml.YAMLError as error:
        if not _is_meant_as_mapping(source):
            return Frontmatter()
        warnings = [] if is_template else [_yaml_warning(error)]
        return Frontmatter(dict(_salvage(source)), end, tuple(warnings), is_damaged=True)
    if value is None:
        # Empty frontmatter or comments only. Blank lines between two rules are no frontmatter.
        return Frontmatter({}, end) if not source or source.strip() else Frontmatter()
    if not isinstance(value, dict):
        return Frontmatter()
    return Frontmatter(value, end, tuple(warnings))


def _unread(warning: str, end: int) -> Frontmatter:
    return Frontmatter({}, end, (warning,), is_damaged=True)


def _is_meant_as_mapping(source: str) -> bool:
    """Whether text that is no YAML is properties with a mistake, not prose between two rules."""
    if _LOOKS_LIKE_MAPPING.match(source):
        return True
    return _BLANK_LINE.match(source) is None and _KEY_LINE.search(source) is not None


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
        name = match[1].rstrip()
        is_number = name not in NAMES and _NUMBER.fullmatch(value)
        yield name, int(value) if is_number else _salvaged_value(value)
    if key is not None and items:
        yield key, items


def _salvaged_value(value: str) -> Any:
    if _LIST.fullmatch(value):
        return [_unquoted(item) for item in _ITEMS.findall(value)]
    return _unquoted(value)


def _unquoted(text: str) -> str:
    return text[1:-1] if _IS_QUOTED.fullmatch(text) else text.strip("\"'")


def _toml(source: str, end: int) -> Frontmatter:
    if len(source) > MAX_TOML_CHARACTERS:
        return _unread("The frontmatter is over 32 KiB and was not read.", end)
    if _LONG_TOML_KEY.search(source):
        # The parser's time grows with the square of a dotted key's length.
        return _unread("The frontmatter is nested too deeply and was not read.", end)
    try:
        value = libraries.tomllib.loads(_LINE_END.sub("\n", source), parse_float=_WrittenNumber)
        return Frontmatter(
            {key: _toml_value(item, key in NAMES) for key, item in value.items()}, end
        )
    except RecursionError:
        return _unread("The frontmatter is nested too deeply and was not read.", end)
    except ValueError as error:
        return _unread(f"The frontmatter is not valid TOML ({error}).", end)


class _WrittenNumber(str):
    """A number of TOML that has a fraction."""


def _toml_value(value: object, is_name: bool = False) -> Any:
    if isinstance(value, dict):
        return {str(key): _toml_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_toml_value(item, is_name) for item in value]
    if isinstance(value, _WrittenNumber):
        return str(value) if is_name else json_safe(float(value), str(value))
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


# --- fields in the text -----------------------------------------------------------------
# They are Dataview's inline fields and Logseq's properties. A field takes a whole line
# (``key:: value``, also in a list item or a quote), or stands in brackets inside a line
# (``[key:: value]``, ``(key:: value)``). A blank must follow the colons, so that ``std::vector`` is
# none.
#
# Sources: Dataview's "Adding Metadata to your Pages"; Logseq's "Properties".

MAX_FIELDS = 1000  # of one text
_MAX_VALUE = 2000  # characters of a value

_EMOJI = "\u2300-\u27bf\ufe0f\U0001f1e6-\U0001faff"
_KEY = rf"[\w{_EMOJI}][\w /.\-{_EMOJI}]{{0,59}}"
_LINE_FIELD = re.compile(
    r"(?P<lead>(?:>[ \t]?)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:\[.\][ \t]+)?)(?:%%[ \t]*)?[*_]{0,3}"
    rf"(?P<key>{_KEY}?)[*_]{{0,3}}::[ \t]+(?=\S)"
)
_BRACKET = re.compile(rf"[\[(](?P<key>{_KEY})::[ \t]+|[\[\]()]")
_TOO_MANY = (f"The text has over {MAX_FIELDS:,} inline properties; the rest was left out.",)
# (The pattern begins with one character, so that the search can jump from one to the next; ``in``
# takes three times as long.)
_COLONS = re.compile(r":(?=:[ \t])")
_CLOSING = {"]": "[", ")": "("}
_BLOCK_ID = re.compile(r"[ \t]\^[A-Za-z0-9-]+$")
_FIELD_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(\.\d{1,15})?")
_LINK = r"\[\[[^\[\]]+\]\]"
_LINKS = re.compile(rf"{_LINK}(?:[ \t]*[,，][ \t]*{_LINK})+")
_EACH_LINK = re.compile(_LINK)

_COMMA = re.compile("[,，]")
_WRITTEN = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_MOST_NUMBERS = 50

_LISTS_OF_NAMES = NAMES - {"title"}
# Logseq keeps the state of a bullet under these keys; they say nothing about the page.
_STATE_OF_A_BULLET = frozenset(("id", "collapsed"))


class Field(NamedTuple):
    """A property as written: ``value`` is text."""

    key: str
    value: str


class InlineFields(NamedTuple):
    """
    The fields of a text, in order.

    Attributes:
        page: Those in the first lines of the text, which Logseq takes as the page's own.
        others: The rest.
    """

    page: Sequence[Field] = ()
    others: Sequence[Field] = ()
    warnings: tuple[str, ...] = ()


def may_have_fields(text: str) -> bool:
    """Whether a text may have fields; cheap."""
    return _COLONS.search(text) is not None


def find_fields(text: str, masked: str, outline: Outline) -> InlineFields:
    """
    The fields outside code. A comment of one line may hold one, as in Dataview.

    Args:
        masked: The text without its code (`qmd.parse.links.mask_code`).
    """
    page: list[Field] = []
    others: list[Field] = []
    in_page = True
    for line, start in _body_lines(outline):
        visible = masked[start : start + len(line)]
        if "::" not in visible:
            in_page = in_page and not visible.strip()
            continue
        whole = _line_field(line, visible)
        if whole is None:
            in_page = False
            others.extend(_bracketed(line, visible))
        elif in_page and whole[0] == "":
            page.append(whole[1])
        else:
            in_page = False
            if not _is_state(whole[1].key):
                others.append(whole[1])
        if len(page) + len(others) > MAX_FIELDS:
            return InlineFields(
                page[:MAX_FIELDS], others[: max(0, MAX_FIELDS - len(page))], _TOO_MANY
            )
    return InlineFields(page, others)


def merged_properties(properties: Mapping[str, Any], fields: Iterable[Field]) -> dict[str, Any]:
    """
    The properties of the frontmatter, and the fields beside them.

    A key with several values has a list of them, those of the frontmatter first, as in Dataview.
    Letter case of a key does not matter; it is spelled as it comes first.
    """
    result = dict(properties)
    spelled = {key.casefold(): key for key in reversed(list(result))}
    added: dict[str, list[Any]] = {}
    for name, value in fields:
        key = spelled.setdefault(name.casefold(), name)
        added.setdefault(key, []).extend(_values(name.casefold(), value))
    for key, values in added.items():
        before = result.get(key)
        every = [*(before if isinstance(before, list) else () if before is None else (before,))]
        every.extend(values)
        result[key] = every[0] if len(every) == 1 else every
    return result


def page_properties(page: Iterable[Field], properties: Mapping[str, Any]) -> dict[str, Any]:
    """
    What names, tags and dates a page: the properties of the frontmatter, else those of its page.

    Tags and aliases of both count. Logseq writes them with commas between, and may write a tag
    as a link: ``tags:: [[project a]], b``.
    """
    result: dict[str, Any] = {}
    for key, value in page:
        name = key.casefold()
        values = _values(name, value)
        if name in _LISTS_OF_NAMES:
            result.setdefault(name, []).extend(values)
        else:
            result.setdefault(name, values[0])
    for key, value in properties.items():
        before = result.get(key)
        if isinstance(before, list) and key in _LISTS_OF_NAMES:
            result[key] = _as_names(value, key) + before
        else:
            result[key] = value
    return result


def _values(name: str, value: str) -> list[Any]:
    if name in _LISTS_OF_NAMES:
        return _names(value)
    typed = _typed(value)
    # (Quotes around a title are no part of it, but it is no number.)
    return typed if name not in NAMES or isinstance(typed[0], str) else [value]


def _as_names(value: object, key: str) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return re.split(r"[,，、\s]+" if key.startswith("tag") else r"[,，]", value)
    return [value]


def _names(value: str) -> list[str]:
    """Tags or aliases: names or links with commas between."""
    names = (part.strip().removeprefix("[[").removesuffix("]]") for part in _COMMA.split(value))
    return [name for name in names if name]


def _body_lines(outline: Outline) -> Iterator[tuple[str, int]]:
    first = outline.blocks[0].start if outline.blocks else len(outline.lines)
    for number in range(first, len(outline.lines)):
        yield outline.lines[number], outline.starts[number]


def _line_field(line: str, visible: str) -> tuple[str, Field] | None:
    """A field that takes the whole line, and the signs of list or quote before it."""
    bare = visible.lstrip(" \t")
    indent = len(visible) - len(bare)
    match = _LINE_FIELD.match(visible, indent)
    if match is None:
        return None
    value = _BLOCK_ID.sub("", line[match.end() :].rstrip()[:_MAX_VALUE])
    return match["lead"], Field(match["key"].strip(), value.removesuffix("%%").rstrip())


def _bracketed(line: str, visible: str) -> Iterator[Field]:
    """The outermost fields in brackets of one line."""
    opened: list[tuple[str, int, str, int]] = []  # bracket, its offset, key, start of the value
    fields: list[tuple[int, Field]] = []
    for match in _BRACKET.finditer(visible):
        sign = match.group()[0]
        at = match.start()
        if sign in "[(":
            opened.append((sign, at, match["key"] or "", match.end()))
            continue
        while opened and opened[-1][0] != _CLOSING[sign]:
            opened.pop()
        if not opened:
            continue
        _, begin, key, value_at = opened.pop()
        if not key or _is_link(visible, begin, at) or not visible[value_at:at].strip():
            continue
        while fields and fields[-1][0] > begin:
            fields.pop()
        fields.append((begin, Field(key.strip(), line[value_at:at].strip()[:_MAX_VALUE])))
    return (each for _, each in fields)


def _is_link(visible: str, begin: int, end: int) -> bool:
    """Whether the brackets at these offsets are those of ``[…](…)`` or the inner of ``[[…]]``."""
    after = visible[end + 1 : end + 2]
    return visible[end] == "]" and (
        after == "(" or (after == "]" and visible[max(0, begin - 1) : begin] == "[")
    )


def _is_state(key: str) -> bool:
    name = key.casefold()
    return name in _STATE_OF_A_BULLET or name.startswith("logseq.")


def _typed(value: str) -> list[Any]:
    """The value as YAML would type it, in a list; several links with commas between are several."""
    number = _FIELD_NUMBER.fullmatch(value)
    if number is not None:
        return [float(value) if number[1] else int(value)]
    if value in ("true", "false"):
        return [value == "true"]
    if (
        len(value) > 1
        and value[0] == value[-1]
        and value[0] in "\"'"
        and value[0] not in value[1:-1]
    ):
        return [value[1:-1]]
    if value.startswith("[[") and _LINKS.fullmatch(value):
        return _EACH_LINK.findall(value)
    return [value]


# --- where a property stands ---------------------------------------------------------

#: Only this many lines of a text are looked at, and for a key so many characters of each.
_MOST_LINES, _MOST_START = 20_000, 500
#: What may stand before the key: the sign of a list or a quote, quotation marks.
_BEFORE_KEY = " \t->*+\"'"
#: A key of YAML, TOML or ``key:: value``.
_KEY_OF_LINE = lazy.pattern(rf"([^:=\"'\n]{{1,{MAX_KEY}}})[\"']?(::?|=)")
#: A field inside a line: ``[key:: value]`` or ``(key:: value)``.
_KEY_IN_LINE = lazy.pattern(rf"[\[(]([^:\[\]()\n]{{1,{MAX_KEY}}})::")


def written_numbers(
    properties: Mapping[str, Any], lines: Sequence[str]
) -> tuple[tuple[str, float, str], ...]:
    """
    Numbers as the text has them, if that is not as Python writes them: ``1.10`` and ``1e3``.

    Returns:
        The key, the value and what is written of each; of the first 50 keys with such numbers.
    """
    written = []
    keys = (key for key, value in properties.items() if any(map(_is_float, _as_list(value))))
    for key in itertools.islice(keys, _MOST_NUMBERS):
        at = property_line(lines, len(lines), (fold_key(key),))
        near = [] if at is None else _WRITTEN.findall("\n".join(lines[at : at + _MOST_NUMBERS]))
        for value in filter(_is_float, _as_list(properties[key])):
            text = next((each for each in near if float(each) == value), None)
            if text is not None and text != str(value):
                written.append((key, value, text))
    return tuple(written)


def _as_list(value: object) -> list[Any]:
    return value[:_MOST_NUMBERS] if isinstance(value, list) else [value]


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def property_line(lines: Sequence[str], first: int, keys: Collection[str]) -> int | None:
    """
    The index of the first line that gives one of the properties; None if no line does.

    Args:
        first: The index of the first line below the frontmatter. Below it only fields with ``::``
            are properties.
        keys: As `fold_key` gives them; of a nested key (``book.author``) the last part counts.
    """
    names = {*keys, *(key.rpartition(".")[2] for key in keys)}
    for index, line in enumerate(lines[:_MOST_LINES]):
        match = _KEY_OF_LINE.match(line[:_MOST_START].lstrip(_BEFORE_KEY))
        if (
            match is not None
            and (index < first or match[2] == "::")
            and fold_key(match[1]) in names
        ):
            return index
        if "::" in line and any(fold_key(m[1]) in names for m in _KEY_IN_LINE.finditer(line)):
            return index
    return None

"""
Finds properties that stand in the text: Dataview's inline fields and Logseq's ``key:: value``.

A field takes a whole line (``key:: value``, also in a list item or a quote), or stands in brackets
inside a line (``[key:: value]``, ``(key:: value)``). A blank must follow the colons, so that
``std::vector`` is none.

Sources: Dataview's "Adding Metadata to your Pages"; Logseq's "Properties".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qmd.parse.markdown import Outline

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
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(\.\d{1,15})?")
_LINK = r"\[\[[^\[\]]+\]\]"
_LINKS = re.compile(rf"{_LINK}(?:[ \t]*[,，][ \t]*{_LINK})+")
_EACH_LINK = re.compile(_LINK)

_COMMA = re.compile("[,，]")

_LISTS_OF_NAMES = frozenset(("tags", "tag", "alias", "aliases"))
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
        masked: `code_mask.mask_code` of the text.
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


def merged(properties: Mapping[str, Any], fields: Iterable[Field]) -> dict[str, Any]:
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
        values = _names(value) if name.casefold() in _LISTS_OF_NAMES else _typed(value)
        added.setdefault(key, []).extend(values)
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
        if name in _LISTS_OF_NAMES:
            result.setdefault(name, []).extend(_names(value))
        else:
            result.setdefault(name, _typed(value)[0])
    for key, value in properties.items():
        before = result.get(key)
        if isinstance(before, list) and key in _LISTS_OF_NAMES:
            result[key] = _as_names(value, key) + before
        else:
            result[key] = value
    return result


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
    behind = visible[end + 1 : end + 2]
    return visible[end] == "]" and (
        behind == "(" or (behind == "]" and visible[max(0, begin - 1) : begin] == "[")
    )


def _is_state(key: str) -> bool:
    name = key.casefold()
    return name in _STATE_OF_A_BULLET or name.startswith("logseq.")


def _typed(value: str) -> list[Any]:
    """The value as YAML would type it, in a list; several links with commas between are several."""
    number = _NUMBER.fullmatch(value)
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

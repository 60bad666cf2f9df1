"""Finds the aliases of a document and its tags (``#tag/sub`` in the text, or in frontmatter)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qmd.parse.links import WrittenLink

# A tag begins behind white space and has letters of any script, digits, "_", "-", "/" and emoji;
# other punctuation, Chinese punctuation too, ends it. (The pattern begins with "#" so that the
# search can jump from one "#" to the next.)
_TAG = re.compile("#(?<![^\\s]#)((?:[\\w/\\-]|[\u2600-\u27bf\ufe0f\u200d\U0001f1e6-\U0001faff])+)")
_LETTER_OR_EMOJI = re.compile("[^\\W\\d_]|[\u2600-\u27bf\U0001f1e6-\U0001faff]")
_LIST_BREAK = re.compile(r"[,，、\s]+")
_ALIAS_BREAK = re.compile(r"[,，]")

# Notes contain C sources without fences; these directives are not tags.
_DIRECTIVES = frozenset(
    ("include", "define", "undef", "ifdef", "ifndef", "endif", "elif", "pragma")
)


def may_have_tags(text: str) -> bool:
    """Whether the text has something that looks like a tag, even in code or in a link."""
    return _TAG.search(text) is not None


def is_tag(name: str) -> bool:
    """Whether characters behind ``#`` are a tag, and not a number or a directive of C."""
    tag = name.strip("/")
    return tag not in _DIRECTIVES and _LETTER_OR_EMOJI.search(tag) is not None


def find_tags(
    masked: str, links: Sequence[WrittenLink], properties: Mapping[str, Any]
) -> tuple[str, ...]:
    """
    The document's tags without ``#``, those of the frontmatter first, each once (ignoring case).

    Args:
        masked: The text without code and comments (`qmd.parse.code_mask`).
        links: The links of the text, in order; a ``#`` inside one is an anchor.
    """
    by_folded: dict[str, str] = {}
    for tag in frontmatter_tags(properties):
        by_folded.setdefault(tag.casefold(), tag)
    if "#" in masked:
        for tag in _tags_in_text(masked, links):
            by_folded.setdefault(tag.casefold(), tag)
    return tuple(by_folded.values())


def tags_in(text: str) -> Iterator[str]:
    """The tags of a text that has neither links nor code."""
    return _tags_in_text(text, ())


def frontmatter_tags(properties: Mapping[str, Any]) -> Iterator[str]:
    """The tags that the frontmatter names."""
    for key in ("tags", "tag"):
        for name in _names(properties.get(key), _LIST_BREAK):
            tag = name.lstrip("#").strip("/")
            if tag:
                yield tag


def _tags_in_text(masked: str, links: Sequence[WrittenLink]) -> Iterator[str]:
    begins = [link[0] for link in links]
    for match in _TAG.finditer(masked):
        tag = match[1].strip("/")
        if not is_tag(tag):
            continue
        index = bisect_right(begins, match.start()) - 1
        if index >= 0 and match.start() < links[index][1]:
            continue
        yield tag


def find_aliases(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Other names of the document, from ``aliases`` and ``alias``."""
    seen: dict[str, None] = {}
    for name in ("aliases", "alias"):
        for alias in _names(properties.get(name), _ALIAS_BREAK):
            seen.setdefault(alias)
    return tuple(seen)


def _names(value: object, breaks: re.Pattern[str]) -> Iterator[str]:
    """The names in a list, or in a string that is split at ``breaks``."""
    if isinstance(value, str):
        parts: Sequence[object] = breaks.split(value)
    elif isinstance(value, list):
        parts = value
    else:
        parts = (value,)
    for part in parts:
        if isinstance(part, str):
            name = " ".join(part.split())
        elif isinstance(part, (int, float)) and not isinstance(part, bool):
            name = str(part)
        else:
            continue
        if name:
            yield name

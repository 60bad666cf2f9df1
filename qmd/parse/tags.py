"""Tags and aliases: Obsidian's ``#tag/sub`` in the text, and the frontmatter's lists."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# A tag begins behind white space and holds letters of any script, digits, "_", "-", "/" and
# emoji; other punctuation, Chinese too, ends it.
# (The "#" comes first so that the search can jump from one to the next.)
_TAG = re.compile("#(?<![^\\s]#)((?:[\\w/\\-]|[\u2600-\u27bf\ufe0f\u200d\U0001f1e6-\U0001faff])+)")
_MEANS_SOMETHING = re.compile("[^\\W\\d_]|[\u2600-\u27bf\U0001f1e6-\U0001faff]")
_LIST_BREAK = re.compile(r"[,，、\s]+")
_ALIAS_BREAK = re.compile(r"[,，]")

# C sources are pasted into notes without fences: nobody calls a tag like this.
_DIRECTIVES = frozenset(
    ("include", "define", "undef", "ifdef", "ifndef", "endif", "elif", "pragma")
)


def may_have_tags(text: str) -> bool:
    """Whether anything looks like a tag; code and links are not told apart yet."""
    return _TAG.search(text) is not None


def find_tags(
    masked: str, spans: Sequence[tuple[int, int]], properties: Mapping[str, Any]
) -> tuple[str, ...]:
    """
    The document's tags without ``#``, frontmatter's first, each once (letter case aside).

    Args:
        masked: `inline.mask_code` of the text.
        spans: The places of links, in order; a ``#`` inside one is an anchor.
    """
    seen: dict[str, str] = {}
    for name in ("tags", "tag"):
        for written in _names(properties.get(name), _LIST_BREAK):
            tag = written.lstrip("#").strip("/")
            if tag:
                seen.setdefault(tag.casefold(), tag)
    if "#" in masked:
        begins: list[int] | None = None
        for match in _TAG.finditer(masked):
            tag = match[1].strip("/")
            if tag in _DIRECTIVES or not _MEANS_SOMETHING.search(tag):
                continue
            if spans:
                if begins is None:
                    begins = [begin for begin, _ in spans]
                index = bisect_right(begins, match.start()) - 1
                if index >= 0 and match.start() < spans[index][1]:
                    continue
            seen.setdefault(tag.casefold(), tag)
    return tuple(seen.values())


def find_aliases(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Other names of the document, from ``aliases`` and ``alias``."""
    seen: dict[str, None] = {}
    for name in ("aliases", "alias"):
        for alias in _names(properties.get(name), _ALIAS_BREAK):
            seen.setdefault(alias)
    return tuple(seen)


def _names(value: object, breaks: re.Pattern[str]) -> Iterator[str]:
    """Names in a list (each as it is) or a string of several."""
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

"""The properties of a document, with what their values lead to."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from urllib.parse import quote

from qmd.render import WrittenTarget
from qmd.server.page.links import PageLinks
from qmd.values.reading import DocumentDetails

MOST_VALUES = 50
"""Values of one property that are shown, and properties of one document."""

MAX_VALUE = 300
"""Characters of a value that are shown."""

MAX_SEARCHED = 30
"""Characters of a value that leads to a search for it; a longer one is a sentence."""

MAX_IN_A_ROW = 12
"""Characters of a value that may stand in one line with others."""

_SHOWN_ELSEWHERE = frozenset({"tags", "tag", "aliases", "alias", "title"})
_WIKILINK = re.compile(r"\s*\[\[([^\[\]|\n]{1,500})(?:\|([^\[\]\n]{1,500}))?\]\]\s*")


class ShownValue(NamedTuple):
    """
    One value.

    Attributes:
        address: A note, a page of the web, or a search for the value; "" for no link.
        is_web: Whether it leads out of this server.
    """

    text: str
    address: str = ""
    is_web: bool = False


class ShownProperty(NamedTuple):
    """A property; ``left_out`` of its values are not shown."""

    key: str
    values: list[ShownValue]
    left_out: int = 0

    @property
    def is_in_a_row(self) -> bool:
        """Whether the values are short enough to stand in one line."""
        return len(self.values) > 2 and all(len(each.text) <= MAX_IN_A_ROW for each in self.values)


def shown_properties(details: DocumentDetails, links: PageLinks) -> list[ShownProperty]:
    """The properties but for tags, aliases and the title, which stand elsewhere."""
    shown = []
    for key, value in list(details.properties.items())[:MOST_VALUES]:
        if key.casefold() in _SHOWN_ELSEWHERE:
            continue
        values = value if isinstance(value, list) else [] if value is None else [value]
        texts = [_shown(key, each) for each in values[:MOST_VALUES]]
        shown.append(ShownProperty(key, texts, len(values) - len(texts)))
    return _with_notes(shown, links)


def _shown(key: str, value: object) -> ShownValue:
    if isinstance(value, (bool, int, float)):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return ShownValue(text, _search(key, text))
    if not isinstance(value, str):
        return ShownValue(json.dumps(value, ensure_ascii=False)[:MAX_VALUE])
    text = value if len(value) <= MAX_VALUE else f"{value[:MAX_VALUE]}…"
    if value.startswith(("https://", "http://")) and len(value) < 2_000 and " " not in value:
        return ShownValue(text, value, is_web=True)
    is_searched = len(value) <= MAX_SEARCHED and value.strip()
    return ShownValue(text, _search(key, value) if is_searched else "")


def _search(key: str, value: str) -> str:
    """The address that lists the documents with this value of the property."""
    key = re.sub(r"\s+", "-", key.strip())
    if '"' in value or '"' in key or "\n" in value:
        return ""
    quoted = value if re.fullmatch(r"[\w.-]+", value) else f'"{value}"'
    return f"/?q={quote(f'{key}:{quoted}', safe='')}"


def _with_notes(properties: list[ShownProperty], links: PageLinks) -> list[ShownProperty]:
    """Let values such as ``[[Ann]]`` lead to their notes; all are resolved at once."""
    places = [
        (number, at, match)
        for number, each in enumerate(properties)
        for at, value in enumerate(each.values)
        if (match := _WIKILINK.fullmatch(value.text))
    ]
    targets = links.resolve([WrittenTarget("wikilink", match[1].strip()) for *_, match in places])
    for (number, at, match), target in zip(places, targets, strict=True):
        shown = (match[2] or match[1]).strip()
        properties[number].values[at] = ShownValue(shown, target.address, target.kind == "web")
    return properties

"""
Limits the texts, lists and integers that a client may send to a tool or endpoint.

An argument far longer than any real one costs time (a path of a million components) or fails deep
inside (SQLite allows 32,766 values, and expressions 1,000 deep). So it is refused first, with an
error that names the bound. `OTHERS` is the bound of all arguments that are not in `_BOUNDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from qmd.ingest.new_collection import MAX_CONTEXT
from qmd.values.facts import LARGEST_INTEGER
from qmd.values.search import MAX_QUERY, MAX_SEARCHES, MAX_TAGS
from qmd.values.transfer import MAX_FILES


class Bound(NamedTuple):
    """
    The greatest length of an argument.

    Attributes:
        characters: The most characters of a text, or of each text in a list.
        items: The most items of a list.
    """

    characters: int
    items: int = 100


class Excess(NamedTuple):
    """
    An argument that is too long or too large.

    Attributes:
        unit: What ``most`` and ``sent`` count, such as ``characters``; "" if they are the number.
    """

    name: str
    most: int
    unit: str
    sent: int

    def __str__(self) -> str:
        if not self.unit:
            return f"{self.name} may be {self.most:,} at most"
        return f"{self.name} may have {self.most:,} {self.unit} at most, got {self.sent:,}"


#: Characters. Linux allows paths of 4,096 bytes, which take three times as much percent-encoded.
MAX_PATH = 16_384
#: The most arguments of one call.
MAX_ARGUMENTS = 100

OTHERS = Bound(MAX_PATH)
#: More than any request can hold: a note may be large, and the size of requests is limited anyway.
_ALL = 64 << 20
_BOUNDS: Mapping[str, Bound] = {
    "query": Bound(MAX_QUERY),
    "searches": Bound(MAX_QUERY, MAX_SEARCHES),
    "tags": Bound(MAX_PATH, MAX_TAGS),
    "pattern": Bound(200_000),
    "glob_pattern": Bound(4096),
    "text": Bound(MAX_CONTEXT),
    "texts": Bound(_ALL, _ALL),  # the endpoint checks their number (413)
    "content": Bound(_ALL),
    # Of a push; the server checks each of them.
    "files": Bound(MAX_PATH, MAX_FILES),
    "parts": Bound(MAX_PATH, MAX_FILES),
    "deleted": Bound(MAX_PATH, MAX_FILES),
}


def excesses(arguments: Mapping[str, Any]) -> list[Excess]:
    """
    The arguments of a call that are too long or too large.

    Objects and wrong types are not checked here.
    """
    if len(arguments) > MAX_ARGUMENTS:
        return [Excess("the call", MAX_ARGUMENTS, "arguments", len(arguments))]
    too_long = []
    for name, value in arguments.items():
        bound = _BOUNDS.get(name, OTHERS)
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            too_long.append(Excess(name, LARGEST_INTEGER, "", value))
            continue
        if isinstance(value, list) and len(value) > bound.items:
            too_long.append(Excess(name, bound.items, "items", len(value)))
            continue
        texts = value if isinstance(value, list) else [value]
        longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
        if longest > bound.characters:
            too_long.append(Excess(name, bound.characters, "characters", longest))
    return too_long

"""
The longest text and the longest list that a client may send, for all tools and endpoints.

An argument that is far longer than any real one costs time (a path of a million components), or
fails deep inside (SQLite takes 32,766 values, and expressions 1,000 deep). Here it is refused
with a sentence. The bound of an argument that is not named below is `OTHERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from qmd.ingest.new_collection import MAX_CONTEXT
from qmd.values.search import MAX_QUERY, MAX_TAGS


class Bound(NamedTuple):
    """The most characters of a text, or of each text in a list, and the most items of a list."""

    characters: int
    items: int = 100


class Excess(NamedTuple):
    """An argument that is too long: it may have ``most`` of the ``unit`` and has ``sent``."""

    name: str
    most: int
    unit: str
    sent: int

    def __str__(self) -> str:
        return f"{self.name} may have {self.most:,} {self.unit} at most, got {self.sent:,}"


#: No path is longer (4,096 bytes on Linux), were each of its bytes percent-encoded.
MAX_PATH = 16_384
#: Arguments of one call.
MAX_ARGUMENTS = 100

OTHERS = Bound(MAX_PATH)
#: As much as a message can bring: a note may be large, and a request has its own limit.
_ALL = 64 << 20
_BOUNDS: Mapping[str, Bound] = {
    "query": Bound(MAX_QUERY),
    "tags": Bound(MAX_PATH, MAX_TAGS),
    "pattern": Bound(200_000),
    "glob_pattern": Bound(4096),
    "text": Bound(MAX_CONTEXT),
    "texts": Bound(_ALL, _ALL),  # the endpoint counts them itself (413)
    "content": Bound(_ALL),
}


def excesses(arguments: Mapping[str, Any]) -> list[Excess]:
    """What is too long among the arguments of a call; objects, and wrong types, are let through."""
    if len(arguments) > MAX_ARGUMENTS:
        return [Excess("the call", MAX_ARGUMENTS, "arguments", len(arguments))]
    too_long = []
    for name, value in arguments.items():
        bound = _BOUNDS.get(name, OTHERS)
        if isinstance(value, list) and len(value) > bound.items:
            too_long.append(Excess(name, bound.items, "items", len(value)))
            continue
        texts = value if isinstance(value, list) else [value]
        longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
        if longest > bound.characters:
            too_long.append(Excess(name, bound.characters, "characters", longest))
    return too_long

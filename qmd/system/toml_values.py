"""Reads TOML that somebody else wrote, in time and memory that its length bounds."""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_WORD = re.compile(r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*(\.[ \t]*)?")
_MAX_PARTS = 100
"""The most parts of a key. `tomllib` takes 15 GB and minutes for one of 64,000."""


def toml_values(text: str) -> dict[str, Any]:
    """The values of a text, which may begin with a byte order mark. Raises ValueError."""
    end = parts = 0
    for word in _WORD.finditer(text):
        parts = parts + 1 if word.start() == end else 1
        end = word.end() if word[1] else -1
        if parts > _MAX_PARTS:
            raise ValueError("it has a key of too many parts")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error

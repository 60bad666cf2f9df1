"""Earlier contents of files that a tool replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.values.facts import Name


@dataclass(frozen=True, slots=True)
class Revision:
    """
    What a file held before a tool changed it; ``number`` names it for good.

    ``kind``: the whole content, or only the metadata of a photo. ``hash`` is the SHA-256 of
    the content in hexadecimal, ``bytes`` its length, ``created`` ISO 8601 UTC.
    """

    number: Annotated[int, Name("revision")]
    path: str
    created: str
    tool: str
    kind: Literal["content", "metadata"]
    bytes: int
    hash: str

"""Earlier contents of files that a tool replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.values.facts import Name


@dataclass(frozen=True, slots=True)
class Revision:
    """
    The content of a file before a tool changed it.

    Attributes:
        number: The permanent number of the revision.
        path: The absolute path of the file.
        created: When the tool changed the file, ISO 8601 UTC.
        kind: "content" for the whole file, "metadata" for the metadata of a photo alone.
        bytes: The length of the content.
        hash: SHA-256 of the content, in hexadecimal.
    """

    number: Annotated[int, Name("revision")]
    path: str
    created: str
    tool: str
    kind: Literal["content", "metadata"]
    bytes: int
    hash: str

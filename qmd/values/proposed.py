"""What a tool is about to write, for whoever is asked whether it may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProposedText:
    """
    A file's whole content: ``before`` as it is on the disk (None: there is no such file) and
    ``after``, the very bytes that will be written. ``path``: all links followed.
    """

    tool: str
    path: Path
    before: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True)
class ProposedFields:
    """The metadata fields of a photo that would change: what they hold now, and then."""

    tool: str
    path: Path
    before: Mapping[str, tuple[str, ...]]
    after: Mapping[str, tuple[str, ...]]


Proposed = ProposedText | ProposedFields

Confirm = Callable[[Proposed], bool]
"""
True: write it. Anything else, or a `WriteDeclinedError` with a reason: leave the file as it is.

Called without a lock, so it may wait for a person.
"""

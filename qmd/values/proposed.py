"""A change that a tool is about to write, shown to a person who allows or declines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from qmd.errors import WriteDeclinedError
from qmd.records import dataclass


@dataclass(frozen=True, slots=True)
class ProposedText:
    """
    The new content of a file.

    Attributes:
        tool: The name of the tool that writes.
        path: The file, all links followed.
        before: The whole content on the disk; None if there is no such file.
        after: The whole content that will be written, byte for byte.
    """

    tool: str
    path: Path
    before: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True)
class ProposedFields:
    """
    New values of a photo's metadata fields.

    Attributes:
        tool: The name of the tool that writes.
        path: The photo, all links followed.
        before: Field → its values now; only fields that change.
        after: Field → its values after the write; the same fields.
    """

    tool: str
    path: Path
    before: Mapping[str, tuple[str, ...]]
    after: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ProposedDeletion:
    """
    The deletion of a file.

    Attributes:
        tool: The name of the tool that deletes.
        path: The file, all links followed.
        before: The whole content on the disk.
    """

    tool: str
    path: Path
    before: bytes


@dataclass(frozen=True, slots=True)
class ProposedMove:
    """
    The move of a file to another path.

    Attributes:
        tool: The name of the tool that moves.
        path: The file, all links followed.
        target: The new path.
    """

    tool: str
    path: Path
    target: Path


Proposed = ProposedText | ProposedFields | ProposedDeletion | ProposedMove

#: Returns True to allow the change. Any other result, or a `WriteDeclinedError` with a reason,
#: leaves the file as it is. It is called without a lock held, so it may wait for a person.
Confirm = Callable[[Proposed], bool]


def require_consent(confirm: Confirm, proposed: Proposed) -> None:
    """Raises WriteDeclinedError unless ``confirm`` allows the change."""
    if confirm(proposed) is not True:
        raise WriteDeclinedError

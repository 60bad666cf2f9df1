"""Notes and summaries, as the tools of AI clients read and write them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from qmd.records import dataclass

Mode = Literal["overwrite", "append"]
"""What the tool create_note does with a note that is there."""
Action = Literal["created", "overwritten", "appended"]
SummaryMode = Literal["append", "overwrite"]
Language = Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
class Note:
    """
    A note that was read.

    Attributes:
        path: From the root of the vault.
        text: The whole text, with its line ends and a byte order mark.
        encoding: A Python codec name.
        requested: The path that the caller asked for, completed. It differs from ``path`` if it
            does not exist and only this note can be meant.
    """

    path: str
    text: str
    encoding: str
    requested: str


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """
    A note that was written.

    Attributes:
        bytes: The size of the file now.
        problem: Why the index does not have the note, in sentences; None if it has, or if the note
            is in no collection.
    """

    path: str
    action: Action
    bytes: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or folder, by its name alone."""

    name: str
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries of a folder: folders first, then files, each by name. "" is the root."""

    path: str
    entries: tuple[FolderEntry, ...]


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """
    The file that holds the summary, all links followed, and how it was written.

    ``problem``: why searches do not find the text, in sentences.
    """

    path: Path
    mode: SummaryMode
    problem: str | None = None

"""The texts of the notes tools, verbatim from their specification; ``qmd note`` prints them too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qmd.files.notes import FolderEntry, Listing, WrittenNote
from qmd.values.facts import OmitDefault
from qmd.values.printable import one_line

_ACTIONS = {
    "created": "File created",
    "overwritten": "File overwritten",
    "appended": "Content appended to",
}


@dataclass(frozen=True, slots=True)
class NoteResult:
    """
    The result, as the specification defines it: ``data`` if the call succeeded, else ``error``.

    Attributes:
        path: The note's path, if it differs from the requested one.
        problem: Why searches do not find the new text yet.
        suggestions: Notes with similar names.
    """

    success: bool
    data: Annotated[str | None, OmitDefault()] = None
    error: Annotated[str | None, OmitDefault()] = None
    path: Annotated[str | None, OmitDefault()] = None
    problem: Annotated[str | None, OmitDefault()] = None
    suggestions: Annotated[tuple[str, ...], OmitDefault()] = ()


def written(note: WrittenNote) -> str:
    return f"{_ACTIONS[note.action]}: {one_line(note.path)}"


def listing(folder: Listing) -> str:
    return "\n".join(map(_line, folder.entries)) or "(empty folder)"


def _line(entry: FolderEntry) -> str:
    return f"{'📁' if entry.is_folder else '📄'} {one_line(entry.name)}"

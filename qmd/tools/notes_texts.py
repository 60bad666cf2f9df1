"""The texts of the notes tools, verbatim from their specification; ``qmd note`` prints them too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qmd.files.notes.notes import FolderEntry, Listing, WrittenNote
from qmd.values.facts import OmitDefault

_DONE = {
    "created": "File created",
    "overwritten": "File overwritten",
    "appended": "Content appended to",
}


@dataclass(frozen=True, slots=True)
class NoteResult:
    """
    The result of the specification: ``data`` if it succeeded, else ``error``.

    ``path`` is the note's where another one than the named one was meant, ``problem`` why
    searches do not find the new text yet, and ``suggestions`` are notes with similar names.
    """

    success: bool
    data: Annotated[str | None, OmitDefault()] = None
    error: Annotated[str | None, OmitDefault()] = None
    path: Annotated[str | None, OmitDefault()] = None
    problem: Annotated[str | None, OmitDefault()] = None
    suggestions: Annotated[tuple[str, ...], OmitDefault()] = ()


def written(note: WrittenNote) -> str:
    return f"{_DONE[note.action]}: {note.path}"


def listing(folder: Listing) -> str:
    return "\n".join(map(_line, folder.entries)) or "(empty folder)"


def _line(entry: FolderEntry) -> str:
    """One line, whatever the name holds."""
    name = entry.name.replace("\r", "\\r").replace("\n", "\\n")
    return f"{'📁' if entry.is_folder else '📄'} {name}"

"""The texts of the notes tools, verbatim from their specification; ``qmd note`` prints them too."""

from __future__ import annotations

from qmd.files.notes.notes import FolderEntry, Listing, WrittenNote

_DONE = {
    "created": "File created",
    "overwritten": "File overwritten",
    "appended": "Content appended to",
}


def written(note: WrittenNote) -> str:
    return f"{_DONE[note.action]}: {note.path}"


def listing(folder: Listing) -> str:
    return "\n".join(map(_line, folder.entries)) or "(empty folder)"


def _line(entry: FolderEntry) -> str:
    """One line, whatever the name holds."""
    name = entry.name.replace("\r", "\\r").replace("\n", "\\n")
    return f"{'📁' if entry.is_folder else '📄'} {name}"

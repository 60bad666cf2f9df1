"""Files that tools read and write: notes, posts, photos, summaries, and what they held before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files import chats, indexed_file, notes, pushed, revisions, summary, undo, vault

__all__ = ["chats", "indexed_file", "notes", "pushed", "revisions", "summary", "undo", "vault"]

__getattr__ = lazy.load(__name__, modules=__all__)

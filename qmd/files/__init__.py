"""Files that tools read and write: notes, posts, photos, summaries, and what they held before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files import captures as captures
    from qmd.files import chats as chats
    from qmd.files import days as days
    from qmd.files import moves as moves
    from qmd.files import notes as notes
    from qmd.files import pictures as pictures
    from qmd.files import posts as posts
    from qmd.files import pushed as pushed
    from qmd.files import revisions as revisions
    from qmd.files import saved_pages as saved_pages
    from qmd.files import undo as undo
    from qmd.files import vault as vault
    from qmd.files import writing as writing

__getattr__ = lazy.load(__name__)

"""Edits of a note's text: what is replaced, inserted or set, and the difference that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.edits import note_editor as note_editor
    from qmd.files.edits import operations as operations

__getattr__ = lazy.load(__name__)

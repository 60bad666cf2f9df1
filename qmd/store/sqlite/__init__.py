"""The store in one SQLite file: what only this engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.store.sqlite import (
        common_word_build,
        common_word_scores,
        damage,
        scope,
        scoped_full_text,
        store,
        upkeep,
    )

__all__ = [
    "common_word_build",
    "common_word_scores",
    "damage",
    "scope",
    "scoped_full_text",
    "store",
    "upkeep",
]

__getattr__ = lazy.load(__name__, modules=__all__)

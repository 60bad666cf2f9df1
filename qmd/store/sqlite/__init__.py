"""The store in one SQLite file: each class implements a protocol of `qmd.store`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.store.sqlite import (
        common_word_build,
        common_word_scores,
        common_words,
        copies,
        damage,
        embedding_claims,
        migrate,
        scope,
        upkeep,
    )

__all__ = [
    "common_word_build",
    "common_word_scores",
    "common_words",
    "copies",
    "damage",
    "embedding_claims",
    "migrate",
    "scope",
    "upkeep",
]

__getattr__ = lazy.load(__name__, modules=__all__)

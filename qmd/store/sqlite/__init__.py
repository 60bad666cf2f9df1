"""The store in one SQLite file: what only this engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.store.sqlite import common_word_build as common_word_build
    from qmd.store.sqlite import common_word_scores as common_word_scores
    from qmd.store.sqlite import damage as damage
    from qmd.store.sqlite import scope as scope
    from qmd.store.sqlite import store as store
    from qmd.store.sqlite import upkeep as upkeep

__getattr__ = lazy.load(__name__)

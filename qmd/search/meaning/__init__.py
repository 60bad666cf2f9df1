"""Retrieval by meaning, from vectors; its modules need numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.search.meaning import (
        codes,
        late_interaction,
        loaded_vectors,
        nearness,
        retrieval,
        vector_cache,
    )

__all__ = ["codes", "late_interaction", "loaded_vectors", "nearness", "retrieval", "vector_cache"]

__getattr__ = lazy.load(__name__, modules=__all__)

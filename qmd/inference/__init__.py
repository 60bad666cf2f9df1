"""Models: what search needs of them (`protocols`), and the ones there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.inference import (
        assistant,
        crossencoder,
        embedding_endpoint,
        llm,
        onnx_model,
        protocols,
        remote,
        token_codes,
        token_projections,
        token_states,
    )

__all__ = [
    "assistant",
    "crossencoder",
    "embedding_endpoint",
    "llm",
    "onnx_model",
    "protocols",
    "remote",
    "token_codes",
    "token_projections",
    "token_states",
]

__getattr__ = lazy.load(__name__, modules=__all__)

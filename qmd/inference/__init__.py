"""Models: what search needs of them (`protocols`), and the ones there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.inference import assistant as assistant
    from qmd.inference import crossencoder as crossencoder
    from qmd.inference import embedding_endpoint as embedding_endpoint
    from qmd.inference import llm as llm
    from qmd.inference import onnx_model as onnx_model
    from qmd.inference import protocols as protocols
    from qmd.inference import remote as remote
    from qmd.inference import token_codes as token_codes

__getattr__ = lazy.load(__name__)

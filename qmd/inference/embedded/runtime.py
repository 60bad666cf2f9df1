"""
The built model in fastembed, and the proof that it computes what it should.
"""

from __future__ import annotations

import base64
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import InferenceError
from qmd.inference.embedded.build import MODEL_FILE, NAME
from qmd.inference.fastembedder import text_embedding

if TYPE_CHECKING:
    from fastembed import TextEmbedding

DIMENSION = 384

# The vector of this text times 508, rounded to int8. Processors round int8 products
# differently (cosines down to about .995), while a wrong graph or tokenizer ends below .9.
_GOLDEN_TEXT = "query: How do I restore a backup? 如何恢复备份？"
_GOLDEN_VECTOR = (
    "81eJvCF=_e9sCsyDC*)CC+_#-6b0xC7aZ0WG2P<z4B{I7^zt0u;~N$)1rYKa@9Fs<{2B(}$<@*uALj=NEEyFX"
    "`0VEv2l5REANB&^%H-`1=OP^3F6|r}1>fk@^bZj4F7zA4;vx#}9p2g<8x-2>^YbL`3-IaZ>DdP;{rLg?_$nJg"
    "-yZw-_89gG9vCzD9N!oBH3t*u>+KpE;@RE;)aDWp;^_4U`~46V03RYL?e72O)$HmN2JiwJ=-==N=ot<i{^1G#"
    "E(+uu;u!|l;4=B;3l!)M3i$-x;2Q<$-67`h=-ukg_ZTDH{@x7Q8|?T3{23(B-tO-z8Z77%6!<g`8VA($+~V{7"
    "Bjx1n9xey#5flw67xD%a_xJqr2?G%t{3ziR@azc=%p3{?{w6Ra>+1d-2?g8r<@WLB9VF%RAtmeY;TGrv`4rjc"
    "83^MV`q?D%@)`)m0wLi5^XCK;*xw=%4;T6w8P_Tm?fdij;S|^Z7bXfI"
)
_GOLDEN_COSINE = 0.97

_REGISTERED_NAME = f"qmd/{NAME}"
_register_lock = threading.Lock()


def load(directory: Path) -> TextEmbedding:
    """
    The model in ``directory``. Asks no network.

    Raises:
        InferenceError: A file is damaged, or onnxruntime cannot run it.
    """
    _register()
    return text_embedding(
        _REGISTERED_NAME,
        specific_model_path=str(directory),
        cache_dir=str(directory.parent),  # unused with a path; the default is a place in /tmp
    )


def check(directory: Path) -> None:
    """Raises InferenceError if the model in ``directory`` does not give the golden vector."""
    import numpy as np

    (vector,) = load(directory).embed([_GOLDEN_TEXT], batch_size=1)
    golden = np.frombuffer(base64.b85decode(_GOLDEN_VECTOR), np.int8).astype(np.float32)
    cosine = float(vector @ golden / np.linalg.norm(golden))
    if not cosine >= _GOLDEN_COSINE:
        raise InferenceError(
            f"The embedding model is wrong on this machine (cosine {cosine:.3f} to its vector).",
            hint="Upgrade onnxruntime, tokenizers and onnx, then run 'qmd models pull'.",
        )


def _register() -> None:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    with _register_lock:
        names = {model["model"] for model in TextEmbedding.list_supported_models()}
        if _REGISTERED_NAME not in names:  # a second time raises
            TextEmbedding.add_custom_model(
                model=_REGISTERED_NAME,
                pooling=PoolingType.MEAN,
                normalization=True,
                sources=ModelSource(hf="qmd/none"),  # required; never asked
                dim=DIMENSION,
                model_file=MODEL_FILE,
            )

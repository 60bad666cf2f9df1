"""
Loads the built model into fastembed, and checks that it gives the right vectors.
"""

from __future__ import annotations

import base64
import threading
from pathlib import Path

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

from qmd.errors import InferenceError
from qmd.inference.embedded.build import MODEL_FILE, NAME
from qmd.inference.fastembedder import text_embedding

DIMENSION = 384

# The vector of this text times 508, rounded to int8. Another processor's float rounding
# moves it by little, a wrong graph or tokenizer by much.
_GOLDEN_TEXT = "query: How do I restore a backup? 如何恢复备份？"
_GOLDEN_VECTOR = (
    "81D4vC+Z6gANv;#C+y@EDD3v)6b0!C6&}+RFWcbu4&xdB^za<q;T;z(0uS&S@#*>@{Tc@0$kWpt9_R%MEgBgd"
    "`s?Nv3G)dCA@%~^%jN73=_4H8Ea@B>0^sM<^$!v7EA}45;UWw1BHP;^8yDT`^7SO~2=M6Y>e>h>|M>#_`zRhj"
    "-W~n-_7?UC9u_n98{ilDGzSvq?Cl#E;@aE=)8P>i<mdDV`~D9T{~seN@bUoX)9dLI2<!tH=i%@N>lzLm|KbSz"
    "D+=Qq;TZ+i-ZA^-3Kr%L3i<=w-xvhy-5}@i=ilhi`4%GF0o)DT81452{Tn9H;Oy=y87t`#7x^|0775e!+2Hd0"
    "BIM-k9xw^&5fu$674QfW`1t(t2mlTn04CxS?(GQ@%oz#;|0ORb>*xL+3j*5q<@faF9VO%SASUhZ;TGov_!Zjf"
    "7YO1T{Msh=^cV-l1R&u6^5+2(*4-fx4jB3y7uqQm@cHuk<QCTc79|QF"
)
_GOLDEN_COSINE = 0.97

_REGISTERED_NAME = f"qmd/{NAME}"
_register_lock = threading.Lock()


def load(directory: Path) -> TextEmbedding:
    """
    The model in ``directory``, loaded; nothing is asked over the network.

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
    """Raises InferenceError if the model in ``directory`` does not give the expected vector."""
    (vector,) = load(directory).embed([_GOLDEN_TEXT], batch_size=1)
    golden = np.frombuffer(base64.b85decode(_GOLDEN_VECTOR), np.int8).astype(np.float32)
    cosine = float(vector @ golden / np.linalg.norm(golden))
    if not cosine >= _GOLDEN_COSINE:
        raise InferenceError(
            f"The embedding model is wrong on this machine (cosine {cosine:.3f} to its vector).",
            hint="Upgrade onnxruntime, tokenizers and onnx, then run 'qmd models pull'.",
        )


def _register() -> None:
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

"""Takes the state of each token out of a run of a model, besides the vector of the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmd.inference.protocols import TokenStates, no_states

_PROBE = "one two"


class ModelRun(NamedTuple):
    """
    What one run of a model says of a text.

    Attributes:
        vector: float32[dimension], as the model pools it.
        states: float32[tokens, dimension], the last layer; None if the model keeps it to itself.
    """

    vector: NDArray[np.float32]
    states: NDArray[np.float32] | None


def run(model: Any, text: str) -> ModelRun:
    """Run a model of `onnx_model` or of fastembed once."""
    if hasattr(model, "vector_and_states"):
        return ModelRun(*model.vector_and_states(text))
    # What `TextEmbedding.embed` does with one text; `has_states` compares the two.
    output = model.model.onnx_embed([text])
    (vector,) = model.model._post_process_onnx_output(output)
    states = np.asarray(output.model_output)
    return ModelRun(vector, states[0].astype(np.float32, copy=False) if states.ndim == 3 else None)


def has_states(model: Any, tokenizer: Any, dimension: int) -> bool:
    """
    Whether `run` gives a state for each token, and the very vector that ``model.embed`` gives.

    Some models of fastembed do more than to run the network, and other models have no tokenizer.

    Args:
        dimension: Of the vectors. Behind the last layer some models have one that changes it.
    """
    if tokenizer is None:
        return False
    try:
        ours = run(model, _PROBE)
        (vector,) = model.embed([_PROBE], batch_size=1)
    except (AttributeError, TypeError, ValueError):  # another model, or another fastembed
        return False
    count = len(tokenizer.encode(_PROBE).ids)
    return (
        ours.states is not None
        and ours.states.shape == (count, dimension)
        and bool(np.array_equal(ours.vector, vector))
    )


class TextTokens(NamedTuple):
    """The tokens of a text or of a part of it: ids int32[t] and states float32[t, dimension]."""

    ids: NDArray[np.int32]
    states: NDArray[np.float32]


def of_text(encoding: Any, prefix: str, states: NDArray[np.float32]) -> TextTokens:
    """
    The tokens of the text itself, without special tokens and those of the prefix.

    Args:
        encoding: The `tokenizers.Encoding` of prefix and text.
        states: float32[tokens, dimension], of all tokens of the encoding.
    """
    is_text = np.array(encoding.special_tokens_mask) == 0
    for place, (_start, end) in enumerate(encoding.offsets[: len(prefix) + 2]):
        if end > len(prefix):
            break
        is_text[place] = False
    return TextTokens(np.array(encoding.ids, np.int32)[is_text], states[is_text])


def merged(parts: Sequence[TextTokens], dimension: int) -> TokenStates:
    """One mean state for each distinct token of all parts of a text."""
    if not sum(len(part.ids) for part in parts):
        return no_states(dimension)
    all_ids = np.concatenate([part.ids for part in parts])
    order = np.argsort(all_ids, kind="stable")
    ids, starts, counts = np.unique(all_ids[order], return_index=True, return_counts=True)
    states = np.concatenate([part.states for part in parts])[order]
    means = np.add.reduceat(states, starts, axis=0) / counts[:, None].astype(np.float32)
    rounded = np.clip(means, -65504, 65504).astype(np.float16).astype(np.float32)
    return TokenStates(ids, np.nan_to_num(rounded))

"""
Reranks with a cross-encoder on this machine: a model that reads question and passage together.

It is one that fastembed lists, or any folder with an ONNX file and a tokenizer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Protocol

from qmd.errors import InferenceError, ModelMissingError, TransientInferenceError
from qmd.inference import hub, onnx_folder
from qmd.inference.fastembedder import clean
from qmd.inference.replies import sigmoid


class PairModel(Protocol):
    def logit(self, query: str, passage: str) -> float:
        """How well the passage answers; higher is better, without bounds."""
        ...


class CrossEncoder:
    """
    A `Reranker` on this machine.

    It scores one pair at a time: int8 activations are scaled per batch, so in a batch a score
    would depend on its neighbours; and between two pairs it can see that the time is up.

    Args:
        name: For messages and for the cache of scores.
        load: Reads the weights. It runs on another thread at the first question, so that a
            question is not kept waiting for longer than it allows.
    """

    def __init__(self, name: str, load: Callable[[], PairModel]) -> None:
        self.name = name
        self._load = load
        self._lock = threading.Lock()
        self._loading: threading.Thread | None = None
        self._model: PairModel | None = None
        self._problem: InferenceError | None = None

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """
        How well each passage answers the query, 0..1, in their order.

        Raises:
            TransientInferenceError: The weights are still being read, or the time is up.
            InferenceError: The model cannot be loaded, or fails.
        """
        end = monotonic() + timeout_s
        model = self._loaded(timeout_s)
        question = clean(query)
        scores: list[float] = []
        for passage in passages:
            if monotonic() >= end:
                raise TransientInferenceError(
                    f"{self.name} has read {len(scores)} of {len(passages)} passages in"
                    f" {timeout_s:.1f} s.",
                    hint="Fewer candidates, a smaller model, or a larger model_budget.",
                )
            try:
                logit = model.logit(question, clean(passage))
            except Exception as error:  # onnxruntime's and tokenizers' share no other base
                raise InferenceError(f"{self.name} failed: {error}") from error
            if not isfinite(logit):
                raise InferenceError(f"{self.name} gave {logit} for a score.")
            scores.append(sigmoid(logit))
        return scores

    def _loaded(self, timeout_s: float) -> PairModel:
        """The model, which is waited for. Raises InferenceError."""
        with self._lock:
            if self._model is None and self._loading is None:
                self._problem = None
                self._loading = threading.Thread(
                    target=self._run_load, name="qmd-model-loader", daemon=True
                )
                self._loading.start()
            loading = self._loading
        if loading is not None:
            loading.join(timeout_s)
        with self._lock:
            if self._model is not None:
                return self._model
            if self._problem is not None:
                raise self._problem
        raise TransientInferenceError(f"{self.name} is still being loaded.")

    def _run_load(self) -> None:
        problem: InferenceError | None = None
        model = None
        try:
            model = self._load()
        except InferenceError as error:
            problem = error
        except Exception as error:  # noqa: BLE001 - raised in `_loaded`, for each question
            problem = InferenceError(f"Cannot load {self.name}: {error}")
        with self._lock:
            self._model, self._problem, self._loading = model, problem, None


def open_cross_encoder(name: str, cache_dir: Path) -> CrossEncoder:
    """
    Raises:
        ModelMissingError: There is no such model, or it is not on this machine; the hint says
            which.
    """
    if onnx_folder.is_folder(name):
        folder = onnx_folder.read(name)
        # By the content: other files in a folder are another model.
        folder_name = f"{folder.path.name} ({folder.fingerprint.partition('|')[0]})"
        return CrossEncoder(folder_name, lambda: _load_folder(folder))
    if not hub.is_ready(name, cache_dir):
        hub.cross_encoder_description(name)
        raise ModelMissingError(
            f"The cross-encoder {name} is not on this machine.",
            hint=f"Run 'qmd models pull {name}'.",
        )
    return CrossEncoder(name, lambda: hub.load_cross_encoder(name, cache_dir))


def _load_folder(folder: onnx_folder.OnnxFolder) -> PairModel:
    # Imported late: onnxruntime takes most of a second.
    from qmd.inference.onnx_model import OnnxPairModel

    return OnnxPairModel(folder)

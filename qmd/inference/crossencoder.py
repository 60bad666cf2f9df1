"""
Reranks with a cross-encoder on this machine: a model that reads question and passage together.

It is one that fastembed lists, or any folder with an ONNX file and a tokenizer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Protocol, TypeVar

from qmd import inference
from qmd.errors import InferenceError, ModelMissingError, TransientInferenceError
from qmd.inference import hub, onnx_folder
from qmd.inference.fastembedder import available_cores, clean
from qmd.inference.replies import cut, score_in_time, sigmoid

#: About how many tokens of a passage are read. A chunk has no more. The time and memory of a pair
#: grow faster than its length, and some models would read 8,192.
PASSAGE_TOKENS = 512

T = TypeVar("T")


class PairModel(Protocol):
    """Scores one pair with one core. Thread-safe."""

    def logit(self, query: str, passage: str) -> float:
        """How well the passage answers; higher is better, without bounds."""
        ...


class CrossEncoder:
    """
    A `Reranker` on this machine.

    Each pair is a run of its own: int8 activations are scaled per batch, so in a batch a score
    would depend on its neighbours. Each run has one core, and as many run at once as there are
    cores: two threads that share a pair take more than twice the CPU time of one, because they
    wait for each other. Before each round it looks whether there is time for one more.

    Args:
        name: For messages and for the cache of scores.
        load: Reads the weights. It runs on another thread, from `prepare` or the first question
            on, so that a question is not kept waiting for longer than it allows.
        cores: How many pairs are scored at once; None for as many as there are cores.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], PairModel],
        *,
        cores: int | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name = name
        self._load = load
        self._cores = cores or available_cores()
        self._clock = clock
        self._lock = threading.Lock()
        self._model: Future[PairModel] | None = None

    def rerank(
        self, query: str, passages: Sequence[str], *, timeout_s: float
    ) -> Sequence[float | None]:
        """
        How well each passage answers the query, 0..1, in their order; None if not reached in time.

        Raises:
            TransientInferenceError: The weights are still being read, or the time was up before
                the first passage was scored.
            InferenceError: The model cannot be loaded, or fails.
        """
        if not passages:
            return []
        end = self._clock() + timeout_s
        model = self._wait_for_model(timeout_s)
        question = clean(query)

        def score(passage: str) -> float:
            return self._score(model, question, passage)

        return score_in_time(
            self.name,
            lambda batch, left_s: _at_once(self.name, score, batch, left_s),
            passages,
            end - self._clock(),
            first=self._cores,
            most=self._cores,
            clock=self._clock,
        )

    def _score(self, model: PairModel, question: str, passage: str) -> float:
        """0..1. Raises InferenceError."""
        try:
            logit = model.logit(question, cut(clean(passage), PASSAGE_TOKENS))
        except Exception as error:  # onnxruntime's and tokenizers' share no other base
            raise InferenceError(f"{self.name} failed: {error}") from error
        if not isfinite(logit):
            raise InferenceError(f"{self.name} gave {logit} for a score.")
        return sigmoid(logit)

    def prepare(self) -> None:
        """Start to read the weights, if they are not there yet; does not wait for them."""
        with self._lock:
            if self._model is None or (self._model.done() and self._model.exception()):
                (self._model,) = _on_threads("qmd-model-loader", self._loaded)

    def _wait_for_model(self, timeout_s: float) -> PairModel:
        """
        The model, as soon as its weights are read.

        Raises:
            TransientInferenceError: They are not within ``timeout_s``.
            InferenceError: They cannot be read.
        """
        self.prepare()
        with self._lock:
            model = self._model
        assert model is not None, "`prepare` starts to read it"
        if wait([model], timeout_s).not_done:
            raise TransientInferenceError(f"{self.name} is still being loaded.")
        return model.result()

    def _loaded(self) -> PairModel:
        try:
            return self._load()
        except InferenceError:
            raise
        except Exception as error:  # raised in `_wait_for_model`, for each question
            raise InferenceError(f"Cannot load {self.name}: {error}") from error


def _at_once(
    name: str, score: Callable[[str], float], passages: Sequence[str], timeout_s: float
) -> list[float]:
    """
    The scores of passages, each scored on a thread of its own.

    The process ends only after them, so a thread has one pair and no more.

    Raises:
        TransientInferenceError: They took longer than ``timeout_s``; they run to their end.
        InferenceError: The model failed.
    """
    futures = _on_threads("qmd-rerank", *(partial(score, passage) for passage in passages))
    done, late = wait(futures, timeout_s)
    scores = [future.result() for future in futures if future in done]
    if late:
        raise TransientInferenceError(f"{name} has not scored a passage within {timeout_s:.1f} s.")
    return scores


def _on_threads(name: str, *calls: Callable[[], T]) -> list[Future[T]]:
    """
    Run each call on a thread of its own.

    The threads run native code, so the process waits for them at its end, as it does for those of
    every pool: Python would end a daemon thread inside C++, and the process would abort.
    """
    pool = ThreadPoolExecutor(len(calls), thread_name_prefix=name)
    futures = [pool.submit(call) for call in calls]
    pool.shutdown(wait=False)
    return futures


def open_cross_encoder(name: str, cache_dir: Path) -> CrossEncoder:
    """
    Open a cross-encoder by its name, or by the path of its folder; reads no weights.

    Raises:
        ModelMissingError: There is no such model, or it is not on this machine; the hint says
            which.
    """
    if onnx_folder.is_folder(name):
        folder = onnx_folder.read(name)
        # By the content: other files in a folder are another model.
        folder_name = f"{folder.path.name} ({folder.described.fingerprint.partition('|')[0]})"
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
    return inference.onnx_model.OnnxPairModel(folder)

"""
Embeds any text with fastembed, one text at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from qmd.errors import InferenceError
from qmd.system import cancellation, telemetry
from qmd.system.surrogates import whole
from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from fastembed import TextEmbedding
    from numpy.typing import NDArray

# No text of this many characters a token fits, and tokenizing megabytes at once is slow.
_MAX_CHARS_PER_TOKEN = 8


class TextModel(Protocol):
    """The part of `fastembed.TextEmbedding` that is used; it may have a ``tokenizer``."""

    def embed(self, texts: list[str], /, batch_size: int = 1) -> Iterable[Any]: ...


class FastEmbedder:
    """
    An `Embedder` on a model of fastembed, or on any other `TextModel`.

    Each run of the model gets one text: int8 activations are scaled per batch, so in a batch a
    text's vector would depend on its neighbours, and long batches take gigabytes for no gain in
    speed. Each run has one core: a text is too small to be shared out, and threads that wait for
    each other suffer on a busy machine.

    Args:
        load: Loads the weights; called at the first text.
        threads: How many runs at once; None for as many as there are cores.
    """

    def __init__(
        self, spec: ModelSpec, load: Callable[[], TextModel], *, threads: int | None = None
    ) -> None:
        self._spec = spec
        self._load = load
        self._threads = threads or available_cores()
        self._lock = threading.Lock()
        self._loaded: tuple[int, TextModel] | None = None

    @property
    def spec(self) -> ModelSpec:
        return self._spec

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in this process's memory."""
        loaded = self._loaded
        return loaded is not None and loaded[0] == os.getpid()

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32[len(texts), dimension]."""
        import numpy as np

        vectors = np.empty((len(texts), self._spec.dimension), np.float32)

        def embed_row(row: int) -> None:
            vectors[row] = self._embed(self._spec.passage_prefix, texts[row])

        workers = min(self._threads, len(texts))
        if workers < 2:
            for row in range(len(texts)):
                cancellation.check()
                embed_row(row)
            return vectors
        pool = ThreadPoolExecutor(workers, thread_name_prefix="qmd-embed")
        try:
            for _done in pool.map(embed_row, range(len(texts))):
                cancellation.check()
        finally:
            pool.shutdown(cancel_futures=True)  # at Ctrl-C, do not embed the rest first
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A unit vector, float32[dimension]."""
        return self._embed(self._spec.query_prefix, text)

    def _embed(self, prefix: str, text: str) -> NDArray[np.float32]:
        import numpy as np

        model = self._model()
        total = np.zeros(self._spec.dimension, np.float32)
        with _inference_errors(f"Cannot embed a text with {self._spec.name}"):
            parts = list(self._parts(model, prefix, clean(text)))
            for part, tokens in parts:
                (vector,) = model.embed([prefix + part], batch_size=1)
                if vector.shape != total.shape:  # a single number would be added to each
                    raise ValueError(f"the vector has the shape {vector.shape}")
                total += vector * (tokens if len(parts) > 1 else 1)
        norm = float(np.linalg.norm(total))
        if not np.isfinite(norm) or norm == 0:
            raise InferenceError(
                f"The model {self._spec.name} gave no usable vector.",
                hint="Run 'qmd doctor'; the model or onnxruntime may be damaged.",
            )
        unit: NDArray[np.float32] = total / np.float32(norm)
        return unit

    def _parts(self, model: TextModel, prefix: str, text: str) -> Iterator[tuple[str, int]]:
        """Pieces that fit the model, and the tokens of each; longer ones are halved at a space."""
        limit = self._spec.max_tokens
        if len(text) <= limit * _MAX_CHARS_PER_TOKEN:
            tokenizer = _tokenizer(model)
            encoding = tokenizer.encode(prefix + text) if tokenizer else None
            if encoding is None or not encoding.overflowing or len(text) < 2:
                yield text, len(encoding.ids) if encoding else len(text)
                return
        halves = [half for half in _halves(text) if half.strip()]
        for half in halves or [""]:
            yield from self._parts(model, prefix, half)

    def _model(self) -> TextModel:
        with self._lock:
            # The threads of onnxruntime do not survive a fork: a child loads the model anew.
            if self._loaded is None or self._loaded[0] != os.getpid():
                self._loaded = (os.getpid(), self._load())
            return self._loaded[1]


@contextmanager
def _inference_errors(problem: str) -> Iterator[None]:
    """Turn what the libraries raise into an InferenceError."""
    try:
        yield
    except Exception as error:  # onnxruntime's and tokenizers' share no other base
        raise InferenceError(
            f"{problem}: {error}",
            hint="Run 'qmd doctor'. If the model is damaged, 'qmd models pull' makes it anew.",
        ) from error


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def clean(text: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot hold, and without NUL."""
    return (text if text.isascii() else whole(text)).replace("\0", " ")


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    window = len(text) // 8
    before = max(text.rfind(mark, middle - window, middle) for mark in "\n 。.，,")
    cut = before + 1 if before >= 0 else middle
    return text[:cut], text[cut:]


def quiet_libraries() -> None:
    """Let fastembed and onnxruntime write nothing to stderr and send nothing home."""
    import onnxruntime
    from loguru import logger

    logger.disable("fastembed")
    onnxruntime.set_default_logger_severity(4)
    telemetry.switch_off_onnxruntime()


def text_embedding(name: str, **options: Any) -> TextEmbedding:
    """
    A loaded model of fastembed that uses one core for each run.

    Raises:
        InferenceError: It cannot be loaded.
    """
    from fastembed import TextEmbedding

    quiet_libraries()
    with _inference_errors(f"Cannot load the embedding model {name}"):
        model = TextEmbedding(name, threads=1, cuda=False, **options)
    tokenizer = _tokenizer(model)
    if tokenizer is not None:
        tokenizer.encode_special_tokens = True  # in a note, "</s>" and "<pad>" are characters
    return model


def _tokenizer(model: TextModel) -> Any:
    """The `tokenizers.Tokenizer`, which truncates; None for a model that has none."""
    return getattr(getattr(model, "model", model), "tokenizer", None)

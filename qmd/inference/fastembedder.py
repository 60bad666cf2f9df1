"""Embeds any text with fastembed, one text at a time, with the state of each token."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from qmd import libraries
from qmd.errors import InferenceError
from qmd.inference.protocols import (
    EmbeddedTexts,
    Role,
    TextEmbedder,
    TokenStates,
    no_states,
)
from qmd.system import cancellation, telemetry
from qmd.values import ModelSpec
from qmd.values.text import is_english_question, replace_halves

if TYPE_CHECKING:
    import numpy as np
    from fastembed import TextEmbedding
    from numpy.typing import NDArray


T = TypeVar("T")

# No text of this many characters a token fits, and tokenizing megabytes at once is slow.
_MAX_CHARS_PER_TOKEN = 8


class TextModel(Protocol):
    """The part of `fastembed.TextEmbedding` that is used; it may have a ``tokenizer``."""

    def embed(self, texts: list[str], /, batch_size: int = 1) -> Iterable[Any]: ...


class TextPart(NamedTuple):
    """
    A part of a text.

    Attributes:
        tokens: How many tokens it has with the prefix; its characters, without a tokenizer.
        encoding: The `tokenizers.Encoding` of prefix and part; None without a tokenizer.
    """

    text: str
    tokens: int
    encoding: Any


class FastEmbedder(TextEmbedder):
    """
    A `TokenEmbedder` on a model of fastembed, or on any other `TextModel`.

    Each run of the model gets one text: int8 activations are scaled per batch, so in a batch a
    text's vector would depend on its neighbours, and long batches take gigabytes for no gain in
    speed. Each run has one core: a text is too small to be shared out, and threads that wait for
    each other suffer on a busy machine.

    Args:
        load: Loads the weights; called at the first text.
        threads: How many runs at once; None for as many as there are cores.
        english: A model of English alone, which also says what an English question means.
    """

    def __init__(
        self,
        spec: ModelSpec,
        load: Callable[[], TextModel],
        *,
        threads: int | None = None,
        english: FastEmbedder | None = None,
    ) -> None:
        self.english = english
        self._spec = spec
        self._load = load
        self._threads = threads or available_cores()
        self._lock = threading.Lock()
        self._loaded: tuple[int, TextModel] | None = None
        self._has_states: tuple[TextModel, bool] | None = None

    @property
    def spec(self) -> ModelSpec:
        return self._spec

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in this process's memory."""
        loaded = self._loaded
        return loaded is not None and loaded[0] == os.getpid()

    @property
    def gives_token_states(self) -> bool:
        """Whether the model has a state for each token; loads the weights."""
        model = self._model()
        if self._has_states is None or self._has_states[0] is not model:
            with self._errors():
                has_states = has_token_states(model, _tokenizer(model), self._spec.dimension)
                self._has_states = (model, has_states)
        return self._has_states[1]

    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        spec = self._spec
        prefix = spec.passage_prefix if role == "passage" else spec.query_prefix
        has_states = with_tokens and self.gives_token_states
        pairs = self._each(lambda text: self._embed(prefix, text, has_states), texts)
        rows = libraries.np.array([vector for vector, _ in pairs], libraries.np.float32)
        states = tuple(states for _, states in pairs) if with_tokens else ()
        if role == "query":
            states = tuple(map(self._with_english, texts, states))
        return EmbeddedTexts(rows.reshape(len(texts), spec.dimension), states)

    def _with_english(self, text: str, states: TokenStates) -> TokenStates:
        """With the vector that the model of English gives to an English question."""
        if self.english is None or not is_english_question(text):
            return states
        vector = self.english.embed_query(text)
        return replace(states, english=vector.astype("float16").astype("float32"))

    def _each(self, work: Callable[[str], T], texts: Sequence[str]) -> list[T]:
        """What ``work`` makes of each text, on at most `threads` threads; in the order of texts."""
        results = []
        workers = min(self._threads, len(texts))
        if workers < 2:
            for text in texts:
                cancellation.check()
                results.append(work(text))
            return results
        pool = ThreadPoolExecutor(workers, thread_name_prefix="qmd-embed")
        try:
            for result in pool.map(work, texts):
                cancellation.check()
                results.append(result)
        finally:
            pool.shutdown(cancel_futures=True)  # at Ctrl-C, do not embed the rest first
        return results

    def _embed(
        self, prefix: str, text: str, has_states: bool
    ) -> tuple[NDArray[np.float32], TokenStates]:
        model = self._model()
        tokens: list[TextTokens] = []
        with self._errors():
            parts = self._parts(model, prefix, text)
            if has_states:
                runs = [run_for_states(model, prefix + part.text) for part in parts]
                vectors = [run.vector for run in runs]
                tokens = [
                    tokens_of_text(part.encoding, prefix, run.states)
                    for part, run in zip(parts, runs, strict=True)
                    if run.states is not None
                ]
            else:
                vectors = [_only(model.embed([prefix + part.text], batch_size=1)) for part in parts]
            states = merged_tokens(tokens, self._spec.dimension)
            total = self._sum(parts, vectors)
        return self._unit(total), states

    def _errors(self) -> AbstractContextManager[None]:
        return _inference_errors(f"Cannot embed a text with {self._spec.name}")

    def _parts(self, model: TextModel, prefix: str, text: str) -> list[TextPart]:
        tokenizer = _tokenizer(model)
        return list(text_parts(clean(text), prefix, tokenizer, self._spec.max_tokens))

    def _sum(
        self, parts: Sequence[TextPart], vectors: Sequence[NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """The sum of the parts' vectors, weighted by their tokens: float32[dimension]."""
        total = libraries.np.zeros(self._spec.dimension, libraries.np.float32)
        for part, vector in zip(parts, vectors, strict=True):
            if vector.shape != total.shape:  # a single number would be added to each
                raise ValueError(f"the vector has the shape {vector.shape}")
            total += vector * (part.tokens if len(parts) > 1 else 1)
        return total

    def _unit(self, total: NDArray[np.float32]) -> NDArray[np.float32]:
        """With norm 1. Raises InferenceError if it has no direction."""
        norm = float(libraries.np.linalg.norm(total))
        if not libraries.np.isfinite(norm) or norm == 0:
            raise InferenceError(
                f"The model {self._spec.name} gave no usable vector.",
                hint="Run 'qmd doctor'; the model or onnxruntime may be damaged.",
            )
        unit: NDArray[np.float32] = total / libraries.np.float32(norm)
        return unit

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
    return (text if text.isascii() else replace_halves(text)).replace("\0", " ")


def _only(vectors: Iterable[Any]) -> NDArray[np.float32]:
    """The one vector. Raises ValueError if there are others."""
    vector: NDArray[np.float32]
    (vector,) = vectors
    return vector


def quiet_libraries() -> None:
    """Let fastembed and onnxruntime write nothing to stderr and send nothing home."""
    libraries.loguru.logger.disable("fastembed")
    libraries.onnxruntime.set_default_logger_severity(4)
    telemetry.switch_off_onnxruntime()


def text_embedding(name: str, **options: Any) -> TextEmbedding:
    """
    A loaded model of fastembed that uses one core for each run.

    Raises:
        InferenceError: It cannot be loaded.
    """
    quiet_libraries()
    with _inference_errors(f"Cannot load the embedding model {name}"):
        model = libraries.fastembed.TextEmbedding(name, threads=1, cuda=False, **options)
    tokenizer = _tokenizer(model)
    if tokenizer is not None:
        tokenizer.encode_special_tokens = True  # in a note, "</s>" and "<pad>" are characters
    return model


def _tokenizer(model: TextModel) -> Any:
    """The `tokenizers.Tokenizer`, which truncates; None for a model that has none."""
    return getattr(getattr(model, "model", model), "tokenizer", None)


def text_parts(text: str, prefix: str, tokenizer: Any, max_tokens: int) -> Iterator[TextPart]:
    """The parts of a text, in order. A part that does not fit is halved, at a space if possible."""
    if len(text) <= max_tokens * _MAX_CHARS_PER_TOKEN:
        encoding = tokenizer.encode(prefix + text) if tokenizer else None
        if encoding is None or not encoding.overflowing or len(text) < 2:
            yield TextPart(text, len(encoding.ids) if encoding else len(text), encoding)
            return
    parts = [half for half in halves(text) if half.strip()]
    for half in parts or [""]:
        yield from text_parts(half, prefix, tokenizer, max_tokens)


def halves(text: str) -> tuple[str, str]:
    """Two parts of a text of at least two characters; together they are the text."""
    middle = len(text) // 2
    window = len(text) // 8
    before = max(text.rfind(mark, middle - window, middle) for mark in "\n 。.，,")
    cut = before + 1 if before >= 0 else middle
    return text[:cut], text[cut:]


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


def run_for_states(model: Any, text: str) -> ModelRun:
    """Run a model of `onnx_model` or of fastembed once."""
    if hasattr(model, "vector_and_states"):
        return ModelRun(*model.vector_and_states(text))
    # What `TextEmbedding.embed` does with one text; `has_token_states` compares the two.
    output = model.model.onnx_embed([text])
    (vector,) = model.model._post_process_onnx_output(output)
    states = libraries.np.asarray(output.model_output)
    return ModelRun(
        vector, states[0].astype(libraries.np.float32, copy=False) if states.ndim == 3 else None
    )


def has_token_states(model: Any, tokenizer: Any, dimension: int) -> bool:
    """
    Whether `run_for_states` gives a state for each token, and the vector of ``model.embed``.

    Some models of fastembed do more than to run the network, and other models have no tokenizer.

    Args:
        dimension: Of the vectors. Behind the last layer some models have one that changes it.
    """
    if tokenizer is None:
        return False
    try:
        ours = run_for_states(model, _PROBE)
        (vector,) = model.embed([_PROBE], batch_size=1)
    except (AttributeError, TypeError, ValueError):  # another model, or another fastembed
        return False
    count = len(tokenizer.encode(_PROBE).ids)
    return (
        ours.states is not None
        and ours.states.shape == (count, dimension)
        and bool(libraries.np.array_equal(ours.vector, vector))
    )


class TextTokens(NamedTuple):
    """The tokens of a text or of a part of it: ids int32[t] and states float32[t, dimension]."""

    ids: NDArray[np.int32]
    states: NDArray[np.float32]


def tokens_of_text(encoding: Any, prefix: str, states: NDArray[np.float32]) -> TextTokens:
    """
    The tokens of the text itself, without special tokens and those of the prefix.

    Args:
        encoding: The `tokenizers.Encoding` of prefix and text.
        states: float32[tokens, dimension], of all tokens of the encoding.
    """
    is_text = libraries.np.array(encoding.special_tokens_mask) == 0
    for place, (_start, end) in enumerate(encoding.offsets[: len(prefix) + 2]):
        if end > len(prefix):
            break
        is_text[place] = False
    return TextTokens(
        libraries.np.array(encoding.ids, libraries.np.int32)[is_text], states[is_text]
    )


def merged_tokens(parts: Sequence[TextTokens], dimension: int) -> TokenStates:
    """One mean state for each distinct token of all parts of a text."""
    if not sum(len(part.ids) for part in parts):
        return no_states(dimension)
    all_ids = libraries.np.concatenate([part.ids for part in parts])
    order = libraries.np.argsort(all_ids, kind="stable")
    ids, starts, counts = libraries.np.unique(all_ids[order], return_index=True, return_counts=True)
    states = libraries.np.concatenate([part.states for part in parts])[order]
    means = libraries.np.add.reduceat(states, starts, axis=0) / counts[:, None].astype(
        libraries.np.float32
    )
    rounded = (
        libraries.np.clip(means, -65504, 65504)
        .astype(libraries.np.float16)
        .astype(libraries.np.float32)
    )
    return TokenStates(ids, libraries.np.nan_to_num(rounded))

"""
Embeds with a model behind an OpenAI-compatible server (``/v1/embeddings``).
"""

from __future__ import annotations

import base64
import binascii
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmd.errors import InferenceError, ModelMismatchError, TransientInferenceError
from qmd.inference.families import family
from qmd.inference.fastembedder import clean
from qmd.inference.llm.endpoint import ModelEndpoint, ModelReply
from qmd.inference.protocols import EmbeddedTexts, Role, TextEmbedder
from qmd.values import ModelSpec

#: A request is sent when it has this many texts, or more than so many characters: servers refuse
#: large requests.
BATCH, BATCH_CHARS = 32, 48_000
#: A longer text is split, and the vectors of the parts are averaged by length. Few models of
#: servers take more than 8,192 tokens, and none fewer than 512, for which see `_split_vector`.
LONGEST_CHARS = 12_000
#: A text of so few characters fits every model: where it is refused, length is not the reason.
_SHORT_CHARS = 500
#: Statuses by which the various servers refuse a text that is too long.
_PERHAPS_TOO_LONG = {400, 413, 422, 500}
#: Pauses before passages are sent again, in seconds.
_PAUSES_S = (1.0, 3.0, 9.0)
_LONGEST_PAUSE_S = 60.0
_MOST_BYTES = 64 << 20
_QUERY_S = 10.0

_log = logging.getLogger(__name__)


class EndpointEmbedder(TextEmbedder):
    """
    An `Embedder` that asks a server.

    Args:
        model: The name of the model on the server.
        name: The name of the model in the database.
        dimension: As the database has recorded it; None to ask the server when `spec` is needed.
        wait: Called with the seconds to pause.
    """

    def __init__(
        self,
        endpoint: ModelEndpoint,
        model: str,
        *,
        name: str,
        dimension: int | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._name = name
        self._model = model
        self._family = family(model)
        self._lock = threading.Lock()
        self._dimension = dimension
        self._wait = wait

    @property
    def asks_server(self) -> bool:
        return True

    @property
    def spec(self) -> ModelSpec:
        """Asks the server for a vector if the dimension is not recorded. Raises InferenceError."""
        with self._lock:
            if self._dimension is None:
                (vector,) = self._rows(self._ask(["dimension"], _QUERY_S).json(), 1)
                self._dimension = len(vector)
            query, passage = self._family.query_prefix, self._family.passage_prefix
            return ModelSpec(
                name=self._name,
                fingerprint=f"{self._name}|{self._dimension}|{query}|{passage}",
                dimension=self._dimension,
                max_tokens=512,
                query_prefix=query,
                passage_prefix=passage,
            )

    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        """A question is asked once; passages are sent again where that may help."""
        dimension = self.spec.dimension
        rows = [np.empty((0, dimension), np.float32)]
        if role == "query":
            for text in texts:
                prompt = self._family.query_prefix + clean(text)[:LONGEST_CHARS]
                rows.append(self._vectors(self._ask([prompt], _QUERY_S), 1, dimension))
            return EmbeddedTexts(np.concatenate(rows))
        batch: list[str] = []
        for text in texts:
            batch.append(self._family.passage_prefix + clean(text))
            if len(batch) == BATCH or sum(map(len, batch)) > BATCH_CHARS:
                rows.append(self._retried(batch, dimension))
                batch = []
        if batch:
            rows.append(self._retried(batch, dimension))
        return EmbeddedTexts(np.concatenate(rows))

    def _retried(self, texts: list[str], dimension: int) -> NDArray[np.float32]:
        """Unit vectors, float32[len(texts), dimension]; tried again while the error may pass."""
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._fitted(texts, dimension)
            except TransientInferenceError as error:
                retry_after_s = error.retry_after_s or 0.0
                if pause_s is None or retry_after_s > _LONGEST_PAUSE_S:
                    raise
                _log.info("embedding is tried again: %s", error)
                self._wait(max(pause_s, retry_after_s))
        raise AssertionError("the last try returns or raises")

    def _fitted(self, texts: list[str], dimension: int) -> NDArray[np.float32]:
        """All texts in one request; if the server refuses, one by one, and long ones split."""
        longest = max(map(len, texts))
        if longest <= LONGEST_CHARS:
            reply = self._ask(texts, self._endpoint.settings.timeout_s)
            if longest <= _SHORT_CHARS or reply.status not in _PERHAPS_TOO_LONG:
                return self._vectors(reply, len(texts), dimension)
        if len(texts) == 1:
            return self._split_vector(texts[0], dimension)[np.newaxis]
        return np.concatenate([self._fitted([text], dimension) for text in texts])

    def _split_vector(self, text: str, dimension: int) -> NDArray[np.float32]:
        """The unit vector of a text that is too long, from those of the two halves."""
        middle = len(text) // 2
        space = text.rfind(" ", middle - middle // 4, middle)
        cut = space if space > 0 else middle
        prefix = self._family.passage_prefix
        parts = [text[:cut], prefix + text[cut:]]
        vectors = self._fitted(parts, dimension)
        total: NDArray[np.float32] = vectors.T @ np.array([len(part) for part in parts], np.float32)
        return self._unit(total)

    def _vectors(self, reply: ModelReply, count: int, dimension: int) -> NDArray[np.float32]:
        """Unit vectors, float32[count, dimension]. Raises InferenceError."""
        rows = self._rows(reply.json(), count)
        if any(len(row) != dimension for row in rows):
            raise ModelMismatchError(
                f"{self._name} gives vectors of {len(rows[0])} numbers now, and had {dimension}.",
                hint="The server has another model under this name: 'qmd models use' names one.",
            )
        return np.array([self._unit(row) for row in rows], np.float32)

    def _rows(self, reply: Any, count: int) -> list[NDArray[np.float32]]:
        """Vectors of any length and norm, in the order of the texts. Raises InferenceError."""
        data = reply.get("data") if isinstance(reply, dict) else None
        vectors: dict[int, NDArray[np.float32]] = {}
        for place, each in enumerate(data if isinstance(data, list) else ()):
            if isinstance(each, dict):
                index = each.get("index", place)
                vector = _vector(each.get("embedding"))
                if type(index) is int and 0 <= index < count and vector is not None:
                    vectors[index] = vector
        if len(vectors) != count:
            raise self._unusable(f"{len(vectors)} usable vectors for {count} texts")
        return [vectors[index] for index in range(count)]

    def _unit(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[dimension], divided by the norm. Raises InferenceError."""
        norm = float(np.linalg.norm(vector))
        if norm == 0 or not np.isfinite(norm):
            raise self._unusable("a vector without a direction")
        unit: NDArray[np.float32] = vector / np.float32(norm)
        return unit

    def _unusable(self, what: str) -> InferenceError:
        return InferenceError(
            f"The embedding model {self._name} at {self._endpoint.name} gave {what}.",
            hint="Is it an embedding model? 'qmd doctor' tries it, 'qmd models use' names another.",
        )

    def _ask(self, texts: list[str], timeout_s: float) -> ModelReply:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        return self._endpoint.ask("/embeddings", body, timeout_s=timeout_s, max_bytes=_MOST_BYTES)


def _vector(value: object) -> NDArray[np.float32] | None:
    """A list of finite numbers, or base64 of them, as a vector; None if it is something else."""
    try:
        if isinstance(value, str):  # base64, which some servers send whatever format is named
            numbers = np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        elif isinstance(value, list):
            numbers = np.array(value)
        else:
            return None
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "fiu":
            return None
        with np.errstate(over="ignore"):
            vector: NDArray[np.float32] = numbers.astype(np.float32)
    except (binascii.Error, ValueError, OverflowError):
        return None
    return vector if np.isfinite(vector).all() else None

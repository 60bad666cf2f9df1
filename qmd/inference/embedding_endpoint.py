"""
Embedding models behind an OpenAI-compatible server (``/v1/embeddings``).
"""

from __future__ import annotations

import base64
import binascii
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from qmd.errors import InferenceError, ModelMismatchError, TransientInferenceError
from qmd.inference.families import family
from qmd.inference.fastembedder import clean
from qmd.inference.llm.endpoint import ModelEndpoint, ModelReply
from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Texts in one request, and characters, beyond which it is sent: servers refuse large ones.
BATCH, BATCH_CHARS = 32, 48_000
#: A longer text is embedded in parts whose vectors are averaged by length. Few models of
#: servers take more than 8,192 tokens, and none less than 512, for which see `_halved`.
LONGEST_CHARS = 12_000
#: A text of so few characters fits every model: then it is not its length that is refused.
_SHORT = 500
#: What servers answer to a text that is too long for them, each its own.
_PERHAPS_TOO_LONG = {400, 413, 422, 500}
#: Pauses before passages are sent again.
_PAUSES_S = (1.0, 3.0, 9.0)
_LONGEST_PAUSE_S = 60.0
_MOST_BYTES = 64 << 20
_QUERY_S = 10.0

_log = logging.getLogger(__name__)


class EndpointEmbedder:
    """
    An `Embedder` that asks a server.

    Args:
        model: As the server knows it.
        name: As the database does.
        dimension: As it was recorded; None to find out by asking, when `spec` is needed.
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

    asks_server = True

    @property
    def spec(self) -> ModelSpec:
        """Asks the server for a vector where the dimension is not known. Raises InferenceError."""
        with self._lock:
            if self._dimension is None:
                (vector,) = self._rows(self._ask(["dimension"], _QUERY_S).json(), 1)
                self._dimension = len(vector)
            known = self._family
            prefixes = f"{known.query_prefix}|{known.passage_prefix}"
            return ModelSpec(
                name=self._name,
                fingerprint=f"{self._name}|{self._dimension}|{prefixes}",
                dimension=self._dimension,
                max_tokens=512,
                query_prefix=known.query_prefix,
                passage_prefix=known.passage_prefix,
            )

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimension); tried again where that may help."""
        import numpy as np

        dimension = self.spec.dimension
        rows = [np.empty((0, dimension), np.float32)]
        batch: list[str] = []
        for text in texts:
            batch.append(self._family.passage_prefix + clean(text))
            if len(batch) == BATCH or sum(map(len, batch)) > BATCH_CHARS:
                rows.append(self._patiently(batch, dimension))
                batch = []
        if batch:
            rows.append(self._patiently(batch, dimension))
        return np.concatenate(rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A unit vector, shape (dimension,); asked once."""
        dimension = self.spec.dimension
        asked = self._family.query_prefix + clean(text)[:LONGEST_CHARS]
        vectors = self._vectors(self._ask([asked], _QUERY_S), 1, dimension)
        return vectors.reshape(dimension)

    def _patiently(self, texts: list[str], dimension: int) -> NDArray[np.float32]:
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._fitting(texts, dimension)
            except TransientInferenceError as error:
                asked_s = error.retry_after_s or 0.0
                if pause_s is None or asked_s > _LONGEST_PAUSE_S:
                    raise
                _log.info("embedding is tried again: %s", error)
                self._wait(max(pause_s, asked_s))
        raise AssertionError("the last try returns or raises")

    def _fitting(self, texts: list[str], dimension: int) -> NDArray[np.float32]:
        """Together; where the server refuses that, one by one, and long ones in parts."""
        import numpy as np

        longest = max(map(len, texts))
        if longest <= LONGEST_CHARS:
            reply = self._ask(texts, self._endpoint.settings.timeout_s)
            if longest <= _SHORT or reply.status not in _PERHAPS_TOO_LONG:
                return self._vectors(reply, len(texts), dimension)
        if len(texts) == 1:
            return self._halved(texts[0], dimension)[np.newaxis]
        return np.concatenate([self._fitting([text], dimension) for text in texts])

    def _halved(self, text: str, dimension: int) -> NDArray[np.float32]:
        import numpy as np

        middle = len(text) // 2
        space = text.rfind(" ", middle - middle // 4, middle)
        cut = space if space > 0 else middle
        prefix = self._family.passage_prefix
        parts = [text[:cut], prefix + text[cut:]]
        vectors = self._fitting(parts, dimension)
        total: NDArray[np.float32] = vectors.T @ np.array([len(part) for part in parts], np.float32)
        return self._unit(total)

    def _vectors(self, reply: ModelReply, count: int, dimension: int) -> NDArray[np.float32]:
        import numpy as np

        rows = self._rows(reply.json(), count)
        if any(len(row) != dimension for row in rows):
            raise ModelMismatchError(
                f"{self._name} gives vectors of {len(rows[0])} numbers now, and had {dimension}.",
                hint="The server has another model under this name: 'qmd models use' names one.",
            )
        return np.array([self._unit(row) for row in rows], np.float32)

    def _rows(self, reply: Any, count: int) -> list[NDArray[np.float32]]:
        """The vectors in the order of the texts. Raises InferenceError."""
        data = reply.get("data") if isinstance(reply, dict) else None
        found: dict[int, NDArray[np.float32]] = {}
        for place, each in enumerate(data if isinstance(data, list) else ()):
            if isinstance(each, dict):
                index = each.get("index", place)
                vector = _vector(each.get("embedding"))
                if type(index) is int and 0 <= index < count and vector is not None:
                    found[index] = vector
        if len(found) != count:
            raise self._unusable(f"{len(found)} usable vectors for {count} texts")
        return [found[index] for index in range(count)]

    def _unit(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        import numpy as np

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
    import numpy as np

    try:
        if isinstance(value, str):  # base64, which some servers send whatever they are asked
            found = np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        elif isinstance(value, list):
            found = np.array(value)
        else:
            return None
        if found.ndim != 1 or not len(found) or found.dtype.kind not in "fiu":
            return None
        with np.errstate(over="ignore"):
            vector: NDArray[np.float32] = found.astype(np.float32)
    except (binascii.Error, ValueError, OverflowError):
        return None
    return vector if np.isfinite(vector).all() else None

"""
Query vectors from the qmd server that runs for a database, so that one model serves many
processes: loading it takes a second, asking takes a hundredth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qmd.errors import InferenceError, TransientInferenceError
from qmd.inference.protocols import Embedder
from qmd.system import running
from qmd.system.running import RunningServer
from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ANSWER_S = 3.0
"""
What a query may wait for models. The server may be loading its own just then, which takes as
long as loading ours.
"""


class RemoteEmbedder:
    """
    An `Embedder` that lets the running server embed questions, and does the rest itself.

    Args:
        spec: Our own model; an answer made by another one is not used.
        find: The server as it is known at the moment, or None.
        is_loaded: Whether our own model is in memory, and asking is not worth it.
        local: Opens our own model.
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        find: Callable[[], RunningServer | None],
        is_loaded: Callable[[], bool],
        local: Callable[[], Embedder],
    ) -> None:
        self.spec = spec
        self._find = find
        self._is_loaded = is_loaded
        self._local = local

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._local().embed_passages(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Asks the server if there is one, and falls back to the model of this process."""
        server = None if self._is_loaded() else self._find()
        if server is not None:
            try:
                return ask(server, text, self.spec)
            except InferenceError:
                pass  # it is gone, busy, or runs another model: we can do it ourselves
        return self._local().embed_query(text)


def ask(server: RunningServer, text: str, spec: ModelSpec) -> NDArray[np.float32]:
    """
    The query vector as the server makes it: unit norm, shape (dimension,).

    Raises:
        TransientInferenceError: It does not answer, or not with a vector of this model.
    """
    import numpy as np

    body = {"texts": [text.encode("utf-8", "replace").decode()], "kind": "query"}
    try:
        status, reply = running.call(server, "/embed", body, timeout_s=ANSWER_S)
    except (OSError, ValueError) as error:
        raise TransientInferenceError(f"No answer from {server.url}.") from error
    if status != 200 or not isinstance(reply, dict):
        raise TransientInferenceError(f"{server.url} answered {status}.")
    if reply.get("fingerprint") != spec.fingerprint:
        raise TransientInferenceError(f"The server at {server.url} runs another model.")
    try:
        vector = np.array(reply["embeddings"][0], np.float32)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TransientInferenceError(f"Not a vector from {server.url}.") from error
    norm = float(np.linalg.norm(vector)) if vector.shape == (spec.dimension,) else 0.0
    if not 0.9 < norm < 1.1:
        raise TransientInferenceError(f"Not a vector from {server.url}.")
    return vector

"""
Gets the vectors of questions from the qmd server that runs for a database.

So one model serves many processes: loading it takes a second, asking takes a hundredth.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmd.errors import InferenceError, TransientInferenceError
from qmd.inference.protocols import Embedder, TokenStates, no_states, token_embedder
from qmd.system import running
from qmd.system.running import RunningServer
from qmd.values import ModelSpec

ANSWER_S = 3.0
"""
The longest wait for the server. It may be loading its model just then, which takes as long as
loading one here.
"""


class RemoteEmbedder:
    """
    An `Embedder` that lets the running server embed questions, and does the rest here.

    Args:
        spec: The model of this process; an answer by another model is not used.
        find: Looks for the server that runs at the moment; None if there is none.
        is_loaded: Whether the model of this process is in memory, so that asking is no gain.
        local: Opens the model of this process.
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

    #: Asked only where the database has token states of this model.
    gives_token_states = True

    @property
    def is_loaded(self) -> bool:
        """Whether the model of this process is in memory."""
        return self._is_loaded()

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32[len(texts), dimension]; made in this process."""
        return self._local().embed_passages(texts)

    def embed_passages_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], tuple[TokenStates, ...]]:
        """Unit vectors, float32[len(texts), dimension], and token states; made in this process."""
        local = token_embedder(self._local())
        if local is None:
            return self.embed_passages(texts), tuple(
                no_states(self.spec.dimension) for _text in texts
            )
        return local.embed_passages_with_tokens(texts)

    def embed_query_with_tokens(self, text: str) -> tuple[NDArray[np.float32], TokenStates]:
        """A unit vector and token states: by the server, or by this process where that fails."""
        server = None if self._is_loaded() else self._find()
        if server is not None:
            try:
                return ask_with_tokens(server, text, self.spec)
            except InferenceError:
                pass  # as in `embed_query`, or the server is of an earlier version
        local = token_embedder(self._local())
        if local is None:
            return self._local().embed_query(text), no_states(self.spec.dimension)
        return local.embed_query_with_tokens(text)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A unit vector, float32[dimension]: by the server, or by this process where that fails."""
        server = None if self._is_loaded() else self._find()
        if server is not None:
            try:
                return ask(server, text, self.spec)
            except InferenceError:
                pass  # it is gone, busy, or runs another model: the model of this process will do
        return self._local().embed_query(text)


def ask(server: RunningServer, text: str, spec: ModelSpec) -> NDArray[np.float32]:
    """
    The query vector that the server gives: float32[dimension], unit norm.

    Raises:
        TransientInferenceError: It does not answer, or not with a vector of this model.
    """
    return _vector(server, _reply(server, text, spec, with_tokens=False), spec)


def ask_with_tokens(
    server: RunningServer, text: str, spec: ModelSpec
) -> tuple[NDArray[np.float32], TokenStates]:
    """
    The same, and the token states of the query; none if the server's model does not give them.

    Raises:
        TransientInferenceError: As `ask`, or the token states cannot be read.
    """
    reply = _reply(server, text, spec, with_tokens=True)
    vector = _vector(server, reply, spec)
    if "tokens" not in reply:
        return vector, no_states(spec.dimension)
    try:
        tokens = reply["tokens"][0]
        ids = np.array(tokens["ids"], np.int32)
        states = np.frombuffer(base64.b64decode(tokens["states"], validate=True), "<f2")
        states = states.reshape(len(ids), spec.dimension).astype(np.float32)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise TransientInferenceError(f"No token states from {server.url}.") from error
    if ids.ndim != 1 or not np.isfinite(states).all():
        raise TransientInferenceError(f"No token states from {server.url}.")
    return vector, TokenStates(ids, states)


def _reply(
    server: RunningServer, text: str, spec: ModelSpec, *, with_tokens: bool
) -> dict[str, Any]:
    body: dict[str, Any] = {"texts": [text.encode("utf-8", "replace").decode()], "kind": "query"}
    if with_tokens:
        body["tokens"] = True
    try:
        status, reply = running.call(server, "/embed", body, timeout_s=ANSWER_S)
    except (OSError, ValueError) as error:
        raise TransientInferenceError(f"No answer from {server.url}.") from error
    if status != 200 or not isinstance(reply, dict):
        raise TransientInferenceError(f"{server.url} answered {status}.")
    if reply.get("fingerprint") != spec.fingerprint:
        raise TransientInferenceError(f"The server at {server.url} runs another model.")
    return reply


def _vector(server: RunningServer, reply: dict[str, Any], spec: ModelSpec) -> NDArray[np.float32]:
    try:
        vector = np.array(reply["embeddings"][0], np.float32)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise TransientInferenceError(f"Not a vector from {server.url}.") from error
    norm = float(np.linalg.norm(vector)) if vector.shape == (spec.dimension,) else 0.0
    if not 0.9 < norm < 1.1:
        raise TransientInferenceError(f"Not a vector from {server.url}.")
    return vector

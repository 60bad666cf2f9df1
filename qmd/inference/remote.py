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
from qmd.inference import protocols
from qmd.inference.token_codes import ENGLISH_DIMENSION
from qmd.system import running
from qmd.system.running import RunningServer
from qmd.values import ModelSpec

#: The longest wait for the server. It may be loading its model just then, which takes as long as
#: loading one here.
ANSWER_S = 3.0


class RemoteEmbedder(protocols.TextEmbedder):
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
        local: Callable[[], protocols.Embedder],
    ) -> None:
        self._spec = spec
        self._find = find
        self._is_loaded = is_loaded
        self._local = local

    @property
    def spec(self) -> ModelSpec:
        return self._spec

    @property
    def gives_token_states(self) -> bool:
        return True  # asked only where the database has token states of this model

    @property
    def is_loaded(self) -> bool:
        """Whether the model of this process is in memory."""
        return self._is_loaded()

    def embed(
        self, texts: Sequence[str], role: protocols.Role, *, with_tokens: bool = False
    ) -> protocols.EmbeddedTexts:
        """A question is embedded by the server, or by this process where that fails."""
        server = self._find() if role == "query" and not self._is_loaded() else None
        if server is not None:
            try:
                answers = [ask(server, text, self._spec, with_tokens=with_tokens) for text in texts]
                states = tuple(states for _, states in answers) if with_tokens else ()
                return protocols.EmbeddedTexts(np.stack([vector for vector, _ in answers]), states)
            except InferenceError:
                pass  # it is gone, busy, of an earlier version, or runs another model
        return protocols.embed(self._local(), texts, role, with_tokens=with_tokens)


def ask(
    server: RunningServer, text: str, spec: ModelSpec, *, with_tokens: bool = False
) -> tuple[NDArray[np.float32], protocols.TokenStates]:
    """
    The query vector that the server gives: float32[dimension], unit norm, and its token states.

    There are none if nobody asks for them, or if the server's model does not give them.

    Raises:
        TransientInferenceError: It does not answer, or not with what can be read of this model.
    """
    reply = _reply(server, text, spec, with_tokens=with_tokens)
    vector = _vector(server, reply, spec)
    if not with_tokens or "tokens" not in reply:
        return vector, protocols.no_states(spec.dimension)
    try:
        tokens = reply["tokens"][0]
        ids = np.array(tokens["ids"], np.int32)
        (count,) = ids.shape
        states = _numbers(tokens["states"]).reshape(count, spec.dimension)
        english = None
        if "english" in tokens:
            english = _numbers(tokens["english"]).reshape(ENGLISH_DIMENSION)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise TransientInferenceError(f"No token states from {server.url}.") from error
    return vector, protocols.TokenStates(ids, states, english)


def _numbers(text: str) -> NDArray[np.float32]:
    """Raises ValueError, TypeError."""
    numbers = np.frombuffer(base64.b64decode(text, validate=True), "<f2").astype(np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError("not finite")
    return numbers


def _reply(
    server: RunningServer, text: str, spec: ModelSpec, *, with_tokens: bool = False
) -> dict[str, Any]:
    body: dict[str, Any] = {"texts": [text.encode("utf-8", "replace").decode()], "kind": "query"}
    if with_tokens:
        body["tokens"] = True
    try:
        status, reply, _ = running.call(server, "/embed", body, timeout_s=ANSWER_S)
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

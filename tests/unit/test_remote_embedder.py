"""Query vectors from a running server: a real one, in this process."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.embedder import HashEmbedder, HashTokenEmbedder
from support.live_app import LiveApp
from support.model_server import ModelServer
from support.vault import make_vault

from qmd import KnowledgeBase
from qmd.errors import TransientInferenceError
from qmd.inference import remote
from qmd.inference.protocols import Embedder
from qmd.server.endpoints.embedding import packed
from qmd.settings import BUDGET_S, Settings
from qmd.system.running import RunningServer
from qmd.values import ModelSpec
from qmd.values.wire import to_wire


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HashEmbedder, LiveApp]]:
    directory = tmp_path_factory.mktemp("served")
    model = HashEmbedder()
    with KnowledgeBase.open(directory / "x.sqlite", Settings(embedder=model), create=True) as kb:
        kb.add_collection(make_vault(directory))
        with LiveApp(kb, token="s3cret") as app:
            yield model, app


def server_of(app: LiveApp, token: str | None = "s3cret") -> RunningServer:
    return RunningServer(app.url, os.getpid(), token, "1.0.0")


class Unused:
    """Stands where the model of this process must not be opened."""

    def __call__(self) -> Embedder:
        raise AssertionError("the server's vector was to be used")


def embedder(
    server: RunningServer | None, local: Embedder | None = None, *, loaded: bool = False
) -> remote.RemoteEmbedder:
    return remote.RemoteEmbedder(
        HashEmbedder.spec,
        find=lambda: server,
        is_loaded=lambda: loaded,
        local=Unused() if local is None else lambda: local,
    )


def test_the_servers_vector_is_the_one_we_would_make(served: tuple[HashEmbedder, LiveApp]) -> None:
    model, app = served
    before = model.calls
    for text in ("a boat", "数据库", "", "half \ud800 pair"):
        vector = embedder(server_of(app)).embed_query(text)
        own = HashEmbedder().embed_query(text.encode("utf-8", "replace").decode())
        assert abs(vector - own).max() < 1e-6
    assert model.calls == before + 4


@pytest.mark.parametrize("text", ["two words", "", "数据库"])
def test_the_server_gives_the_token_states_too(tmp_path: Path, text: str) -> None:
    model = HashTokenEmbedder()
    with (
        KnowledgeBase.open(tmp_path / "x.sqlite", Settings(embedder=model), create=True) as kb,
        LiveApp(kb, token="s3cret") as app,
    ):
        vector, states = embedder(server_of(app)).embed_query_with_tokens(text)
    own_vector, own = model.embed_query_with_tokens(text)
    assert abs(vector - own_vector).max() < 1e-6
    assert np.array_equal(states.ids, own.ids)
    assert np.array_equal(states.states, own.states.astype(np.float16))


def test_without_token_states_the_vector_is_the_servers(
    served: tuple[HashEmbedder, LiveApp],
) -> None:
    vector, states = embedder(server_of(served[1])).embed_query_with_tokens("a boat")
    assert abs(vector - HashEmbedder().embed_query("a boat")).max() < 1e-6
    assert len(states.ids) == 0


def test_without_an_answer_the_token_states_are_made_here() -> None:
    own = HashTokenEmbedder()
    gone = RunningServer("http://127.0.0.1:9", os.getpid(), None, "1.0.0")
    _vector, states = embedder(gone, own).embed_query_with_tokens("a boat")
    assert len(states.ids) == 2
    _vectors, (passage,) = embedder(gone, own).embed_passages_with_tokens(["a boat"])
    assert np.array_equal(passage.states, states.states)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [{"ids": [1], "states": "AA"}],
        [{"ids": [1], "states": "?"}],
        [{"ids": "x", "states": ""}],
        [{"ids": [1], "states": base64.b64encode(b"\x00\x7c" * 384).decode()}],  # infinity
        [{"ids": [1], "states": base64.b64encode(bytes(2 * 3)).decode()}],  # another dimension
        [{"ids": [[1]], "states": base64.b64encode(bytes(2 * 384)).decode()}],
        [{"ids": [10**30], "states": base64.b64encode(bytes(2 * 384)).decode()}],
        [{"ids": [], "states": "", "english": "AAAA"}],
    ],
)
def test_token_states_that_cannot_be_read_are_refused(tokens: object) -> None:
    reply = {
        "embeddings": [HashEmbedder().embed_query("a").tolist()],
        "fingerprint": HashEmbedder.spec.fingerprint,
        "tokens": tokens,
    }
    with ModelServer(lambda call: call.answer_json(reply)) as broken:
        server = RunningServer(broken.url, os.getpid(), None, "1.0.0")
        with pytest.raises(TransientInferenceError, match="No token states"):
            remote.ask(server, "a", HashEmbedder.spec, with_tokens=True)
    assert broken.requests[0].body["tokens"] is True


@pytest.mark.parametrize("text", ["two words", ""])
def test_the_vector_of_english_goes_beside_the_token_states(text: str) -> None:
    model = HashTokenEmbedder()
    vector = model.embed_query("what the model of English says").astype(np.float16)
    sent = replace(model.token_states(text), english=vector.astype(np.float32))
    reply = {
        "embeddings": [model.embed_query(text).tolist()],
        "fingerprint": HashEmbedder.spec.fingerprint,
        "tokens": [to_wire(packed(sent))],
    }
    with ModelServer(lambda call: call.answer_json(reply)) as other:
        server = RunningServer(other.url, os.getpid(), None, "1.0.0")
        _vector, states = remote.ask(server, text, HashEmbedder.spec, with_tokens=True)
    assert states.english is not None and np.array_equal(states.english, vector)
    assert np.array_equal(states.ids, sent.ids)


def test_a_loaded_model_is_used_and_nobody_asked(served: tuple[HashEmbedder, LiveApp]) -> None:
    model, app = served
    own, before = HashEmbedder(), model.calls
    embedder(server_of(app), own, loaded=True).embed_query("a boat")
    assert (own.calls, model.calls) == (1, before)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9", "http://no-such-host.invalid:80", "http://[::1]:9"]
)
def test_without_an_answer_the_own_model_does_it(url: str) -> None:
    own = HashEmbedder()
    gone = RunningServer(url, os.getpid(), None, "1.0.0")
    assert embedder(gone, own).embed_query("a boat").shape == (384,)
    assert embedder(None, own).embed_query("a boat").shape == (384,)
    assert own.calls == 2


def test_a_server_that_hangs_costs_no_more_than_models_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert remote.ANSWER_S <= BUDGET_S
    monkeypatch.setattr(remote, "ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts, nobody reads
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = embedder(RunningServer(url, os.getpid(), None, "1.0.0"), HashEmbedder())
        assert (found.embed_query("boat") == HashEmbedder().embed_query("boat")).all()


def test_a_refused_token_is_no_answer(served: tuple[HashEmbedder, LiveApp]) -> None:
    own = HashEmbedder()
    embedder(server_of(served[1], "wrong"), own).embed_query("a boat")
    assert own.calls == 1


def test_a_vector_of_another_model_is_never_used(served: tuple[HashEmbedder, LiveApp]) -> None:
    other = ModelSpec(name="other", fingerprint="other-1", dimension=384, max_tokens=512)
    with pytest.raises(TransientInferenceError, match="another model"):
        remote.ask(server_of(served[1]), "a boat", other)


def test_passages_are_embedded_here(served: tuple[HashEmbedder, LiveApp]) -> None:
    own = HashEmbedder()
    assert embedder(server_of(served[1]), own).embed_passages(["a", "b"]).shape == (2, 384)
    assert own.calls == 2

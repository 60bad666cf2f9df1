"""Whatever the text, the model gets something it can read, and all of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qmd.inference.fastembedder import FastEmbedder, _tokenizer, clean, halves
from qmd.models.catalogue import DEFAULT_MODEL, open_embedder

any_text = st.text(st.characters())  # surrogates and NUL too
words = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), max_size=300)
long_text = st.builds(
    lambda parts, times: " ".join(parts) * times, words, st.integers(min_value=1, max_value=6)
)


@pytest.fixture(scope="module")
def embedder(model_cache: Path) -> FastEmbedder:
    opened = open_embedder(DEFAULT_MODEL, cache_dir=model_cache)
    assert isinstance(opened, FastEmbedder)
    return opened


@settings(deadline=None)
@given(any_text)
@example("\ud83d\ude00")
def test_clean_text_is_utf8_without_nul_and_stays_so(text: str) -> None:
    cleaned = clean(text)
    assert "\0" not in cleaned
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned


@settings(deadline=None)
@given(st.text(min_size=2))
def test_halves_are_shorter_and_together_the_text(text: str) -> None:
    first, second = halves(text)
    assert first + second == text
    assert max(len(first), len(second)) < len(text)


@settings(deadline=None, max_examples=settings().max_examples // 2)
@given(any_text)
def test_every_text_has_one_unit_vector(embedder: FastEmbedder, text: str) -> None:
    (vector,) = embedder.embed_passages([text])
    assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)
    assert np.array_equal(vector, embedder.embed_passages([text])[0])


@settings(deadline=None, max_examples=40)
@given(any_text)
@example("")
@example("passage: passage: ")
def test_the_vector_is_the_same_with_token_states(embedder: FastEmbedder, text: str) -> None:
    (vector,) = embedder.embed_passages([text])
    (same,), (states,) = embedder.embed_passages_with_tokens([text])
    assert np.array_equal(vector, same)
    assert states.states.shape == (len(states.ids), embedder.spec.dimension)
    assert (np.diff(states.ids) > 0).all() and np.isfinite(states.states).all()


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(long_text)
@example("字" * 2000)
@example("\ufdfa" * 400)
@example("a b " * 5000)
def test_parts_fit_the_model_and_leave_nothing_out(embedder: FastEmbedder, text: str) -> None:
    model = embedder._model()
    parts = embedder._parts(model, "passage: ", text)

    assert all(part.tokens <= embedder.spec.max_tokens for part in parts)
    for part in parts:
        encoding = _tokenizer(model).encode("passage: " + part.text)
        assert not encoding.overflowing and len(encoding.ids) == part.tokens
    kept = "".join("".join(part.text.split()) for part in parts)
    assert kept == "".join(clean(text).split())

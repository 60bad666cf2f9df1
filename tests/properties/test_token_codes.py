"""Codes of token states: what holds for any states, and what damage may do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qmd.inference import token_codes
from qmd.inference.protocols import TokenStates
from qmd.inference.token_codes import (
    AXES,
    CODE_BYTES,
    MOST_TOKENS,
    TokenProjection,
    decode,
    encode,
    is_sound,
    product,
)

DIMENSION = 8


def states(count: int, seed: int, dimension: int = DIMENSION) -> TokenStates:
    random = np.random.default_rng(seed)
    ids = np.sort(random.choice(5000, count, replace=False)).astype(np.int32)
    return TokenStates(ids, random.standard_normal((count, dimension)).astype(np.float32))


@pytest.fixture(scope="module")
def projection() -> TokenProjection:
    return token_codes.fit_projection([states(20, seed) for seed in range(20)])


def signs(values: NDArray[np.float32], projection: TokenProjection) -> NDArray[np.float32]:
    return np.where(projection.project(values) >= 0, 1, -1).astype(np.float32) / np.sqrt(AXES)


@given(lengths=st.lists(st.integers(0, MOST_TOKENS), max_size=5), seed=st.integers(0, 99))
def test_decoding_gives_the_signs_of_the_coordinates(
    projection: TokenProjection, lengths: list[int], seed: int
) -> None:
    texts = [states(length, seed + number) for number, length in enumerate(lengths)]
    decoded = decode([encode(text, projection) for text in texts])
    assert len(decoded.signs) == sum(lengths)
    for text, start in zip(texts, decoded.starts, strict=True):
        rows = decoded.signs[start : start + len(text.ids)]
        assert np.allclose(rows, signs(text.states, projection))


@given(rows=st.integers(0, 300), inner=st.integers(1, 40), columns=st.integers(0, 300))
def test_a_product_in_parts_is_the_product(rows: int, inner: int, columns: int) -> None:
    random = np.random.default_rng(rows)
    left = random.standard_normal((rows, inner)).astype(np.float32)
    right = random.standard_normal((inner, columns)).astype(np.float32)
    assert np.allclose(product(left, right), left @ right, atol=1e-4)


@given(data=st.binary(max_size=4000))
def test_any_bytes_are_codes_or_refused(data: bytes) -> None:
    if is_sound(data):
        assert len(decode([data]).signs) == len(data) // CODE_BYTES
    else:
        with pytest.raises(ValueError, match="impossible length"):
            decode([data])


def test_more_codes_than_a_text_can_have_are_refused() -> None:
    assert is_sound(bytes(CODE_BYTES * MOST_TOKENS))
    assert not is_sound(bytes(CODE_BYTES * (MOST_TOKENS + 1)))  # damage: it may be gigabytes


def test_of_many_tokens_the_rarest_are_kept(projection: TokenProjection) -> None:
    frequent = projection.ids[np.argsort(-projection.counts)[:10]]
    rare = np.arange(6000, 6000 + MOST_TOKENS, dtype=np.int32)
    ids = np.concatenate([np.sort(frequent), rare])
    values = states(len(ids), 1).states
    codes = encode(TokenStates(ids, values), projection)
    assert codes == encode(TokenStates(rare, values[10:]), projection)
    assert len(codes) == MOST_TOKENS * CODE_BYTES


def test_a_token_in_every_text_says_less_than_a_rare_one(projection: TokenProjection) -> None:
    most, least = np.argmax(projection.counts), np.argmin(projection.counts)
    ids = np.array([projection.ids[most], projection.ids[least], 9999], np.int32)
    weights = projection.weights(ids)
    assert 0 < weights[0] < weights[1] < weights[2]


# --- projections ------------------------------------------------------------------------


def test_a_packed_projection_is_the_same(projection: TokenProjection) -> None:
    data = token_codes.pack(projection)
    again = token_codes.unpack(data)
    assert again.recipe == projection.recipe
    assert token_codes.pack(again) == data
    assert token_codes.projection_of("another", DIMENSION, (projection.recipe, data))


@given(data=st.binary(max_size=200), length=st.integers(0, 3000))
def test_a_damaged_projection_is_refused(
    projection: TokenProjection, data: bytes, length: int
) -> None:
    whole = token_codes.pack(projection)
    for damaged in (data, whole[:length], whole + b"x"):
        with pytest.raises(ValueError, match="projection"):
            token_codes.unpack(damaged)
        assert token_codes.projection_of("another", DIMENSION, (projection.recipe, damaged)) is None


def test_a_changed_projection_has_another_recipe(projection: TokenProjection) -> None:
    data = bytearray(token_codes.pack(projection))
    data[30] ^= 1
    assert token_codes.unpack(bytes(data)).recipe != projection.recipe
    assert token_codes.projection_of("another", DIMENSION, (projection.recipe, bytes(data))) is None


def test_the_axes_keep_the_directions_of_the_greatest_variance() -> None:
    passage = states(400, 1, 200)
    passage.states[:, 7] *= 20
    fitted = token_codes.fit_projection([passage])
    assert np.linalg.norm(fitted.axes[7]) > 0.99
    assert np.abs(fitted.axes[7]).max() < 0.5  # no single bit has to tell all of it
    assert np.allclose(fitted.axes.T @ fitted.axes, np.eye(AXES), atol=0.01)


def test_the_default_models_projection_is_part_of_the_package() -> None:
    shipped = token_codes.shipped()
    assert shipped.axes.shape == (384, AXES)
    assert np.allclose(shipped.axes.T @ shipped.axes, np.eye(AXES), atol=0.01)

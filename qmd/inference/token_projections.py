"""
Where the projection of a model's token states comes from.

The default model's is part of this package. Another model's is fitted on the first passages of an
index (`fit`) and kept in the database (`pack`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from qmd.inference.embedded import build
from qmd.inference.protocols import TokenStates
from qmd.inference.token_codes import AXES, CODE_BYTES, VERSION, TokenProjection

#: A projection is fitted on so many passages; fewer than `FEWEST_PASSAGES` would not show which
#: axes matter.
PASSAGES, FEWEST_PASSAGES = 64, 16

_SHIPPED = "token_projection.bin"
_MAGIC = b"QTP1"
_HEADER = "<4sIIII"  # magic, dimension, axes, texts, tokens


def projection_of(
    fingerprint: str, dimension: int, stored: tuple[str, bytes] | None
) -> TokenProjection | None:
    """
    The projection of a model's token states.

    Args:
        fingerprint, dimension: Of the model.
        stored: The recipe and the packed projection that the database has; None if it has none.

    Returns:
        None if no projection was fitted yet, because the model has no token states or the index
        too few texts, or if that of the database is damaged or of another version.
    """
    if fingerprint == build.FINGERPRINT:
        return shipped()
    if stored is None:
        return None
    try:
        projection = unpack(stored[1])
    except ValueError:
        return None
    is_of_model = projection.recipe == stored[0] and len(projection.mean) == dimension
    return projection if is_of_model else None


def stored_form(fingerprint: str, projection: TokenProjection) -> tuple[str, int, bytes]:
    """
    What a database keeps of a model's projection.

    Returns:
        The recipe, the bytes of the code of one token, and the packed projection, which is empty
        for the default model.
    """
    data = b"" if fingerprint == build.FINGERPRINT else pack(projection)
    return projection.recipe, CODE_BYTES, data


@lru_cache(maxsize=1)
def shipped() -> TokenProjection:
    """The projection of the default model."""
    return unpack(resources.files(build.__package__).joinpath(_SHIPPED).read_bytes())


def pack(projection: TokenProjection) -> bytes:
    """A projection in the form that is stored; float16 suffices for it."""
    dimension, axes = projection.axes.shape
    return b"".join(
        (
            struct.pack(_HEADER, _MAGIC, dimension, axes, projection.texts, len(projection.ids)),
            projection.mean.astype("<f2").tobytes(),
            projection.axes.astype("<f2").tobytes(),
            projection.ids.astype("<i4").tobytes(),
            projection.counts.astype("<u2").tobytes(),
        )
    )


def unpack(data: bytes) -> TokenProjection:
    """
    The inverse of `pack`.

    Raises:
        ValueError: The bytes are no projection to `AXES` axes.
    """
    try:
        magic, dimension, axes, texts, tokens = struct.unpack_from(_HEADER, data)
    except struct.error as error:
        raise ValueError("no projection of token states") from error
    start = struct.calcsize(_HEADER)
    size = start + 2 * dimension * (1 + axes) + 6 * tokens
    if magic != _MAGIC or axes != AXES or len(data) != size:
        raise ValueError("no projection of token states")
    numbers = np.frombuffer(data, "<f2", dimension * (1 + axes), start).astype(np.float32)
    start += 2 * len(numbers)
    if not np.isfinite(numbers).all():
        raise ValueError("a projection that is not finite")
    return TokenProjection(
        f"{VERSION}:{hashlib.sha256(data).hexdigest()[:16]}",
        numbers[:dimension],
        numbers[dimension:].reshape(dimension, axes),
        texts,
        np.frombuffer(data, "<i4", tokens, start),
        np.frombuffer(data, "<u2", tokens, start + 4 * tokens),
    )


def fit(passages: Sequence[TokenStates]) -> TokenProjection:
    """
    The projection to the first principal components of the states of some passages.

    Each state counts with unit length. A rotation, always the same one, gives each axis about the
    same share of the variance, so that each bit tells about as much. A model of fewer than `AXES`
    dimensions gets random axes besides.
    """
    states = np.concatenate([each.states for each in passages])
    mean = states.mean(axis=0)
    centred = states - mean
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), np.float32(1e-9))
    _values, components = np.linalg.eigh(centred.T @ centred)  # ascending
    ids, counts = np.unique(np.concatenate([each.ids for each in passages]), return_counts=True)
    projection = TokenProjection(
        "", mean, _axes(components[:, ::-1]), len(passages), ids, counts.astype(np.uint16)
    )
    return unpack(pack(projection))  # the recipe is the hash; the numbers are those that are kept


def _axes(components: NDArray[np.float32]) -> NDArray[np.float32]:
    random = np.random.default_rng(0)
    missing = AXES - components.shape[1]
    if missing > 0:
        others = random.standard_normal((len(components), missing))
        others /= np.linalg.norm(others, axis=0)
        return np.concatenate([components, others.astype(np.float32)], axis=1)
    rotation, _upper = np.linalg.qr(random.standard_normal((AXES, AXES)))
    return components[:, :AXES] @ rotation.astype(np.float32)

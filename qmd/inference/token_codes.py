"""
Packs token states into a few bytes: one bit for each axis of a projection.

A state less the mean of all states is projected to `AXES` axes, the first principal components of
the model's states, and of each coordinate only the sign is kept. So a token takes 24 bytes, not
1.5 KB. The projection of the default model is part of this package. Another model's is fitted on
the first passages of an index (`fit_projection`) and kept in the database (`pack`).

The codes of an English text may begin with its vector by the model of English that stands beside
the default one: `MARK`, which no token has as its code, then int8[`ENGLISH_DIMENSION`].
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmd.inference.embedded import build
from qmd.inference.protocols import TokenStates

#: Raise it when the form of the codes changes: codes of another version count as missing.
VERSION = 1
AXES = 192
CODE_BYTES = AXES // 8
#: Of a text with more distinct tokens, those with the greatest weights are kept. 84 codes and the
#: header of their row fill half of a page of 4 KB; with one more, a row would take a page of its
#: own.
MOST_TOKENS = 84
#: What the codes of a text begin with that have a vector of English, in the length of a code.
MARK = b"a vector of English text"
ENGLISH_DIMENSION = 384
_HEAD_BYTES = CODE_BYTES + ENGLISH_DIMENSION
#: OpenBLAS computes a product of more multiplications on several cores, which then spin: on a busy
#: machine that takes 16 ms for the states of one text, and on one core 0.3 ms.
_ONE_CORE = 262_144


@dataclass(frozen=True, slots=True)
class TokenProjection:
    """
    What turns the states of one model into codes.

    Attributes:
        recipe: Names the projection and the form of the codes.
        mean: float32[dimension], the mean of the states.
        axes: float32[dimension, AXES], columns of unit norm.
        texts: How many texts ``counts`` is of.
        ids: int32[n], ascending: the tokens that stood in these texts.
        counts: uint16[n]: in how many texts each of them stood.
    """

    recipe: str
    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    texts: int
    ids: NDArray[np.int32]
    counts: NDArray[np.uint16]

    def weights(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """
        How much each token tells about a text: its inverse document frequency.

        Returns:
            float32[t], log((texts + 1) / (count + 0.5)), above 0.
        """
        counts = np.zeros(len(ids), np.float32)
        if len(self.ids):
            places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            counts = np.where(self.ids[places] == ids, self.counts[places], counts)
        weights: NDArray[np.float32] = np.log((self.texts + 1) / (counts + 0.5)).astype(np.float32)
        return weights

    def project(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """
        The coordinates of states (float32[t, dimension]).

        Returns:
            float32[t, AXES], rows of unit norm; 0 for the mean itself.
        """
        coordinates = product(states - self.mean, self.axes)
        norms = np.linalg.norm(coordinates, axis=1, keepdims=True)
        unit: NDArray[np.float32] = coordinates / np.maximum(norms, np.float32(1e-9))
        return unit

    def project_question(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """
        The coordinates of the t token states of a question (float32[t, dimension]).

        What the tokens of a question share is its subject as a whole, which its vector tells
        better. So (t - 1) / t of what their mean differs from the mean of all states is subtracted:
        what is left is what each token adds. Over six sets of questions that doubled the gain of
        late interaction (MRR@10 and nDCG@10 +.007 to +.014).

        Returns:
            As `project`.
        """
        shared = np.float32((len(states) - 1) / len(states)) if len(states) else np.float32(0)
        subject = states.mean(axis=0) - self.mean if len(states) else self.mean
        return self.project(states - shared * subject)


class TokenCodes(NamedTuple):
    """
    The decoded codes of several texts, one text after the other.

    Attributes:
        signs: float32[n, AXES]: ±1/sqrt(AXES), rows of unit norm. The product of a row with one of
            `TokenProjection.project` estimates the cosine of the two states.
        starts: int64[texts]: the first row of each text; one without codes starts where the next
            does.
    """

    signs: NDArray[np.float32]
    starts: NDArray[np.int64]


def encode(states: TokenStates, projection: TokenProjection) -> bytes:
    """
    `CODE_BYTES` for each token, in the order of the ids, at most `MOST_TOKENS` of them.

    A text without tokens has no bytes.
    """
    vectors = states.states
    if len(vectors) > MOST_TOKENS:
        order = np.argsort(-projection.weights(states.ids), kind="stable")
        vectors = vectors[np.sort(order[:MOST_TOKENS])]
    coordinates = product(vectors - projection.mean, projection.axes)
    return np.packbits(coordinates >= 0, axis=1).tobytes()


def with_english(codes: bytes, vector: NDArray[np.float32]) -> bytes:
    """
    Codes that begin with the vector of the text by the model of English.

    So that they take no more bytes, those of the first tokens are left out if there are too many:
    the vocabulary begins with the commonest tokens, and codes are in its order.

    Args:
        vector: float32[`ENGLISH_DIMENSION`], unit norm.
    """
    scale = np.float32(127) / max(np.abs(vector).max(), np.float32(1e-9))
    tokens = without_english(codes)[-(MOST_TOKENS * CODE_BYTES - _HEAD_BYTES) :]
    numbers: NDArray[np.int8] = np.round(vector * scale).astype(np.int8)
    return b"".join((MARK, numbers.tobytes(), tokens))


def without_english(codes: bytes) -> bytes:
    """The codes of the tokens alone."""
    return codes[_HEAD_BYTES:] if codes.startswith(MARK) else codes


def english_vectors(codes: Sequence[bytes]) -> NDArray[np.float32]:
    """Of texts that have one: float32[texts, ENGLISH_DIMENSION], rows of unit norm."""
    packed = b"".join(each[CODE_BYTES:_HEAD_BYTES] for each in codes)
    vectors = np.frombuffer(packed, np.int8).reshape(len(codes), -1).astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(norms, np.float32(1e-9))
    return unit


def is_sound(codes: bytes) -> bool:
    """Whether codes have a possible length. A damaged row could fill gigabytes when unpacked."""
    least = _HEAD_BYTES if codes.startswith(MARK) else 0
    return len(codes) % CODE_BYTES == 0 and least <= len(codes) <= MOST_TOKENS * CODE_BYTES


def decode(codes: Sequence[bytes]) -> TokenCodes:
    """
    The codes of several texts at once.

    Raises:
        ValueError: Codes have an impossible length (see `is_sound`).
    """
    if not all(map(is_sound, codes)):
        raise ValueError("the codes of a text have an impossible length")
    packed = np.frombuffer(b"".join(codes), np.uint8).reshape(-1, CODE_BYTES)
    signs = np.unpackbits(packed, axis=1).astype(np.float32)
    signs -= np.float32(0.5)
    signs *= np.float32(2 / AXES**0.5)
    lengths = np.array([len(each) // CODE_BYTES for each in codes], np.int64)
    return TokenCodes(signs, np.cumsum(lengths) - lengths)


def product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of two matrices, computed on one core."""
    (rows, inner), columns = left.shape, right.shape[1]
    result = np.empty((rows, columns), np.float32)
    if rows > columns:
        step = max(1, _ONE_CORE // max(1, inner * columns))
        for start in range(0, rows, step):
            result[start : start + step] = left[start : start + step] @ right
    else:
        step = max(1, _ONE_CORE // max(1, inner * rows))
        for start in range(0, columns, step):
            result[:, start : start + step] = left @ right[:, start : start + step]
    return result


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


def fit_projection(passages: Sequence[TokenStates]) -> TokenProjection:
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

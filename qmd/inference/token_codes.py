"""
Packs token states into a few bytes: one bit for each axis of a projection.

A state less the mean of all states is projected to `AXES` axes, the first principal components of
the model's states, and of each coordinate only the sign is kept. So a token takes 24 bytes, not
1.5 KB. `token_projections` has the projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmd.inference.protocols import TokenStates

#: Raise it when the form of the codes changes: codes of another version count as missing.
VERSION = 1
AXES = 192
CODE_BYTES = AXES // 8
#: Of a text with more distinct tokens, those with the greatest weights are kept. 84 codes and the
#: header of their row fill half of a page of 4 KB; with one more, a row would take a page of its
#: own.
MOST_TOKENS = 84
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


def is_sound(codes: bytes) -> bool:
    """Whether codes have a possible length. A damaged row could fill gigabytes when unpacked."""
    return len(codes) % CODE_BYTES == 0 and len(codes) <= MOST_TOKENS * CODE_BYTES


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

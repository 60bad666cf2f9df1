"""
An embedder for tests that are not about models: instant, deterministic, no weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from qmd.inference.protocols import TokenStates
from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSION = 384


class HashEmbedder:
    """
    Counts hashed words and character pairs, so texts that share them have near vectors.

    Unrelated texts have cosines about .0 to .3, a text and a question made of its words
    above .5, equal texts 1. ``calls`` counts the texts that were embedded.
    """

    spec = ModelSpec(
        name="test-hash",
        fingerprint="test-hash-1",
        dimension=DIMENSION,
        max_tokens=512,
        cosine_low=0.0,
        cosine_high=1.0,
    )

    def __init__(self) -> None:
        self.calls = 0

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        self.calls += len(texts)
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, np.float32).reshape(len(texts), DIMENSION)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.calls += 1
        return self._vector(text)

    def _vector(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        vector = np.zeros(DIMENSION, np.float32)
        for feature in _features(text):
            digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
            number = int.from_bytes(digest, "little")
            vector[number % DIMENSION] += 1.0 if number >> 63 else -1.0
        if not vector.any():
            vector[0] = 1.0
        unit: NDArray[np.float32] = vector / np.float32(np.linalg.norm(vector))
        return unit


class HashTokenEmbedder(HashEmbedder):
    """
    Gives token states, too: each word is a token, and its state is the vector of the word.

    ``passages`` counts the texts whose token states were computed.
    """

    gives_token_states = True
    is_loaded = True

    def __init__(self) -> None:
        super().__init__()
        self.passages = 0

    def embed_passages_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], tuple[TokenStates, ...]]:
        self.passages += len(texts)
        return self.embed_passages(texts), tuple(map(self.token_states, texts))

    def embed_query_with_tokens(self, text: str) -> tuple[NDArray[np.float32], TokenStates]:
        return self.embed_query(text), self.token_states(text)

    def token_states(self, text: str) -> TokenStates:
        import numpy as np

        words = {
            int.from_bytes(hashlib.blake2b(word.encode(), digest_size=3).digest(), "little"): word
            for word in text.lower().split()
        }
        ids = sorted(words)
        states = [self._vector(words[number]) for number in ids]
        return TokenStates(
            np.array(ids, np.int32), np.array(states, np.float32).reshape(len(ids), DIMENSION)
        )


class BesideEnglish(HashTokenEmbedder):
    """Has a model of English beside it, which counts its texts, too."""

    def __init__(self) -> None:
        super().__init__()
        self.english = HashEmbedder()


def _features(text: str) -> Iterator[str]:
    lowered = text.lower()
    for word in lowered.split():
        yield word
        yield from (word[i : i + 2] for i in range(len(word) - 1))

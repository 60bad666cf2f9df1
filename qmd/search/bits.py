"""
A small code of every vector in memory, for nearest neighbours among many chunks.

sqlite-vec reads 384 bytes a chunk and keeps its best k in a list: at 100,000 chunks that took
3.8 times as long as numpy's product of one matrix. Here two bits a dimension (96 bytes a chunk
of 384 dimensions) say in which quarter a value lies around the mean, and the question has three:
their product is a sum of popcounts. The best few hundred are then ranked by the exact vectors.

One bit a dimension on both sides (a Hamming distance) is twice as fast, but finds only 73 % of
the ten nearest random vectors among its best 2,000; this 99.5 % among 500. The mean matters:
vectors of e5 lie in a narrow cone, where signs alone tell little.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from qmd.sqlite import Connection
from qmd.store import models, vec0, vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.filters import Where

#: Below this many chunks sqlite-vec is quick enough (6 ms), and there is nothing to keep true.
LEAST = 20_000
#: Above this many bytes sqlite-vec does it all.
MOST_BYTES = 512 << 20
#: Rows read at one search while the codes are incomplete, or a 32nd of all: then such a
#: search, which sqlite-vec answers, takes about twice its time.
BATCH = 10_000
#: One candidate more for so many chunks: among many more lie equally near (at 1,000,000 the
#: recall of the ten nearest was .988 without).
MORE = 2000
#: Vectors whose mean and spread stand for all.
SAMPLE = 4096
#: Chunks compared in one go: enough that numpy's own calls do not count, and what is in between
#: stays in the processor's cache.
SLICE = 32_768

#: Quarters of a normal distribution with the least error (Lloyd-Max), in standard deviations.
_QUARTER = 0.98
#: A question's values become -3 to 3 times this many root mean squares.
_STEP = 0.65
_WEIGHTS = (1, 2, -4)  # bits of a number in two's complement


class _Codes(NamedTuple):
    """``planes``: uint64[2, words, n], low bits and high bits, a dimension each."""

    ids: NDArray[np.int64]
    collections: NDArray[np.int64]
    planes: NDArray[np.uint64]
    mean: NDArray[np.float32]
    spread: NDArray[np.float32]


class BitIndex:
    """
    The codes of one database's vectors. Thread-safe; empty until the second search.

    The index's state (`vec0.state`) tells when they are out of date: then what came is read
    and what went is dropped. Stale codes could not lie: every hit is looked up in the database.
    """

    def __init__(self, least: int = LEAST, batch: int = BATCH) -> None:
        """See the constants."""
        self._least = least
        self._batch = batch
        self._lock = threading.Lock()
        self._asked = self._closed = False
        self._ready: tuple[object, _Codes | None] = (None, None)
        self._codes: _Codes | None = None
        self._epoch: object = None
        self._listed: object = None
        self._missing: NDArray[np.int64] | None = None

    def nearest(
        self,
        connection: Connection,
        model: models.Model,
        query: NDArray[np.float32],
        k: int,
        where: Where,
    ) -> list[tuple[int, int, bytes]] | None:
        """
        As `vectors.nearest`; None where sqlite-vec is to answer.

        Args:
            query: float32[dimension], unit norm.
            k: How many candidates; fewer come where fewer match, some more among many chunks.
        """
        if not where.everything and where.collection_ids is None:
            return None
        codes = self._current(connection, model)
        if codes is None:
            return None
        import numpy as np

        wanted = None
        if where.collection_ids is not None and not where.everything:
            wanted = np.isin(codes.collections, where.collection_ids)
            # A partition of sqlite-vec's is read alone, at eight times our time a chunk.
            if np.count_nonzero(wanted) < max(self._least, len(codes.ids) // 8):
                return None
        scores = _compare(codes, query)
        ids = codes.ids
        if wanted is not None:
            scores, ids = scores[wanted], ids[wanted]
        k += len(ids) // MORE
        chosen = ids if len(ids) <= k else _best(scores, ids, k)
        return vectors.exact(connection, model, chosen.tolist(), where)

    def close(self) -> None:
        """Give the memory back; sqlite-vec answers from now on."""
        with self._lock:
            self._closed = True
            self._ready, self._codes, self._missing = (None, None), None, None

    def _current(self, connection: Connection, model: models.Model) -> _Codes | None:
        epoch, count = vec0.state(connection)
        key = (model.id, epoch, count)
        known, codes = self._ready
        if known == key:
            return codes
        if not self._asked:
            self._asked = True  # a process that searches once would load for nothing
            return None
        if not self._lock.acquire(blocking=False):
            return None  # another thread is loading
        try:
            return None if self._closed else self._refresh(connection, model, key)
        finally:
            self._lock.release()

    def _refresh(
        self, connection: Connection, model: models.Model, key: tuple[int, int, int]
    ) -> _Codes | None:
        import numpy as np

        if self._epoch != key[:2]:
            self._codes, self._epoch, self._listed = None, key[:2], None
        if self._listed != key:
            there = vectors.indexed(connection)
            many = len(there) * model.dimension // 4 > MOST_BYTES
            if len(there) < self._least or many or not hasattr(np, "bitwise_count"):
                self._codes, self._missing = None, None
                self._ready = (key, None)
                return None
            self._missing = there
            if self._codes is not None:
                self._codes = _keep(self._codes, np.isin(self._codes.ids, there))
                self._missing = np.setdiff1d(there, self._codes.ids, assume_unique=True)
            self._listed = key
        missing = self._missing
        if missing is not None and len(missing):
            known = 0 if self._codes is None else len(self._codes.ids)
            size = max(self._batch, (known + len(missing)) // 32)
            rows = vectors.coded(connection, model, missing[:size].tolist())
            self._codes = _extend(self._codes, rows, model.dimension)
            self._missing = missing[size:]
            if len(self._missing):
                return None
        self._missing = None
        self._ready = (key, self._codes)
        return self._codes


def _keep(codes: _Codes, kept: NDArray[np.bool_]) -> _Codes:
    if kept.all():
        return codes
    import numpy as np

    planes = np.ascontiguousarray(codes.planes[:, :, kept])
    return codes._replace(ids=codes.ids[kept], collections=codes.collections[kept], planes=planes)


def _extend(
    codes: _Codes | None, rows: list[tuple[int, int, bytes]], dimension: int
) -> _Codes | None:
    import numpy as np

    if not rows:
        return codes
    ids = np.array([row[0] for row in rows], np.int64)
    collections = np.array([row[1] for row in rows], np.int64)
    exact = np.frombuffer(b"".join(row[2] for row in rows), np.float16)
    values = exact.reshape(len(rows), dimension).astype(np.float32)
    if codes is None:
        sample = values[:SAMPLE]
        spread = np.maximum(sample.std(axis=0), np.float32(1e-6))
        mean: NDArray[np.float32] = sample.mean(axis=0)
        return _Codes(ids, collections, _planes(values, mean, spread), mean, spread)
    planes = _planes(values, codes.mean, codes.spread)
    return codes._replace(
        ids=np.concatenate([codes.ids, ids]),
        collections=np.concatenate([codes.collections, collections]),
        planes=np.concatenate([codes.planes, planes], axis=2),
    )


def _planes(
    values: NDArray[np.float32], mean: NDArray[np.float32], spread: NDArray[np.float32]
) -> NDArray[np.uint64]:
    import numpy as np

    quarter = np.float32(_QUARTER) * spread
    high = values >= mean
    low = (values >= mean + quarter) | ((values >= mean - quarter) & ~high)
    return np.stack([_words(low), _words(high)])


def _words(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """bool[n, dimension] → uint64[words, n], filled up with zeros."""
    import numpy as np

    count, dimension = bits.shape
    packed = np.zeros((count, -(-dimension // 64) * 8), np.uint8)
    packed[:, : -(-dimension // 8)] = np.packbits(bits, axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def _compare(codes: _Codes, query: NDArray[np.float32]) -> NDArray[np.signedinteger[Any]]:
    """For each chunk, what grows with its cosine to the query."""
    import numpy as np

    # query · value = query · mean + (query * spread) · normal, and the first part is the same
    # for all. 0 stays 0, so that a chunk's sum of bits needs no correction.
    weighted = query * codes.spread
    step = _STEP * float(np.sqrt(np.mean(weighted**2))) or 1.0
    numbers = np.clip(np.rint(weighted / step), -3, 3).astype(np.int8)
    asked = [_words(((numbers >> bit) & 1).astype(bool)[np.newaxis, :])[:, 0] for bit in range(3)]
    words, count = codes.planes.shape[1:]
    kind = np.int16 if len(query) <= 2048 else np.int32  # at most 12 a dimension
    scores = np.zeros(count, kind)
    both, bits = np.empty(SLICE, np.uint64), np.empty(SLICE, np.uint8)
    some, total = np.empty(SLICE, np.uint8), np.empty(SLICE, kind)
    for start in range(0, count, SLICE):
        size = min(SLICE, count - start)
        part = codes.planes[:, :, start : start + size]
        for plane in (0, 1):
            for weight, mask in zip(_WEIGHTS, asked, strict=True):
                total[:size] = 0
                for first in range(0, words, 3):  # three words' bits still fit into a byte
                    some[:size] = 0
                    for word in range(first, min(first + 3, words)):
                        np.bitwise_and(part[plane, word], mask[word], out=both[:size])
                        np.bitwise_count(both[:size], out=bits[:size])
                        some[:size] += bits[:size]
                    total[:size] += some[:size]
                total[:size] *= weight << plane
                scores[start : start + size] += total[:size]
    return scores


def _best(
    scores: NDArray[np.signedinteger[Any]], ids: NDArray[np.int64], k: int
) -> NDArray[np.int64]:
    """The ids of the ``k`` highest scores; among equal ones, the lowest ids."""
    import numpy as np

    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = ids[scores > least]
    equal = np.sort(ids[scores == least])
    return np.sort(np.concatenate([above, equal[: k - len(above)]]))

"""
The vectors of one database in memory.

Exactly, as one float32 matrix, as long as that is small: a product of it takes a millisecond for
20,000 chunks, where sqlite-vec takes three, and every process finds the same to the last place.
Of more chunks a process that searches again holds `bits.Codes`, whose best few hundred are ranked
by the exact vectors.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from qmd.search.meaning import codes as bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store import Reader, Selection
    from qmd.store.models import StoredModel


#: Below this many chunks sqlite-vec is quick enough (3 ms), and no copy has to be kept up to date.
LEAST = 20_000
#: Bytes of a matrix of exact vectors: 65,000 chunks of 384 dimensions.
MOST_EXACT_BYTES = 100_000_000
#: Bytes of codes above which sqlite-vec does it all.
MOST_CODED_BYTES = 512 << 20
#: Rows read at once, or a 32nd of all. While codes are incomplete, a search reads this many and
#: sqlite-vec answers it: together they take about twice as long as sqlite-vec alone.
BATCH = 10_000
#: Codes are asked for this many candidates, and for so many more for each chunk to return.
CODED, CODED_PER_CHUNK = 100, 4.5
#: And for one more for each 2,000 chunks, because more of many chunks lie equally near (without
#: them the recall of the ten nearest was .988 at 1,000,000 chunks).
MORE = 2000
#: The most numbers in a product that OpenBLAS computes on one core.
ONE_CORE = 400_000
#: A matrix that grows is kept in up to this many pieces: joining them copies it.
PIECES = 32


class Exact(NamedTuple):
    """``pieces``: float32[n_i, dimension], one below the other."""

    pieces: tuple[NDArray[np.float32], ...]

    @classmethod
    def encode(cls, values: NDArray[np.float32]) -> Exact:
        return cls((values,))

    def extended(self, values: NDArray[np.float32]) -> Exact:
        pieces = (*self.pieces, values)
        return Exact(pieces if len(pieces) <= PIECES else (_joined(pieces),))

    def filtered(self, mask: NDArray[np.bool_]) -> Exact:
        return Exact((_joined(self.pieces)[mask],))

    def scores(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[n], dot products with the query (float32[dimension])."""
        import numpy as np

        # In parts that BLAS does on one core: its threads would gain a millisecond and wait for
        # the next call at full speed.
        rows = max(1, ONE_CORE // len(query))
        parts = [
            piece[start : start + rows] @ query
            for piece in self.pieces
            for start in range(0, max(1, len(piece)), rows)
        ]
        return np.concatenate(parts)


class _Held(NamedTuple):
    """The vectors of the chunks ``ids``, each in the collection at the same place."""

    ids: NDArray[np.int64]
    collections: NDArray[np.int64]
    vectors: Exact | bits.Codes


_Kind: TypeAlias = "type[Exact] | type[bits.Codes]"


class VectorCache:
    """
    The vectors of one database. Thread-safe; codes are empty until the second search.

    The index's state (`vector_state.read`) tells when they are out of date: then what came is read
    and what went is dropped. Stale ones could not lie: every hit is looked up in the database.

    Args:
        least, exact_bytes, coded, batch: See the constants.
    """

    def __init__(
        self,
        *,
        least: int = LEAST,
        exact_bytes: int = MOST_EXACT_BYTES,
        coded: int = CODED,
        batch: int = BATCH,
    ) -> None:
        self._least = least
        self._exact_bytes = exact_bytes
        self._coded = coded
        self._batch = batch
        self._lock = threading.Lock()
        self._was_searched = self._closed = False
        self._ready: tuple[object, _Held | None] = (None, None)
        self._held: _Held | None = None
        self._kind: _Kind | None = None
        self._epoch: object = None
        self._listed: object = None
        self._missing: NDArray[np.int64] | None = None

    def nearest(
        self,
        reader: Reader,
        model: StoredModel,
        query: NDArray[np.float32],
        k: int,
        selection: Selection,
    ) -> list[tuple[int, int, bytes]] | None:
        """
        As `vectors.nearest`; None where sqlite-vec is to answer.

        Args:
            query: float32[dimension], unit norm.
            k: How many to return; fewer where fewer match, more where codes choose candidates.
        """
        if not selection.is_all and selection.collection_ids is None:
            return None
        held = self._current(reader, model)
        if held is None:
            return None
        import numpy as np

        scores: NDArray[Any] = held.vectors.scores(query)
        ids = held.ids
        if selection.collection_ids is not None and not selection.is_all:
            inside = np.isin(held.collections, selection.collection_ids)
            scores, ids = scores[inside], ids[inside]
        if isinstance(held.vectors, bits.Codes):
            k = self._coded + round(CODED_PER_CHUNK * k) + len(ids) // MORE
        chosen = ids if len(ids) <= k else _best(scores, ids, k)
        return reader.vectors.exact(model, chosen.tolist(), selection)

    def close(self) -> None:
        """Give the memory back; sqlite-vec answers from now on."""
        with self._lock:
            self._closed = True
            self._ready, self._held, self._missing = (None, None), None, None

    def _current(self, reader: Reader, model: StoredModel) -> _Held | None:
        epoch, count = reader.vectors.version()
        key = (model.id, epoch, count)
        ready_key, held = self._ready
        if ready_key == key:
            return held
        # Codes take a while to load: meanwhile sqlite-vec answers the other threads.
        if not self._lock.acquire(blocking=self._kind is not bits.Codes):
            return None
        try:
            return None if self._closed else self._refresh(reader, model, key)
        finally:
            self._lock.release()

    def _refresh(
        self, reader: Reader, model: StoredModel, key: tuple[int, int, int]
    ) -> _Held | None:
        if self._epoch != key[:2]:
            self._held, self._epoch, self._listed = None, key[:2], None
        if self._listed != key:
            kind = self._kind_of(reader.vectors.count_chunks(), model)
            if kind is bits.Codes and not self._was_searched:
                self._was_searched = True  # a process that searches once would load for nothing
                return None
            if kind is not self._kind:
                self._held, self._kind = None, kind
            if kind is None:
                self._missing = None
                self._ready = (key, None)
                return None
            self._list_chunks(reader)
            self._listed = key
        return self._load_missing(reader, model, key)

    def _list_chunks(self, reader: Reader) -> None:
        """Drop the vectors that the index no longer has, and list those to load."""
        import numpy as np

        self._missing = indexed = reader.vectors.indexed_chunk_ids()
        if self._held is not None:
            self._held = _filtered(self._held, np.isin(self._held.ids, indexed))
            self._missing = np.setdiff1d(indexed, self._held.ids, assume_unique=True)

    def _load_missing(
        self, reader: Reader, model: StoredModel, key: tuple[int, int, int]
    ) -> _Held | None:
        """All missing vectors, of codes a part; None until none is missing."""
        missing, kind = self._missing, self._kind
        while missing is not None and kind is not None and len(missing):
            loaded = 0 if self._held is None else len(self._held.ids)
            size = max(self._batch, (loaded + len(missing)) // 32)
            rows = reader.vectors.with_collections(model, missing[:size].tolist())
            self._held = _extended(self._held, rows, model.dimension, kind)
            self._missing = missing = missing[size:]
            if kind is bits.Codes and len(missing):
                return None  # each search reads a part
        self._missing = None
        self._ready = (key, self._held)
        return self._held

    def _kind_of(self, count: int, model: StoredModel) -> _Kind | None:
        """The form in which this many vectors are held."""
        if count < self._least:
            return None
        if count * model.dimension * 4 <= self._exact_bytes:
            return Exact
        few = count * model.dimension // 4 <= MOST_CODED_BYTES
        return bits.Codes if few and bits.are_supported() else None


def _filtered(held: _Held, mask: NDArray[np.bool_]) -> _Held:
    if mask.all():
        return held
    return _Held(held.ids[mask], held.collections[mask], held.vectors.filtered(mask))


def _extended(
    held: _Held | None,
    rows: list[tuple[int, int, bytes]],
    dimension: int,
    kind: _Kind,
) -> _Held | None:
    import numpy as np

    if not rows:
        return held
    ids = np.array([row[0] for row in rows], np.int64)
    collections = np.array([row[1] for row in rows], np.int64)
    packed = np.frombuffer(b"".join(row[2] for row in rows), np.float16)
    values = packed.reshape(len(rows), dimension).astype(np.float32)
    if held is None:
        return _Held(ids, collections, kind.encode(values))
    return _Held(
        np.concatenate([held.ids, ids]),
        np.concatenate([held.collections, collections]),
        held.vectors.extended(values),
    )


def _joined(pieces: tuple[NDArray[np.float32], ...]) -> NDArray[np.float32]:
    import numpy as np

    return np.concatenate(pieces)


def _best(scores: NDArray[Any], ids: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The ids of the ``k`` highest scores; among equal ones, the lowest ids."""
    import numpy as np

    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = ids[scores > least]
    equal = np.sort(ids[scores == least])
    return np.sort(np.concatenate([above, equal[: k - len(above)]]))

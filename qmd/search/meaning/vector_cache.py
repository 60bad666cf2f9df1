"""
Keep the vectors of one database in memory, and search them for nearest neighbours.

A small index is kept as one exact float32 matrix: with 20,000 chunks, a matrix product takes 1 ms
and sqlite-vec 3 ms. Every process then returns the same hits, down to the last place.
A larger index is kept as `Codes`, from the process's second search on. The codes choose a few
hundred candidates, and the exact vectors rank those.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from qmd.search.meaning.codes import Codes, are_supported

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store import Reader, Selection
    from qmd.store.models import StoredModel


#: With fewer chunks than this, sqlite-vec searches: it takes 3 ms, and nothing has to be kept up
#: to date.
LEAST = 20_000
#: The largest exact matrix, in bytes: 65,000 chunks of 384 dimensions.
MOST_EXACT_BYTES = 100_000_000
#: The most memory for codes, in bytes. A larger index is searched by sqlite-vec alone.
MOST_CODED_BYTES = 512 << 20
#: Rows to read at once: this many, or a 32nd of all if that is more. While codes are incomplete,
#: every search loads one batch and is then answered by sqlite-vec; this takes about twice as long
#: as sqlite-vec alone.
BATCH = 10_000
#: The codes choose `CODED` candidates, and `CODED_PER_CHUNK` more for each chunk to return.
CODED, CODED_PER_CHUNK = 100, 4.5
#: The codes choose one more candidate for each `MORE` chunks of the index, because in a larger
#: index more chunks are equally near. Without these, the recall of the ten nearest was 0.988 at
#: 1,000,000 chunks.
MORE = 2000
#: The largest matrix, in numbers, whose product OpenBLAS computes on one core.
ONE_CORE = 400_000
#: A growing matrix is kept in up to this many pieces, because joining them copies all of it.
PIECES = 32


class Exact(NamedTuple):
    """
    Exact vectors, as a matrix in pieces.

    Attributes:
        pieces: float32[n_i, dimension]; the rows of one follow those of the piece before it.
    """

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

        # Multiply in parts small enough for one core. Several BLAS threads would save 1 ms, and
        # then keep their cores busy waiting for the next call.
        rows = max(1, ONE_CORE // len(query))
        parts = [
            piece[start : start + rows] @ query
            for piece in self.pieces
            for start in range(0, max(1, len(piece)), rows)
        ]
        return np.concatenate(parts)


class _LoadedVectors(NamedTuple):
    """
    Loaded vectors. Position i of each attribute is about the same chunk.

    Attributes:
        ids: int64[n], chunk ids.
        collections: int64[n], collection ids.
    """

    ids: NDArray[np.int64]
    collections: NDArray[np.int64]
    vectors: Exact | Codes


_Form: TypeAlias = "type[Exact] | type[Codes]"


class VectorCache:
    """
    The vectors of one database. Thread-safe. Codes are loaded from the second search on.

    When the version of the index (`Vectors.version`) changes, the cache loads new vectors and
    drops removed ones. An outdated cache never gives wrong hits, because every hit is looked up
    in the database.

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
        self._ready: tuple[object, _LoadedVectors | None] = (None, None)
        self._loaded: _LoadedVectors | None = None
        self._form: _Form | None = None
        self._epoch: object = None
        self._listed_key: object = None
        self._missing_ids: NDArray[np.int64] | None = None

    def nearest(
        self,
        reader: Reader,
        model: StoredModel,
        query: NDArray[np.float32],
        k: int,
        selection: Selection,
    ) -> list[tuple[int, int, bytes]] | None:
        """
        Find the nearest chunks, as `Vectors.nearest` does.

        Args:
            query: float32[dimension], unit norm.
            k: How many to return. There are fewer if fewer match, and more if codes chose them.

        Returns:
            None if sqlite-vec must search instead.
        """
        if not selection.is_all and selection.collection_ids is None:
            return None
        loaded = self._current(reader, model)
        if loaded is None:
            return None
        import numpy as np

        scores: NDArray[Any] = loaded.vectors.scores(query)
        ids = loaded.ids
        if selection.collection_ids is not None and not selection.is_all:
            inside = np.isin(loaded.collections, selection.collection_ids)
            scores, ids = scores[inside], ids[inside]
        if isinstance(loaded.vectors, Codes):
            k = self._coded + round(CODED_PER_CHUNK * k) + len(ids) // MORE
        chosen = ids if len(ids) <= k else _best(scores, ids, k)
        return reader.vectors.exact(model, chosen.tolist(), selection)

    def close(self) -> None:
        """Free the memory; sqlite-vec answers all later searches."""
        with self._lock:
            self._closed = True
            self._ready, self._loaded, self._missing_ids = (None, None), None, None

    def _current(self, reader: Reader, model: StoredModel) -> _LoadedVectors | None:
        """The up-to-date vectors, loaded if necessary; None if sqlite-vec must search instead."""
        epoch, count = reader.vectors.version()
        key = (model.id, epoch, count)
        ready_key, loaded = self._ready
        if ready_key == key:
            return loaded
        # Codes take a while to load. While one thread does so, sqlite-vec answers the others.
        if not self._lock.acquire(blocking=self._form is not Codes):
            return None
        try:
            return None if self._closed else self._refresh(reader, model, key)
        finally:
            self._lock.release()

    def _refresh(
        self, reader: Reader, model: StoredModel, key: tuple[int, int, int]
    ) -> _LoadedVectors | None:
        if self._epoch != key[:2]:
            self._loaded, self._epoch, self._listed_key = None, key[:2], None
        if self._listed_key != key:
            form = self._choose_form(reader.vectors.count_chunks(), model)
            if form is Codes and not self._was_searched:
                self._was_searched = True  # for a single search, loading would not pay
                return None
            if form is not self._form:
                self._loaded, self._form = None, form
            if form is None:
                self._missing_ids = None
                self._ready = (key, None)
                return None
            self._list_chunks(reader)
            self._listed_key = key
        return self._load_missing(reader, model, key)

    def _list_chunks(self, reader: Reader) -> None:
        """Drop the vectors that the index no longer has, and list the chunks to load."""
        import numpy as np

        self._missing_ids = indexed = reader.vectors.indexed_chunk_ids()
        if self._loaded is not None:
            self._loaded = _filtered(self._loaded, np.isin(self._loaded.ids, indexed))
            self._missing_ids = np.setdiff1d(indexed, self._loaded.ids, assume_unique=True)

    def _load_missing(
        self, reader: Reader, model: StoredModel, key: tuple[int, int, int]
    ) -> _LoadedVectors | None:
        """
        Load the missing vectors; of codes, only one batch.

        Returns:
            None as long as vectors are missing.
        """
        missing_ids, form = self._missing_ids, self._form
        while missing_ids is not None and form is not None and len(missing_ids):
            loaded_count = 0 if self._loaded is None else len(self._loaded.ids)
            batch_size = max(self._batch, (loaded_count + len(missing_ids)) // 32)
            rows = reader.vectors.with_collections(model, missing_ids[:batch_size].tolist())
            self._loaded = _extended(self._loaded, rows, model.dimension, form)
            self._missing_ids = missing_ids = missing_ids[batch_size:]
            if form is Codes and len(missing_ids):
                return None  # the next search loads the next batch
        self._missing_ids = None
        self._ready = (key, self._loaded)
        return self._loaded

    def _choose_form(self, count: int, model: StoredModel) -> _Form | None:
        """Choose the form for ``count`` vectors; None if sqlite-vec is to search them."""
        if count < self._least:
            return None
        if count * model.dimension * 4 <= self._exact_bytes:
            return Exact
        fits_in_memory = count * model.dimension // 4 <= MOST_CODED_BYTES
        return Codes if fits_in_memory and are_supported() else None


def _filtered(loaded: _LoadedVectors, mask: NDArray[np.bool_]) -> _LoadedVectors:
    if mask.all():
        return loaded
    return _LoadedVectors(loaded.ids[mask], loaded.collections[mask], loaded.vectors.filtered(mask))


def _extended(
    loaded: _LoadedVectors | None,
    rows: list[tuple[int, int, bytes]],
    dimension: int,
    form: _Form,
) -> _LoadedVectors | None:
    import numpy as np

    if not rows:
        return loaded
    ids = np.array([row[0] for row in rows], np.int64)
    collections = np.array([row[1] for row in rows], np.int64)
    packed = np.frombuffer(b"".join(row[2] for row in rows), np.float16)
    values = packed.reshape(len(rows), dimension).astype(np.float32)
    if loaded is None:
        return _LoadedVectors(ids, collections, form.encode(values))
    return _LoadedVectors(
        np.concatenate([loaded.ids, ids]),
        np.concatenate([loaded.collections, collections]),
        loaded.vectors.extended(values),
    )


def _joined(pieces: tuple[NDArray[np.float32], ...]) -> NDArray[np.float32]:
    import numpy as np

    return np.concatenate(pieces)


def _best(scores: NDArray[Any], ids: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The ids of the ``k`` highest scores; among equal ones, the lowest ids."""
    import numpy as np

    lowest = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = ids[scores > lowest]
    equal = np.sort(ids[scores == lowest])
    return np.sort(np.concatenate([above, equal[: k - len(above)]]))

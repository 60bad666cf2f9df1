"""
Keep the vectors of one database in memory, and search them for nearest neighbours.

A small index is kept as one exact float32 matrix: with 20,000 chunks, a matrix product takes 1 ms
and sqlite-vec 3 ms. Every process then returns the same hits, down to the last place.
A larger index is kept as `Codes`, from the process's second search on. The codes choose a few
hundred candidates, and the exact vectors rank those.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from time import monotonic
from typing import TYPE_CHECKING, Any

from qmd.errors import QmdError
from qmd.search.meaning.codes import LEAST_SCORE, Codes, are_supported
from qmd.search.meaning.loaded_vectors import (
    CodePieces,
    Exact,
    Form,
    LoadedVectors,
    concatenated,
    extended,
    filtered,
    places_of,
)
from qmd.search.meaning.saved_codes import CodesFile, SavedCodes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store import Reader, Selection
    from qmd.store.sql.models import StoredModel


_log = logging.getLogger(__name__)

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
#: Rows of a large index that its thread reads at once.
LOADED_AT_ONCE = 20_000
#: The codes choose `CODED` candidates, and `CODED_PER_CHUNK` more for each chunk to return.
CODED, CODED_PER_CHUNK = 100, 4.5
#: The codes choose one more candidate for each `MORE` chunks of the index, because in a larger
#: index more chunks are equally near. With these, 99 % of the ten nearest of 3,000,000 are
#: candidates; to read the exact vector of a candidate takes 15 µs.
MORE = 3000
#: An index of more chunks is loaded by a thread of its own, and then not listed again as a whole.
LARGE = 200_000
#: With more chunks than this without a vector, new vectors are looked for every `LOOK_S` seconds.
MANY_WAITING, LOOK_S = 20_000, 10.0
#: Codes that were saved are used if no more than this share of vectors were added since.
MOST_ADDED = 0.02
#: If fewer than this share of the chosen chunks exist, the vectors are loaded anew.
LEAST_ALIVE = 0.9


class VectorCache:
    """
    The vectors of one database. Thread-safe. Codes are loaded from the second search on.

    When the version of the index (`Vectors.version`) changes, the cache loads new vectors and
    drops removed ones. An outdated cache never gives wrong hits, because every hit is looked up
    in the database.

    Args:
        least, exact_bytes, coded, batch, large: See the constants.
        reading: Opens a snapshot, for the thread that loads a large index; None to load it in
            parts, by searches.
        file: Keeps the codes of a large index for the next start; None to keep them nowhere.
    """

    def __init__(
        self,
        *,
        least: int = LEAST,
        exact_bytes: int = MOST_EXACT_BYTES,
        coded: int = CODED,
        batch: int = BATCH,
        large: int = LARGE,
        reading: Callable[[], AbstractContextManager[Reader]] | None = None,
        file: CodesFile | None = None,
    ) -> None:
        self._large = large
        self._file = file
        self._read_epoch: int | None = None
        self._reading = reading
        self._loader: threading.Thread | None = None
        self._last_id = 0
        self._waiting_ids: list[int] = []
        self._next_look_s = 0.0
        self._is_outworn = False
        self._least = least
        self._exact_bytes = exact_bytes
        self._coded = coded
        self._batch = batch
        self._lock = threading.Lock()
        self._was_searched = self._closed = False
        self._ready: tuple[object, LoadedVectors | None] = (None, None)
        self._loaded: LoadedVectors | None = None
        self._form: Form | None = None
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
        import numpy as np

        loaded = self._current(reader, model)
        if loaded is None:
            return None
        inside = _inside(reader, loaded, selection)
        scores: NDArray[Any] = loaded.vectors.scores(query, inside)
        ids = loaded.ids
        if inside is not None:
            scores, ids = scores[inside], ids[inside]
        if isinstance(loaded.vectors, CodePieces):
            k = self._coded + round(CODED_PER_CHUNK * k) + len(ids) // MORE
            promising = np.flatnonzero(scores > LEAST_SCORE)  # much faster than by the mask
            scores, ids = scores[promising], ids[promising]
        chosen = ids if len(ids) <= k else _best(scores, ids, k)
        rows = reader.vectors.exact(model, chosen.tolist(), selection)
        if inside is None and len(rows) < len(chosen) * LEAST_ALIVE:
            self._is_outworn = True
        return rows

    def close(self) -> None:
        """Free the memory; sqlite-vec answers all later searches."""
        self._closed = True  # which ends the thread that loads
        if self._loader is not None:
            self._loader.join()
        with self._lock:
            self._closed = True
            self._ready, self._loaded, self._missing_ids = (None, None), None, None

    def _current(self, reader: Reader, model: StoredModel) -> LoadedVectors | None:
        """The up-to-date vectors, loaded if necessary; None if sqlite-vec must search instead."""
        epoch, count = reader.vectors.version()
        key = (model.id, epoch, count)
        ready_key, loaded = self._ready
        if ready_key == key and not self._is_outworn:
            return loaded
        # Codes take a while to load. While one thread does so, sqlite-vec answers the others.
        if not self._lock.acquire(blocking=self._form is not CodePieces):
            return None
        try:
            return None if self._closed else self._refresh(reader, model, key)
        finally:
            self._lock.release()

    def _refresh(
        self, reader: Reader, model: StoredModel, key: tuple[int, int, int]
    ) -> LoadedVectors | None:
        if self._loader is not None:
            return None
        if self._epoch != key[:2] or self._is_outworn:
            self._loaded, self._epoch, self._listed_key = None, key[:2], None
            self._is_outworn = False
        if self._loaded is not None and self._is_large(len(self._loaded.ids)):
            self._load_new(reader, model)
            self._ready = (key, self._loaded)
            return self._loaded
        if self._listed_key != key:
            count = reader.vectors.count_chunks()
            form = self._choose_form(count, model)
            if self._is_large(count) and self._read_saved(reader, model, form):
                self._load_new(reader, model)
                self._ready = (key, self._loaded)
                return self._loaded
            if form is CodePieces and not self._was_searched:
                self._was_searched = True  # for a single search, loading would not pay
                return None
            if form is not self._form:
                self._loaded, self._form = None, form
            if form is None:
                self._missing_ids = None
                self._ready = (key, None)
                return None
            if form is CodePieces and self._is_large(count):
                self._loader = threading.Thread(
                    target=self._load_all, args=(model,), name="qmd-vectors", daemon=True
                )
                self._loader.start()
                return None
            self._list_chunks(reader)
            self._listed_key = key
        return self._load_missing(reader, model, key)

    def _is_large(self, count: int) -> bool:
        return self._reading is not None and count > self._large

    def _read_saved(self, reader: Reader, model: StoredModel, form: Form | None) -> bool:
        """Read the codes that another process has saved; False if that is of no use."""
        epoch = reader.vectors.version()[0]
        if form is not CodePieces or self._file is None or self._read_epoch == epoch:
            return False
        self._read_epoch = epoch  # what was read and is outworn is not read again
        saved = self._file.read(model, epoch)
        if saved is None:
            return False
        waiting_ids = saved.waiting_ids.tolist()
        added = reader.vectors.embedded_since(saved.last_id, waiting_ids)
        if len(added) > MOST_ADDED * len(saved.ids):
            return False
        self._form, pieces = form, CodePieces((saved.codes,))
        self._loaded = LoadedVectors(saved.ids, saved.documents, saved.collections, pieces)
        self._last_id, self._waiting_ids, self._next_look_s = saved.last_id, waiting_ids, 0.0
        return True

    def _save(
        self, model: StoredModel, epoch: int, loaded: LoadedVectors, waiting_ids: list[int]
    ) -> None:
        import numpy as np

        if self._file is None or not isinstance(loaded.vectors, CodePieces):
            return
        (codes,) = loaded.vectors.pieces
        places = loaded.ids, loaded.documents, loaded.collections
        last_id = int(loaded.ids[-1])
        waiting = np.array(waiting_ids, np.int64)
        try:
            self._file.save(model, epoch, SavedCodes(*places, codes, last_id, waiting))
        except OSError as error:  # the next start reads the vectors again
            _log.info("codes were not saved: %s", error)

    def _load_all(self, model: StoredModel) -> None:
        """Load the codes of all vectors; runs on a thread of its own."""
        assert self._reading is not None
        try:
            with self._reading() as reader:
                epoch = reader.vectors.version()[0]
                waiting_ids = reader.vectors.waiting_chunk_ids()
                loaded, last_id = self._load_rounded(reader, model)
            with self._lock:
                if not self._closed:
                    self._loaded, self._last_id, self._waiting_ids = loaded, last_id, waiting_ids
                    self._next_look_s = 0.0
            if loaded is not None and not self._closed:
                self._save(model, epoch, loaded, waiting_ids)
        except QmdError as error:  # the next search tries again
            _log.warning("vectors were not loaded: %s", error)
        finally:
            self._loader = None

    def _load_rounded(self, reader: Reader, model: StoredModel) -> tuple[LoadedVectors | None, int]:
        """All vectors, and the highest id of a chunk of them."""
        loaded: list[LoadedVectors] = []
        codes: Codes | None = None
        last_id = 0
        while not self._closed:
            rows = reader.vectors.rounded(model, last_id, LOADED_AT_ONCE)
            if not rows:
                break
            last_id = rows[-1][0]
            values = _stacked([row[3] for row in rows])
            codes = Codes.encode(values) if codes is None else codes.only(values)
            loaded.append(LoadedVectors(*places_of(rows), CodePieces((codes,))))
        return (concatenated(loaded) if loaded else None), last_id

    def _load_new(self, reader: Reader, model: StoredModel) -> None:
        """Load the vectors that were added since the last look at a large index."""
        now = monotonic()
        if now < self._next_look_s:
            return
        new_ids = reader.vectors.embedded_since(self._last_id, self._waiting_ids)
        if new_ids:
            rows = reader.vectors.with_places(model, new_ids)
            self._loaded = extended(self._loaded, rows, model.dimension, CodePieces)
            self._last_id = max(self._last_id, new_ids[-1])
        self._waiting_ids = reader.vectors.waiting_chunk_ids()
        if len(self._waiting_ids) > MANY_WAITING:
            self._next_look_s = now + LOOK_S

    def _list_chunks(self, reader: Reader) -> None:
        """Drop the vectors that the index no longer has, and list the chunks to load."""
        import numpy as np

        self._missing_ids = indexed = reader.vectors.indexed_chunk_ids()
        if self._loaded is not None:
            self._loaded = filtered(self._loaded, np.isin(self._loaded.ids, indexed))
            self._missing_ids = np.setdiff1d(indexed, self._loaded.ids, assume_unique=True)

    def _load_missing(
        self, reader: Reader, model: StoredModel, key: tuple[int, int, int]
    ) -> LoadedVectors | None:
        """
        Load the missing vectors; of codes, only one batch.

        Returns:
            None as long as vectors are missing.
        """
        missing_ids, form = self._missing_ids, self._form
        while missing_ids is not None and form is not None and len(missing_ids):
            loaded_count = 0 if self._loaded is None else len(self._loaded.ids)
            batch_size = max(self._batch, (loaded_count + len(missing_ids)) // 32)
            rows = reader.vectors.with_places(model, missing_ids[:batch_size].tolist())
            self._loaded = extended(self._loaded, rows, model.dimension, form)
            self._missing_ids = missing_ids = missing_ids[batch_size:]
            if form is CodePieces and len(missing_ids):
                return None  # the next search loads the next batch
        self._missing_ids = None
        self._ready = (key, self._loaded)
        return self._loaded

    def _choose_form(self, count: int, model: StoredModel) -> Form | None:
        """Choose the form for ``count`` vectors; None if sqlite-vec is to search them."""
        if count < self._least:
            return None
        if count * model.dimension * 4 <= self._exact_bytes:
            return Exact
        fits_in_memory = count * model.dimension // 4 <= MOST_CODED_BYTES
        return CodePieces if fits_in_memory and are_supported() else None


def _inside(
    reader: Reader, loaded: LoadedVectors, selection: Selection
) -> NDArray[np.bool_] | None:
    """Which of the vectors are of selected documents; None for all."""
    import numpy as np

    if selection.is_all:
        return None
    if selection.collection_ids is not None:
        return np.isin(loaded.collections, selection.collection_ids)
    chosen = np.array(reader.documents.selected_ids(selection), np.int64)
    highest = int(loaded.documents.max(initial=0))
    is_selected = np.zeros(highest + 1, bool)
    is_selected[chosen[chosen <= highest]] = True
    return is_selected[loaded.documents]


def _stacked(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    import numpy as np

    return np.stack(vectors)


def _best(scores: NDArray[Any], ids: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The ids of the ``k`` highest scores; among equal ones, the lowest ids."""
    import numpy as np

    lowest = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = ids[scores > lowest]
    equal = np.sort(ids[scores == lowest])
    return np.sort(np.concatenate([above, equal[: k - len(above)]]))

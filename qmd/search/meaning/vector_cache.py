"""
Keep the vectors of one database in memory, and search them for nearest neighbours.

A small index is kept as one exact float32 matrix: with 20,000 chunks, a matrix product takes 1 ms
and sqlite-vec 3 ms. Every process then returns the same hits, down to the last place.
A larger index is kept as `Codes`, which a thread loads from the process's second search on, while
sqlite-vec answers. The codes choose a few hundred candidates, and the exact vectors rank those.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from qmd.errors import QmdError
from qmd.search.meaning import loaded_vectors

if TYPE_CHECKING:
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
#: Rows to read at once.
LOADED_AT_ONCE = 20_000
#: The codes choose `CODED` candidates, and `CODED_PER_CHUNK` more for each chunk to return.
CODED, CODED_PER_CHUNK = 100, 4.5
#: The codes choose one more candidate for each `MORE` chunks of the index, because in a larger
#: index more chunks are equally near. With these, 99 % of the ten nearest of 3,000,000 are
#: candidates; to read the exact vector of a candidate takes 15 µs.
MORE = 3000
#: With more chunks than this without a vector, codes of new ones are made every `LOOK_S` seconds.
MANY_WAITING, LOOK_S = 20_000, 10.0
#: Codes that were saved are used if no more than this share of vectors were added since.
MOST_ADDED = 0.02
#: If fewer than this share of the chosen chunks exist, the vectors are loaded anew.
LEAST_ALIVE = 0.9
#: They are loaded anew as well if they are so many times what was loaded, because those of removed
#: chunks stay until then.
MOST_GROWTH = 1.25


class VectorCache:
    """
    The vectors of one database. Thread-safe.

    When the version of the index (`Vectors.version`) changes, the cache loads new vectors. An
    outdated cache never gives wrong hits, because every hit is looked up in the database.

    Args:
        reading: Opens a snapshot, for the thread that loads codes.
        file: Keeps the codes for the next start; None to keep them nowhere.
        least, exact_bytes, coded: See the constants.
    """

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Reader]],
        file: loaded_vectors.CodesFile | None = None,
        *,
        least: int = LEAST,
        exact_bytes: int = MOST_EXACT_BYTES,
        coded: int = CODED,
    ) -> None:
        self._reading = reading
        self._file = file
        self._least = least
        self._exact_bytes = exact_bytes
        self._coded = coded
        self._lock = threading.Lock()
        self.loader: threading.Thread | None = None
        self._was_searched = self._closed = self._is_outworn = False
        #: The version of the index that the vectors were last compared with, and the vectors.
        self._ready: tuple[object, loaded_vectors.LoadedVectors | None] = (None, None)
        self._epoch: object = None
        self._read_epoch: int | None = None  # of the file
        self._loaded: loaded_vectors.LoadedVectors | None = None
        self._loaded_count = 0
        self._next_look_s = 0.0

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
        loaded = self._current(reader, model)
        if loaded is None:
            return None
        inside = _inside(reader, loaded, selection)
        scores: NDArray[Any] = loaded.scores(query, inside)
        ids = loaded.ids
        if inside is not None:
            scores, ids = scores[inside], ids[inside]
        if loaded.are_codes:
            k = self._coded + round(CODED_PER_CHUNK * k) + len(ids) // MORE
            promising = np.flatnonzero(
                scores > loaded_vectors.LEAST_SCORE
            )  # much faster than by the mask
            scores, ids = scores[promising], ids[promising]
        chosen = ids if len(ids) <= k else _best(scores, ids, k)
        rows = reader.vectors.exact(model, chosen.tolist(), selection)
        if inside is None and len(rows) < len(chosen) * LEAST_ALIVE:
            self._is_outworn = True
        return rows

    def close(self) -> None:
        """Free the memory; sqlite-vec answers all later searches."""
        self._closed = True  # which ends the thread that loads
        if self.loader is not None:
            self.loader.join()
        with self._lock:
            self._ready, self._loaded = (None, None), None

    def _current(self, reader: Reader, model: StoredModel) -> loaded_vectors.LoadedVectors | None:
        """The up-to-date vectors, loaded if necessary; None if sqlite-vec must search instead."""
        epoch, count = reader.vectors.version()
        key = (model.id, epoch, count)
        ready_key, loaded = self._ready
        if ready_key == key and not self._is_outworn:
            return loaded
        with self._lock:
            if self._closed or self.loader is not None:
                return None
            if self._epoch != key[:2] or self._is_outworn:
                self._loaded, self._epoch, self._is_outworn = None, key[:2], False
            if self._loaded is None or not self._loaded.are_codes:
                form = self._choose_form(reader.vectors.count_chunks(), model)
                if form is not loaded_vectors.Matrix:
                    self._loaded = None
                if form is loaded_vectors.Codes and not self._read_saved(reader, model):
                    self._start_loading(model)
                    return None
                if form is loaded_vectors.Matrix:
                    self._loaded = self._with_new(reader, model, self._loaded, form)
            elif monotonic() >= self._next_look_s:
                self._loaded = self._with_new(reader, model, self._loaded, loaded_vectors.Codes)
            self._ready = (key, self._loaded)
            return self._loaded

    def _with_new(
        self,
        reader: Reader,
        model: StoredModel,
        loaded: loaded_vectors.LoadedVectors | None,
        form: loaded_vectors.Form,
    ) -> loaded_vectors.LoadedVectors | None:
        """The vectors, with those that were added since; of None, with all."""
        if loaded is None:
            self._loaded_count = 0
        last_id, waiting_ids = (0, ()) if loaded is None else (loaded.last_id, loaded.waiting_ids)
        new_ids = reader.vectors.embedded_since(last_id, waiting_ids)
        for start in range(0, len(new_ids), LOADED_AT_ONCE):
            rows = reader.vectors.with_places(model, new_ids[start : start + LOADED_AT_ONCE])
            loaded = loaded_vectors.extended(loaded, rows, model.dimension, form)
        if loaded is None:
            return None
        self._loaded_count = self._loaded_count or len(loaded.ids)
        self._is_outworn = len(loaded.ids) > MOST_GROWTH * self._loaded_count
        waiting_ids = reader.vectors.waiting_chunk_ids()
        if len(waiting_ids) > MANY_WAITING:
            self._next_look_s = monotonic() + LOOK_S
        return loaded._replace(last_id=max([last_id, *new_ids[-1:]]), waiting_ids=waiting_ids)

    def _read_saved(self, reader: Reader, model: StoredModel) -> bool:
        """Read the codes that another process has saved; False if that is of no use."""
        epoch = reader.vectors.version()[0]
        if self._file is None or self._read_epoch == epoch:
            return False
        self._read_epoch = epoch  # what was read and is outworn is not read again
        saved = self._file.read(model, epoch)
        if saved is None:
            return False
        added = reader.vectors.embedded_since(saved.last_id, saved.waiting_ids)
        if len(added) > MOST_ADDED * len(saved.ids):
            return False
        self._loaded_count, self._next_look_s = len(saved.ids), 0.0
        self._loaded = self._with_new(reader, model, saved, loaded_vectors.Codes)
        return True

    def _start_loading(self, model: StoredModel) -> None:
        """Load all codes on a thread of its own; for a single search that would not pay."""
        if self._was_searched:
            self.loader = threading.Thread(
                target=self._load_codes, args=(model,), name="qmd-vectors", daemon=True
            )
            self.loader.start()
        self._was_searched = True

    def _load_codes(self, model: StoredModel) -> None:
        try:
            with self._reading() as reader:
                epoch = reader.vectors.version()[0]
                waiting_ids = reader.vectors.waiting_chunk_ids()
                loaded = self._encoded(reader, model)
            if loaded is not None and not self._closed:
                loaded = loaded._replace(waiting_ids=waiting_ids)
                with self._lock:
                    self._loaded, self._loaded_count = loaded, len(loaded.ids)
                    self._next_look_s = 0.0
                if self._file is not None:
                    self._file.save(model, epoch, loaded)
        except OSError as error:  # the next start reads the vectors again
            _log.info("codes were not saved: %s", error)
        except QmdError as error:  # the next search tries again
            _log.warning("vectors were not loaded: %s", error)
        finally:
            self.loader = None

    def _encoded(self, reader: Reader, model: StoredModel) -> loaded_vectors.LoadedVectors | None:
        """The codes of all vectors; None if there are none, or the cache was closed."""
        parts: list[loaded_vectors.LoadedVectors] = []
        codes: loaded_vectors.Codes | None = None
        last_id = 0
        while not self._closed:
            rows = reader.vectors.rounded(model, last_id, LOADED_AT_ONCE)
            if not rows:
                return loaded_vectors.joined(parts)
            last_id = rows[-1][0]
            values: NDArray[np.float32] = np.stack([row[3] for row in rows])
            codes = loaded_vectors.Codes.encode(values) if codes is None else codes.only(values)
            parts.append(
                loaded_vectors.LoadedVectors(*loaded_vectors.places_of(rows), (codes,), last_id)
            )
        return None

    def _choose_form(self, count: int, model: StoredModel) -> loaded_vectors.Form | None:
        """Choose the form for ``count`` vectors; None if sqlite-vec is to search them."""
        if count < self._least:
            return None
        if count * model.dimension * 4 <= self._exact_bytes:
            return loaded_vectors.Matrix
        fits_in_memory = count * model.dimension // 4 <= MOST_CODED_BYTES
        return loaded_vectors.Codes if fits_in_memory and loaded_vectors.are_supported() else None


def _inside(
    reader: Reader, loaded: loaded_vectors.LoadedVectors, selection: Selection
) -> NDArray[np.bool_] | None:
    """Which of the vectors are of selected documents; None for all."""
    if selection.is_all:
        return None
    if selection.collection_ids is not None:
        return np.isin(loaded.collections, selection.collection_ids)
    chosen = np.array(reader.documents.selected_ids(selection), np.int64)
    highest = int(loaded.documents.max(initial=0))
    is_selected = np.zeros(highest + 1, bool)
    is_selected[chosen[chosen <= highest]] = True
    return is_selected[loaded.documents]


def _best(scores: NDArray[Any], ids: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The ids of the ``k`` highest scores; among equal ones, the lowest ids."""
    lowest = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = ids[scores > lowest]
    equal = np.sort(ids[scores == lowest])
    return np.sort(np.concatenate([above, equal[: k - len(above)]]))

"""
Holds the vectors of an index in memory: exact ones as a matrix, or codes, which a file keeps.

Reading three million vectors takes half a minute, reading their codes a second. The file lies in
the user's cache directory and is only a copy: it is read if the database has the same vectors, and
anybody may delete it.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from qmd.search.meaning.nearness import products
from qmd.system.temporary import private_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qmd.store.sql.models import StoredModel


#: Growing vectors are kept in up to this many pieces after the first one, because joining them
#: copies all of them.
PIECES = 32
#: The head of a file: JSON, filled with spaces.
_HEAD_BYTES = 1024
#: Changes with the form of the file or of the codes.
_VERSION = 1
_BITS_IN_WORD = 64


class Matrix(NamedTuple):
    """Exact vectors; ``values``: float32[n, dimension]."""

    values: NDArray[np.float32]

    @classmethod
    def encode(cls, values: NDArray[np.float32]) -> Matrix:
        return cls(values)

    @property
    def size(self) -> int:
        return len(self.values)

    def only(self, values: NDArray[np.float32]) -> Matrix:
        return Matrix(values)

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> Matrix:
        return cls(np.concatenate([part.values for part in parts]))

    def scores(
        self, query: NDArray[np.float32], inside: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float32]:
        """float32[n], dot products with the query (float32[dimension]), also of those outside."""
        return products(self.values, query)


Form: TypeAlias = "type[Matrix] | type[Codes]"


class LoadedVectors(NamedTuple):
    """
    Loaded vectors. Position i of each array is about the same chunk.

    Attributes:
        ids: int64[n], chunk ids.
        documents: int64[n], document ids.
        collections: int64[n], collection ids.
        pieces: The vectors, all of one form. Those of one piece follow those of the one before it.
        last_id: The highest id of these chunks.
        waiting_ids: The chunks that had no vector then.
    """

    ids: NDArray[np.int64]
    documents: NDArray[np.int64]
    collections: NDArray[np.int64]
    pieces: tuple[Matrix | Codes, ...]
    last_id: int = 0
    waiting_ids: Sequence[int] = ()

    @property
    def are_codes(self) -> bool:
        return isinstance(self.pieces[0], Codes)

    def scores(
        self, query: NDArray[np.float32], inside: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """As `Codes.scores` or `Matrix.scores`."""
        ends = np.cumsum([piece.size for piece in self.pieces])[:-1]
        parts = [None] * len(self.pieces) if inside is None else np.split(inside, ends)
        return np.concatenate(
            [piece.scores(query, part) for piece, part in zip(self.pieces, parts, strict=True)]
        )


def extended(
    loaded: LoadedVectors | None,
    rows: list[tuple[int, int, int, bytes]],
    dimension: int,
    form: Form,
) -> LoadedVectors | None:
    """The vectors with those of rows after them, as `Vectors.with_places` gives them."""
    if not rows:
        return loaded
    packed = np.frombuffer(b"".join(row[3] for row in rows), np.float16)
    values = packed.reshape(len(rows), dimension).astype(np.float32)
    places = places_of(rows)
    if loaded is None:
        return LoadedVectors(*places, (form.encode(values),))
    ids, documents, collections = map(np.concatenate, zip(loaded[:3], places, strict=True))
    return LoadedVectors(ids, documents, collections, _with_piece(loaded.pieces, values))


def _with_piece(
    pieces: tuple[Matrix | Codes, ...], values: NDArray[np.float32]
) -> tuple[Matrix | Codes, ...]:
    first, *others = pieces
    others.append(first.only(values))
    if len(others) <= PIECES:
        return first, *others
    tail = first.joined(others)
    return (first, tail) if tail.size * 8 < first.size else (first.joined([first, tail]),)


def joined(parts: Sequence[LoadedVectors]) -> LoadedVectors | None:
    """Loaded vectors as one piece; None if there are none."""
    if not parts:
        return None
    ids, documents, collections = (
        np.concatenate([part[column] for part in parts]) for column in range(3)
    )
    pieces = [piece for part in parts for piece in part.pieces]
    return LoadedVectors(
        ids, documents, collections, (pieces[0].joined(pieces),), parts[-1].last_id
    )


def places_of(
    rows: Sequence[tuple[int, int, int, object]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The ids of chunks, documents and collections of rows."""
    ids, documents, collections = np.array([row[:3] for row in rows], np.int64).T
    return ids, documents, collections


class CodesFile:
    """
    The file for one database.

    Args:
        folder: It is made when something is saved.
        database: The path of the database, which must exist.
    """

    def __init__(self, folder: Path, database: Path) -> None:
        self._database = Path(os.path.realpath(database))
        name = hashlib.sha256(os.fsencode(self._database)).hexdigest()[:32]
        self.path = folder / f"{name}.codes"

    def save(self, model: StoredModel, epoch: int, loaded: LoadedVectors) -> None:
        """
        Write the file anew: all of it, or nothing.

        Args:
            loaded: Codes in one piece.

        Raises:
            OSError: It cannot be written.
        """
        (codes,) = loaded.pieces
        assert isinstance(codes, Codes)
        waiting_ids = np.array(loaded.waiting_ids, np.int64)
        numbers = [loaded.ids, loaded.documents, loaded.collections, waiting_ids]
        arrays: list[NDArray[Any]] = [*numbers, codes.mean, codes.spread, codes.planes]
        contents = [np.ascontiguousarray(each).data.cast("B") for each in arrays]
        checksum = 0
        for part in contents:
            checksum = zlib.crc32(part, checksum)
        head = self._identity(model, epoch) | {
            "last_id": loaded.last_id,
            "chunks": len(loaded.ids),
            "waiting": len(waiting_ids),
            "checksum": checksum,
        }
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Codes tell of the texts that they are of: nobody else may read them.
        with private_file(self.path) as file:
            file.write(json.dumps(head).encode().ljust(_HEAD_BYTES))
            for part in contents:
                file.write(part)

    def read(self, model: StoredModel, epoch: int) -> LoadedVectors | None:
        """None if there is no file, or not one of these vectors, or it is damaged."""
        try:
            with self.path.open("rb") as file:
                head = json.loads(file.read(_HEAD_BYTES))
                identity = self._identity(model, epoch)
                if any(head.get(key) != value for key, value in identity.items()):
                    return None
                data = file.read()
        except (OSError, ValueError, AttributeError):
            return None
        try:
            return _parsed(head, data, model.dimension)
        except (KeyError, TypeError, ValueError):
            return None

    def _identity(self, model: StoredModel, epoch: int) -> dict[str, object]:
        """What must be equal for the codes to be those of the vectors of the database."""
        return {
            "version": _VERSION,
            "database": str(self._database),
            "file": self._database.stat().st_ino,
            "model": [model.id, model.name, model.fingerprint, model.dimension],
            "epoch": epoch,
        }


def _parsed(head: dict[str, int], data: bytes, dimension: int) -> LoadedVectors:
    """Raises ValueError: The file is damaged."""
    if zlib.crc32(data) != head["checksum"]:
        raise ValueError("the checksum is wrong")
    chunks, waiting_count = head["chunks"], head["waiting"]
    words = -(-dimension // _BITS_IN_WORD)
    place = 0

    def take(kind: type[np.generic], *shape: int) -> NDArray[Any]:
        nonlocal place
        values = np.frombuffer(data, kind, int(np.prod(shape)), place).reshape(shape)
        place += values.nbytes
        return values

    ids, documents, collections = (take(np.int64, chunks) for _ in range(3))
    waiting_ids = take(np.int64, waiting_count)
    mean, spread = take(np.float32, dimension), take(np.float32, dimension)
    planes = take(np.uint64, 2, words, chunks)
    if place != len(data):
        raise ValueError("the file has another length")
    codes = Codes(planes, mean, spread)
    return LoadedVectors(
        ids, documents, collections, (codes,), head["last_id"], waiting_ids.tolist()
    )


# --- codes of two bits per dimension ----------------------------------------------------
# They find nearest neighbours among many chunks quickly. For each chunk sqlite-vec reads 384 bytes;
# at 100,000 chunks that takes three times as long as a product of one matrix in numpy. The codes
# take 96 bytes for a chunk of 384 dimensions: for each dimension, two bits say in which quarter of
# the distribution around the mean the value is. The query has three bits per dimension, so its
# product with a code is a sum of popcounts. The exact vectors then rank the best few hundred
# chunks.
#
# One bit per dimension on both sides (a Hamming distance) would be twice as fast, but only 73 % of
# the ten nearest random vectors are among its best 2,000. With these codes, 99.5 % are among the
# best 500. The mean matters, because the vectors of e5 are in a narrow cone, where signs alone say
# little.

#: The mean and the spread of this many vectors stand for those of all.
SAMPLE = 4096
#: Chunks to compare at once. This is enough to make the overhead of numpy's calls negligible, and
#: few enough to keep intermediate results in the processor's cache.
SLICE = 32_768
#: From this many chunks on, the low bits are looked at only where the high ones are promising; the
#: time is then a third.
TWO_STAGES = 300_000
#: The shares of chunks that half of the high bits and all high bits choose, and the fewest chunks.
FIRST_SHARE, SECOND_SHARE, LEAST_PROMISING = 10, 50, 7_500
#: From this many chunks on, two threads compare the high bits.
SHARED = 1_000_000
#: From as many on, one score of so many is looked at to find the border of the best.
SAMPLED = 16
#: The score of a chunk that is not to be chosen; all others are higher.
LEAST_SCORE = -32_768

#: Where the outer quarters of a normal distribution begin, in standard deviations from the mean.
#: This border has the least error (Lloyd-Max).
_QUARTER = 0.98
#: A query's values are rounded to multiples (-3 to 3) of this many root mean squares.
_STEP = 0.65
#: The few that the high bits choose are compared with a query of five bits (-15 to 15), in steps
#: of a quarter. Of 3,000,000 vectors, 100 % of the ten nearest are then found instead of 97 %.
_FINE_BITS, _FINER = 5, 4
_WORD_BITS = 64


def are_supported() -> bool:
    """Whether this numpy counts bits (from 2.0 on)."""
    return hasattr(np, "bitwise_count")


class Codes(NamedTuple):
    """
    The codes of n vectors.

    Attributes:
        planes: uint64[2, words, n]: the low bits and the high bits, one bit per dimension.
        mean: float32[dimension].
        spread: float32[dimension], standard deviations.
    """

    planes: NDArray[np.uint64]
    mean: NDArray[np.float32]
    spread: NDArray[np.float32]

    @classmethod
    def encode(cls, values: NDArray[np.float32]) -> Codes:
        """Encode ``values``, float32[n, dimension]; the first `SAMPLE` give the mean and spread."""
        sample = values[:SAMPLE]
        spread = np.maximum(sample.std(axis=0), np.float32(1e-6))
        mean: NDArray[np.float32] = sample.mean(axis=0)
        return cls(_planes(values, mean, spread), mean, spread)

    @property
    def size(self) -> int:
        """How many vectors have codes."""
        return int(self.planes.shape[2])

    def only(self, values: NDArray[np.float32]) -> Codes:
        """The codes of other vectors, float32[n, dimension], by the same mean and spread."""
        return self._replace(planes=_planes(values, self.mean, self.spread))

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> Codes:
        """Codes by the same mean and spread, as one."""
        first: Codes = parts[0]
        if len(parts) == 1:
            return first
        return first._replace(planes=np.concatenate([part.planes for part in parts], axis=2))

    def scores(
        self, query: NDArray[np.float32], inside: NDArray[np.bool_] | None = None
    ) -> NDArray[np.signedinteger[Any]]:
        """
        For each chunk a number that grows with its cosine to the query (float32[dimension]).

        Of many chunks only the most promising get one (see `_promising`); the others get
        `LEAST_SCORE`, as do those that are not ``inside``.
        """
        # Each dimension adds at most 48.
        score_type = np.int16 if len(query) <= 600 else np.int32
        scores = np.full(self.size, LEAST_SCORE, score_type)
        if self.size < TWO_STAGES:
            masks = self._masks(query)
            scores = self._weighted_counts(masks, score_type)
            scores *= _FINER  # on the scale of those below
            if inside is not None:
                scores[~inside] = LEAST_SCORE
            return scores
        places = self._promising(query, inside, score_type)
        chosen = self._replace(planes=_columns(self.planes, places))
        fine = self._masks(query, _FINE_BITS, _STEP / _FINER)
        scores[places] = chosen._weighted_counts(fine, score_type)
        return scores

    def _promising(
        self,
        query: NDArray[np.float32],
        inside: NDArray[np.bool_] | None,
        score_type: type[np.signedinteger[Any]],
    ) -> NDArray[np.intp]:
        """
        The positions of the chunks that are best by their high bits.

        One half of the dimensions chooses a tenth of all chunks, and all dimensions choose a
        fiftieth. Of 3,000,000 vectors, these had 99 % of the ten nearest, as all chunks have.
        """
        masks = self._masks(query)
        first, others = self._halves(query)
        high = self.planes[1]
        if inside is not None and np.count_nonzero(inside) <= self.size // FIRST_SHARE:
            places = np.flatnonzero(inside)
            rough = np.zeros(len(places), score_type)
            others = [*first, *others]
        else:
            rough = _weighted_counts_of_many(high, first, masks, 2, score_type)
            if inside is not None:
                rough[~inside] = LEAST_SCORE
            places = _best_places(rough, max(LEAST_PROMISING, self.size // FIRST_SHARE))
            rough = rough[places]
        columns = [high[word].take(places, mode="clip") for word in others]
        rough += _weighted_counts(columns, [mask[others] for mask in masks], 2, score_type)
        return places[_best_places(rough, max(LEAST_PROMISING, self.size // SECOND_SHARE))]

    def _halves(self, query: NDArray[np.float32]) -> tuple[list[int], list[int]]:
        """The words of the planes: the half whose dimensions weigh most for the query, the rest."""
        weights = np.zeros(self.planes.shape[1] * _WORD_BITS, np.float32)
        weights[: len(query)] = (query * self.spread) ** 2
        order = np.argsort(-weights.reshape(-1, _WORD_BITS).sum(axis=1), kind="stable").tolist()
        half = -(-len(order) // 2)
        return order[:half], order[half:]

    def _weighted_counts(
        self, masks: Sequence[NDArray[np.uint64]], score_type: type[np.signedinteger[Any]]
    ) -> NDArray[np.signedinteger[Any]]:
        """The weighted counts of both planes; a high bit weighs as much as two low ones."""
        low, high = self.planes
        counts = _weighted_counts(high, masks, 2, score_type)
        counts += _weighted_counts(low, masks, 1, score_type)
        return counts

    def _masks(
        self, query: NDArray[np.float32], bits: int = 3, relative_step: float = _STEP
    ) -> list[NDArray[np.uint64]]:
        """For each of the bits of the query's numbers, the dimensions that have it."""
        # query · value = query · mean + (query * spread) · normalized value. The first summand is
        # the same for all chunks. 0 is rounded to 0, so a chunk's sum of bits needs no correction.
        weighted = query * self.spread
        step = relative_step * float(np.sqrt(np.mean(weighted**2))) or 1.0
        most = 2 ** (bits - 1) - 1
        rounded = np.clip(np.rint(weighted / step), -most, most).astype(np.int8)
        return [
            _words(((rounded >> bit) & 1).astype(bool)[np.newaxis, :])[:, 0] for bit in range(bits)
        ]


def _best_places(scores: NDArray[np.signedinteger[Any]], kept: int) -> NDArray[np.intp]:
    """The positions of about the ``kept`` highest scores, and of those equal to the last one."""
    count = len(scores)
    if count <= kept:
        return np.flatnonzero(scores > LEAST_SCORE)
    # Of very many, a sample tells as well where the best begin; it saves 15 ms.
    sample = scores[::SAMPLED] if count >= SHARED else scores
    above = len(sample) - round(kept * len(sample) / count)
    lowest = np.partition(sample, above)[above]
    return np.flatnonzero(scores >= max(lowest, LEAST_SCORE + 1))


def _columns(planes: NDArray[np.uint64], places: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The codes of some vectors; taking them row by row is the fastest way."""
    return np.stack(
        [np.stack([row.take(places, mode="clip") for row in plane]) for plane in planes]
    )


def _weighted_counts_of_many(
    plane: NDArray[np.uint64],
    words: Sequence[int],
    masks: Sequence[NDArray[np.uint64]],
    factor: int,
    score_type: type[np.signedinteger[Any]],
) -> NDArray[np.signedinteger[Any]]:
    """`_weighted_counts` of some words of a plane; two threads share the work if there is much."""
    of_words = [mask[words] for mask in masks]

    def compared(part: slice) -> NDArray[np.signedinteger[Any]]:
        return _weighted_counts([plane[word, part] for word in words], of_words, factor, score_type)

    size = plane.shape[1]
    if size < SHARED:
        return compared(slice(size))
    with ThreadPoolExecutor(1) as other:
        second = other.submit(compared, slice(size // 2, size))
        return np.concatenate([compared(slice(size // 2)), second.result()])


def _weighted_counts(
    rows: Sequence[NDArray[np.uint64]] | NDArray[np.uint64],
    masks: Sequence[NDArray[np.uint64]],
    factor: int,
    score_type: type[np.signedinteger[Any]],
) -> NDArray[np.signedinteger[Any]]:
    """
    For each of n codes the weighted number of bits that it shares with the masks.

    Args:
        rows: A row of uint64[n] for each word.
        masks: The query's bits, uint64[words].
    """
    word_count, count = len(rows), len(rows[0])
    # Those of the bits of a number in two's complement.
    weights = [*(1 << bit for bit in range(len(masks) - 1)), -(1 << len(masks) - 1)]
    scores = np.zeros(count, score_type)
    # Buffers, which every slice uses again.
    common_bits = np.empty(SLICE, np.uint64)
    bit_counts, byte_sums = np.empty(SLICE, np.uint8), np.empty(SLICE, np.uint8)
    totals = np.empty(SLICE, score_type)
    for start in range(0, count, SLICE):
        size = min(SLICE, count - start)
        part = [row[start : start + size] for row in rows]
        for weight, mask in zip(weights, masks, strict=True):
            totals[:size] = 0
            # The number of bits in three words still fits into a byte.
            for first in range(0, word_count, 3):
                byte_sums[:size] = 0
                for word in range(first, min(first + 3, word_count)):
                    np.bitwise_and(part[word], mask[word], out=common_bits[:size])
                    np.bitwise_count(common_bits[:size], out=bit_counts[:size])
                    byte_sums[:size] += bit_counts[:size]
                totals[:size] += byte_sums[:size]
            totals[:size] *= weight * factor
            scores[start : start + size] += totals[:size]
    return scores


def _planes(
    values: NDArray[np.float32], mean: NDArray[np.float32], spread: NDArray[np.float32]
) -> NDArray[np.uint64]:
    """Quantize ``values``, float32[n, dimension], as `Codes.planes`."""
    quarter = np.float32(_QUARTER) * spread
    high = values >= mean
    low = (values >= mean + quarter) | ((values >= mean - quarter) & ~high)
    return np.stack([_words(low), _words(high)])


def _words(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack bool[n, dimension] into uint64[words, n], padded with zeros."""
    count, dimension = bits.shape
    packed = np.zeros((count, -(-dimension // 64) * 8), np.uint8)
    packed[:, : -(-dimension // 8)] = np.packbits(bits, axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)

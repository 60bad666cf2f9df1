"""
The vectors of an index in memory: exact ones as a matrix, or codes, which a file keeps.

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
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from qmd.search.meaning.codes import Codes
from qmd.search.meaning.nearness import products

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qmd.store.sql.models import StoredModel

#: Growing vectors are kept in up to this many pieces behind the first one, because joining them
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
    """The vectors with those of rows behind them, as `Vectors.with_places` gives them."""
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
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(f".{os.getpid()}")
        # Codes tell of the texts that they are of: nobody else may read them.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(head).encode().ljust(_HEAD_BYTES))
                for part in contents:
                    file.write(part)
            temporary.replace(self.path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

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

"""The vectors of an index in memory: exact ones as a matrix, or codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from qmd.search.meaning.codes import Codes
from qmd.search.meaning.nearness import products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Growing vectors are kept in up to this many pieces behind the first one, because joining them
#: copies all of them.
PIECES = 32


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
        import numpy as np

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
        import numpy as np

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
    import numpy as np

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
    import numpy as np

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
    import numpy as np

    ids, documents, collections = np.array([row[:3] for row in rows], np.int64).T
    return ids, documents, collections

"""The vectors of an index in memory: exact ones as a matrix, or codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from qmd.search.meaning.codes import Codes
from qmd.search.meaning.nearness import products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

    def scores(
        self, query: NDArray[np.float32], inside: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float32]:
        """float32[n], dot products with the query (float32[dimension]), also of those outside."""
        import numpy as np

        return np.concatenate([products(piece, query) for piece in self.pieces])


class CodePieces(NamedTuple):
    """The codes of vectors in pieces: a growing index is not copied for each new vector."""

    pieces: tuple[Codes, ...]

    @classmethod
    def encode(cls, values: NDArray[np.float32]) -> CodePieces:
        return cls((Codes.encode(values),))

    def extended(self, values: NDArray[np.float32]) -> CodePieces:
        first, *others = self.pieces
        if len(others) < PIECES:
            return CodePieces((*self.pieces, first.only(values)))
        tail = Codes.joined([*others, first.only(values)])
        if tail.size * 8 < first.size:
            return CodePieces((first, tail))
        return CodePieces((Codes.joined([first, tail]),))

    def scores(
        self, query: NDArray[np.float32], inside: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """As `Codes.scores`."""
        import numpy as np

        ends = np.cumsum([piece.size for piece in self.pieces])[:-1]
        parts = [None] * len(self.pieces) if inside is None else np.split(inside, ends)
        return np.concatenate(
            [piece.scores(query, part) for piece, part in zip(self.pieces, parts, strict=True)]
        )


class LoadedVectors(NamedTuple):
    """
    Loaded vectors. Position i of each attribute is about the same chunk.

    Attributes:
        ids: int64[n], chunk ids.
        documents: int64[n], document ids.
        collections: int64[n], collection ids.
        last_id: The highest id of these chunks.
        waiting_ids: The chunks that had no vector then.
    """

    ids: NDArray[np.int64]
    documents: NDArray[np.int64]
    collections: NDArray[np.int64]
    vectors: Exact | CodePieces
    last_id: int = 0
    waiting_ids: Sequence[int] = ()


Form: TypeAlias = "type[Exact] | type[CodePieces]"


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
        return LoadedVectors(*places, form.encode(values))
    ids, documents, collections = map(np.concatenate, zip(loaded[:3], places, strict=True))
    return LoadedVectors(ids, documents, collections, loaded.vectors.extended(values))


def places_of(
    rows: Sequence[tuple[int, int, int, object]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The ids of chunks, documents and collections of rows."""
    import numpy as np

    ids, documents, collections = np.array([row[:3] for row in rows], np.int64).T
    return ids, documents, collections


def joined(parts: Sequence[LoadedVectors]) -> LoadedVectors | None:
    """Loaded codes as one piece; None if there are none."""
    import numpy as np

    if not parts:
        return None
    ids, documents, collections = (
        np.concatenate([part[column] for part in parts]) for column in range(3)
    )
    pieces = [piece for part in parts for piece in part.vectors.pieces]
    codes = Codes.joined([piece for piece in pieces if isinstance(piece, Codes)])
    return LoadedVectors(ids, documents, collections, CodePieces((codes,)), parts[-1].last_id)


def _joined(pieces: tuple[NDArray[np.float32], ...]) -> NDArray[np.float32]:
    import numpy as np

    return np.concatenate(pieces)

"""The chunks that have no vector yet, and the cache of vectors by the hash of their text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from qmd.store.models import StoredModel

if TYPE_CHECKING:
    from qmd.values import NewDocument


#: The column of a chunk ``k`` for a model's id → SQL conditions of the chunks that wait for its
#: vector: of those without any, and of those that have one of an earlier title or other headings,
#: by which they are found meanwhile. No chunk meets both.
WAITING: Mapping[str, tuple[str, str]] = {
    "model_id": ("k.model_id IS NULL", "k.next_hash IS NOT NULL AND k.model_id IS NOT NULL"),
    "next_model_id": ("k.next_model_id IS NULL", "false"),
}


class ChunkText(NamedTuple):
    """
    A chunk with what is embedded of it: title, heading path and text together.

    ``hash`` is that of these three, also while the chunk has the vector of an earlier title.
    """

    id: int
    hash: bytes
    title: str
    heading_path: str
    text: str


class StoredChunk(NamedTuple):
    """A chunk of a document that is about to be replaced; ``next_hash`` as in the table."""

    id: int
    hash: bytes
    next_hash: bytes | None
    has_vector: bool
    start_char: int
    end_char: int


class ChunkRow(NamedTuple):
    """Which row a chunk takes (None: a new one), and its hashes."""

    id: int | None
    hash: bytes
    next_hash: bytes | None


def chunk_rows(
    stored: Sequence[StoredChunk], old_text: str, document: NewDocument
) -> list[ChunkRow]:
    """
    The rows of a document's chunks, in their order; each keeps a vector if there is one for it.

    A chunk takes the row of the same embedded text, else one with a vector of the same text below
    another title or other headings: its earlier vector answers until it has its own.
    """
    by_hash: dict[bytes, list[StoredChunk]] = {}
    for chunk in reversed(stored):
        by_hash.setdefault(chunk.next_hash or chunk.hash, []).append(chunk)
    same = [
        by_hash[digest].pop() if by_hash.get(digest) else None for digest in document.chunk_hashes
    ]
    by_text: dict[str, list[StoredChunk]] = {}
    if None in same:
        for chunk in (chunk for chunks in by_hash.values() for chunk in chunks if chunk.has_vector):
            by_text.setdefault(old_text[chunk.start_char : chunk.end_char], []).append(chunk)
    text = document.parsed.text
    rows: list[ChunkRow] = []
    for new, digest, row in zip(document.parsed.chunks, document.chunk_hashes, same, strict=True):
        if row is not None:
            rows.append(ChunkRow(row.id, row.hash, row.next_hash))
        elif below_other_title := by_text.get(text[new.start_char : new.end_char]):
            earlier = below_other_title.pop()
            next_hash = None if earlier.hash == digest else digest
            rows.append(ChunkRow(earlier.id, earlier.hash, next_hash))
        else:
            rows.append(ChunkRow(None, digest, None))
    return rows


class Embeddings(Protocol):
    """Reads which chunks wait for a vector, and cached vectors by the hash of their text."""

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
        *,
        outdated: bool = False,
    ) -> list[ChunkText]:
        """
        Chunks whose text has no vector of this model yet, sorted by id.

        Args:
            limit: Return at most this many.
            collection_ids: Only chunks of these collections; empty for all.
            after: Only chunks with a greater id.
            outdated: Only chunks with the vector of an earlier title; else only those without any.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        ...

    def count_waiting(self, model: StoredModel | None, collection_ids: Sequence[int] = ()) -> int:
        """
        How many chunks have a text without a vector of a model.

        ``model`` None stands for the active model; without one, all chunks are counted.
        """
        ...

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash → vector (float16[dimension], unit norm), for the texts embedded before."""
        ...


class EmbeddingsWriter(Embeddings, Protocol):
    """Stores vectors."""

    def forget(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> None:
        """
        Drop the vectors of all chunks, or of those in some collections, so that they wait again.

        Chunks of other collections with the same text share the vector, so they wait too.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        ...

    def put(
        self,
        model: StoredModel,
        chunks: Sequence[tuple[int, bytes]],
        vectors: dict[bytes, bytes],
    ) -> int:
        """
        Store vectors in the cache, and give them to their chunks.

        Args:
            chunks: Pairs of chunk id and text hash. A chunk that was removed or changed meanwhile
                is passed over.
            vectors: Text hash → vector (float16[dimension], unit norm).

        Returns:
            How many chunks got a vector.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        ...

"""The chunks that have no vector yet, and the cache of vectors by the hash of their text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from qmd.store.sql import Sql, meta
from qmd.store.sql.models import Models, StoredModel
from qmd.store.sql.vectors import put_copies, remove_copies, renumber_copy

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


class WaitingChunk(NamedTuple):
    """A chunk that waits for a vector, with the hash of its text, and when its file was changed."""

    id: int
    hash: bytes
    modified_at: str
    document_id: int


class Embeddings:
    """Reads which chunks wait for a vector, and cached vectors by the hash of their text."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def _column(self, model: StoredModel) -> str:
        return Models(self._sql).chunk_column(model)

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
        condition, values = self._of_collections(collection_ids)
        waits = WAITING[self._column(model)][outdated]
        return chunk_texts(
            self._sql,
            f" WHERE {waits} AND k.id > ?{condition} ORDER BY k.id LIMIT ?",
            [after, *values, limit],
        )

    def count_waiting(self, model: StoredModel | None, collection_ids: Sequence[int] = ()) -> int:
        """
        How many chunks have a text without a vector of a model.

        ``model`` None stands for the active model; without one, all chunks are counted.
        """
        column = "model_id" if model is None else self._column(model)
        condition, values = self._of_collections(collection_ids)
        join = " JOIN documents d ON d.id = k.document_id" if condition else ""
        return sum(
            self._sql.number(
                f"SELECT count(*) FROM chunks k{join} WHERE {waits}{condition}", values
            )
            for waits in WAITING[column]
        )

    def newest_waiting(
        self,
        model: StoredModel,
        documents: int,
        collection_ids: Sequence[int] = (),
        after: WaitingChunk | None = None,
        *,
        outdated: bool = False,
    ) -> list[WaitingChunk]:
        """
        Of the chunks that `waiting` would give, those of the documents that were changed last.

        Args:
            documents: Of at most so many documents.
            after: Only of the documents that come after that of this chunk.
        """
        condition, values = self._of_collections(collection_ids)
        if after is not None:
            condition += " AND (d.modified_at, d.id) < (?, ?)"
            values += [after.modified_at, after.document_id]
        waits = WAITING[self._column(model)][outdated]
        rows = self._sql.run(
            "SELECT k.id, coalesce(k.next_hash, k.hash), n.modified_at, n.id FROM chunks k JOIN"
            " (SELECT d.id, d.modified_at FROM documents d"
            f" WHERE d.id IN (SELECT k.document_id FROM chunks k WHERE {waits}){condition}"
            " ORDER BY d.modified_at DESC, d.id DESC LIMIT ?) n ON n.id = k.document_id"
            f" WHERE {waits} ORDER BY n.modified_at DESC, n.id DESC, k.id",
            [*values, documents],
        )
        return [WaitingChunk(*row) for row in rows]

    def waiting_among(self, model: StoredModel, ids: Sequence[int]) -> list[ChunkText]:
        """Those of these chunks that wait for a vector of this model, sorted by id."""
        waits = " OR ".join(f"({each})" for each in WAITING[self._column(model)])
        dialect = self._sql.dialect
        return chunk_texts(
            self._sql,
            f" WHERE k.id {dialect.among} AND ({waits}) ORDER BY k.id",
            [dialect.array(ids)],
        )

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash → vector (float16[dimension], unit norm), for the texts embedded before."""
        rows = self._sql.with_keys(
            "SELECT hash, vector FROM z_embeddings WHERE hash {} AND model_id = ?",
            hashes,
            [model.id],
        )
        return dict(rows)

    def _of_collections(self, collection_ids: Sequence[int]) -> tuple[str, list[object]]:
        """A condition on ``documents d``, empty for all collections, and the values to bind."""
        if not collection_ids:
            return "", []
        dialect = self._sql.dialect
        return f" AND d.collection_id {dialect.among}", [dialect.array(collection_ids)]


class EmbeddingsWriter(Embeddings):
    """Stores vectors."""

    def forget(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> None:
        """
        Drop the vectors of all chunks, or of those in some collections, so that they wait again.

        Chunks of other collections with the same text share the vector, so they wait too.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        column = self._column(model)
        condition, values = self._of_collections(collection_ids)
        if condition:
            condition = (
                " AND hash IN (SELECT k.hash FROM chunks k JOIN documents d"
                f" ON d.id = k.document_id WHERE true{condition})"
            )
        waiting = f"chunk_id IN (SELECT id FROM chunks WHERE true{condition})"
        remove_copies(self._sql, model, waiting, values)
        self._sql.run(
            "DELETE FROM z_embeddings WHERE model_id = ?"
            + (condition or " AND hash IN (SELECT hash FROM chunks)"),
            [model.id, *values],
        )
        self._sql.run(
            f"UPDATE chunks SET {column} = NULL WHERE {column} IS NOT NULL{condition}", values
        )
        meta.advance_vectors(self._sql, remade=True)

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
        column = self._column(model)
        self._sql.many(
            "INSERT INTO z_embeddings (model_id, hash, vector) VALUES (?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            [(model.id, digest, vector) for digest, vector in vectors.items()],
        )
        dialect = self._sql.dialect
        rows = self._sql.run(
            "SELECT k.id, coalesce(k.next_hash, k.hash), d.collection_id, k.next_hash IS NOT NULL"
            f" FROM chunks k JOIN documents d ON d.id = k.document_id WHERE k.id {dialect.among}",
            [dialect.array(chunk_id for chunk_id, _ in chunks)],
        )
        places = {(row[0], row[1]): row for row in rows.fetchall()}
        stored: list[tuple[int, int, bytes]] = []
        for chunk in chunks:
            if chunk not in places or chunk[1] not in vectors:
                continue
            chunk_id, digest, collection_id, is_outdated = places[chunk]
            if is_outdated and column == "model_id":
                chunk_id = self._renumber(chunk_id)
            stored.append((chunk_id, collection_id, vectors[digest]))
        if not stored:
            return 0
        put_copies(self._sql, model, stored)
        self._sql.run(
            f"UPDATE chunks SET {column} = ? WHERE id {dialect.among}",
            [model.id, dialect.array(chunk_id for chunk_id, *_ in stored)],
        )
        if column == "model_id":
            meta.advance_vectors(self._sql)
        return len(stored)

    def _renumber(self, chunk_id: int) -> int:
        """
        Give a chunk whose vector is replaced another id: processes hold vectors by it.

        Returns:
            The new id; the chunk has the hash of its present text, and waits.
        """
        columns = (
            "document_id, seq, start_char, end_char, start_byte, end_byte, start_line, end_line,"
            " heading_path, next_model_id"
        )
        new_id, next_model_id = self._sql.first(
            f"INSERT INTO chunks ({columns}, hash) SELECT {columns}, next_hash FROM chunks"
            " WHERE id = ? RETURNING id, next_model_id",
            [chunk_id],
        )
        if next_model_id is not None:  # a vector of that model is of the present text
            renumber_copy(self._sql, next_model_id, chunk_id, new_id)
        self._sql.run("DELETE FROM chunks WHERE id = ?", [chunk_id])
        return int(new_id)


def chunk_texts(sql: Sql, clauses: str, values: Sequence[object]) -> list[ChunkText]:
    """
    The chunks that the clauses select.

    Args:
        clauses: SQL behind ``FROM chunks k JOIN documents d``.
    """
    rows = sql.run(
        "SELECT k.id, coalesce(k.next_hash, k.hash), d.title, k.heading_path, k.document_id,"
        " k.start_char, k.end_char"
        f" FROM chunks k JOIN documents d ON d.id = k.document_id{clauses}",
        values,
    ).fetchall()
    # Sliced here: SQL's substr() would count through a long text once for each chunk.
    texts: dict[int, str] = dict(
        sql.run(
            f"SELECT id, text FROM documents WHERE id {sql.dialect.among}",
            [sql.dialect.array({row[4] for row in rows})],
        ).fetchall()
    )
    return [
        ChunkText(chunk_id, digest, title, heading_path, texts[document_id][start:end])
        for chunk_id, digest, title, heading_path, document_id, start, end in rows
    ]

"""Embedding models, the chunks that wait for them, and what they made: vectors, token states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from qmd.errors import ModelMismatchError
from qmd.store import sql as capabilities
from qmd.store.sql import Capability, Sql, shared
from qmd.store.sql.shared import Meta, MetaWriter
from qmd.store.sql.vectors import put_copies, remove_copies, renumber_copy
from qmd.system import clock
from qmd.values import ModelSpec


class StoredModel(NamedTuple):
    """A model whose vectors this database holds."""

    id: int
    name: str
    fingerprint: str
    dimension: int


_GREATEST_ID = 2**63 - 1
#: In ``z_meta``, followed by the id of a model: the id of the chunk up to which English texts have
#: their vector of English in their codes. New chunks have greater ids.
ENGLISH_UP_TO = "english_up_to_"
#: In ``z_meta``: the name of the model that was chosen for this database.
CHOICE = "model"


class Models(Capability):
    """
    Reads which models the database has: at most two.

    The active model answers searches. The coming model, if there is one, takes over as soon as
    every chunk has a vector of it.
    """

    def active(self) -> StoredModel | None:
        """The model whose vectors answer searches; None before the first `embed`."""
        return self._marked("active")

    def coming(self) -> StoredModel | None:
        """The model whose vectors are being made; None if the model does not change."""
        return self._marked("next")

    def _marked(self, mark: Literal["active", "next"]) -> StoredModel | None:
        sql = f"SELECT id, name, fingerprint, dimension FROM z_models WHERE {mark}"
        return next(iter(self._sql.all(StoredModel, sql)), None)

    def chosen_name(self) -> str | None:
        """The name of the model that a person has chosen for this database; None if nobody has."""
        return Meta(self._sql).get(CHOICE)

    def has_vectors(self) -> bool:
        """Whether any chunk has a vector of the active model."""
        return self._sql.exists("SELECT 1 FROM chunks WHERE model_id IS NOT NULL LIMIT 1")

    def chunk_column(self, model: StoredModel) -> str:
        """
        Where a chunk says that it has this model's vector.

        Raises:
            ModelMismatchError: Another process has chosen another model.
        """
        if self.active() == model:
            return "model_id"
        if self.coming() == model:
            return "next_model_id"
        raise ModelMismatchError(
            f"Another process has begun to embed with another model than {model.name}.",
            hint="Let every program use the same model, then run 'qmd embed' again.",
        )


class ModelsWriter(Models):
    """Changes the model."""

    def choose(self, name: str) -> None:
        """Set `chosen_name`, for all processes."""
        MetaWriter(self._sql).put(CHOICE, name)

    def begin(self, spec: ModelSpec) -> StoredModel:
        """
        Make a model the active or the coming one, so that vectors can be stored for it.

        If the index has no vectors, the model becomes the active one at once. If it has those of
        another model, they answer searches until `make_active`. The vectors of an earlier coming
        model stay in the cache.
        """
        self._sql.engine("vectors").prepare(self._sql.connection)
        active, coming = self.active(), self.coming()
        for model in (active, coming):
            if model is not None and model.fingerprint == spec.fingerprint:
                return self._renamed(model, spec.name)
        if coming is not None:
            self.cancel()
        beside = active is not None and self.has_vectors()
        if active is not None and not beside:
            self._remove_copies(active)
            self._sql.run("UPDATE z_models SET active = false WHERE active")
        self._insert(spec, "next" if beside else "active")
        shared.advance_vectors(self._sql, remade=not beside)
        model = self.coming() if beside else self.active()
        assert model is not None  # just inserted
        return model

    def _remove_copies(self, model: StoredModel) -> None:
        capabilities.vectors.remove_copies(self._sql, model)

    def _renamed(self, model: StoredModel, name: str) -> StoredModel:
        """The same model by another name: its folder was moved."""
        if model.name != name:
            self._sql.run("UPDATE z_models SET name = ? WHERE id = ?", [name, model.id])
        return model._replace(name=name)

    def _insert(self, spec: ModelSpec, mark: Literal["active", "next"]) -> None:
        self._sql.run(
            "INSERT INTO z_models"
            f" (name, fingerprint, dimension, query_prefix, passage_prefix, created_at, {mark})"
            " VALUES (?, ?, ?, ?, ?, ?, true)"
            f" ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, {mark} = true",
            [
                spec.name,
                spec.fingerprint,
                spec.dimension,
                spec.query_prefix,
                spec.passage_prefix,
                clock.now(),
            ],
        )

    def cancel(self) -> None:
        """Drop the coming model and keep the active one. The vectors made stay in the cache."""
        model = self.coming()
        if model is None:
            return
        self._remove_copies(model)
        self._sql.run("UPDATE z_models SET next = false WHERE next")
        self._sql.run("UPDATE chunks SET next_model_id = NULL WHERE next_model_id IS NOT NULL")

    def make_active(self, model: StoredModel) -> bool:
        """
        Make the coming model the active one, if every chunk has a vector of it.

        The vectors of the earlier model stay in the cache until `cleanup`.

        Returns:
            Whether the model is the active one now.
        """
        if self.coming() != model:
            return False
        if self._sql.exists("SELECT 1 FROM chunks WHERE next_model_id IS NULL LIMIT 1"):
            return False
        before = self.active()
        self._sql.run(
            "UPDATE chunks SET model_id = next_model_id, next_model_id = NULL,"
            " hash = coalesce(next_hash, hash), next_hash = NULL"
        )
        self._sql.run("UPDATE z_models SET active = (id = ?), next = false", [model.id])
        if before is not None:
            self._remove_copies(before)
        shared.advance_vectors(self._sql, remade=True)
        return True


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


class Embeddings(Capability):
    """Reads which chunks wait for a vector, and cached vectors by the hash of their text."""

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
        condition, values = self._sql.in_collections(collection_ids)
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
        condition, values = self._sql.in_collections(collection_ids)
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
        condition, values = self._sql.in_collections(collection_ids)
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
        return chunk_texts(
            self._sql,
            f" WHERE k.id {self._sql.among} AND ({waits}) ORDER BY k.id",
            [self._sql.array(ids)],
        )

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash → vector (float16[dimension], unit norm), for the texts embedded before."""
        rows = self._sql.with_keys(
            "SELECT hash, vector FROM z_embeddings WHERE hash {} AND model_id = ?",
            hashes,
            [model.id],
        )
        return dict(rows)


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
        MetaWriter(self._sql).put(f"{ENGLISH_UP_TO}{model.id}", "0")
        condition, values = self._sql.in_collections(collection_ids)
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
        shared.advance_vectors(self._sql, remade=True)

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
        rows = self._sql.run(
            "SELECT k.id, coalesce(k.next_hash, k.hash), d.collection_id, k.next_hash IS NOT NULL"
            f" FROM chunks k JOIN documents d ON d.id = k.document_id WHERE k.id {self._sql.among}",
            [self._sql.array(chunk_id for chunk_id, _ in chunks)],
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
            f"UPDATE chunks SET {column} = ? WHERE id {self._sql.among}",
            [model.id, self._sql.array(chunk_id for chunk_id, *_ in stored)],
        )
        if column == "model_id":
            shared.advance_vectors(self._sql)
        return len(stored)

    def _renumber(self, chunk_id: int) -> int:
        """
        Give a chunk whose vector is replaced another id: processes hold vectors by it.

        Returns:
            The new id; the chunk has the hash of its present text, and waits.
        """
        columns = f"{capabilities.document_rows.CHUNK_COLUMNS}, next_model_id"
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
        clauses: SQL after ``FROM chunks k JOIN documents d``.
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
            f"SELECT id, text FROM documents WHERE id {sql.among}",
            [sql.array({row[4] for row in rows})],
        ).fetchall()
    )
    return [
        ChunkText(chunk_id, digest, title, heading_path, texts[document_id][start:end])
        for chunk_id, digest, title, heading_path, document_id, start, end in rows
    ]


class StoredProjection(NamedTuple):
    """
    How the codes of a model's token states were made.

    Attributes:
        recipe: Names the projection and the form of the codes.
        code_bytes: The bytes of one token.
        data: The projection itself; empty if it is part of the program.
    """

    recipe: str
    code_bytes: int
    data: bytes


class Tokens(Capability):
    """Reads the codes of token states: of each embedded text one row, if it has been made."""

    def projection(self, model: StoredModel) -> StoredProjection | None:
        """How the codes of a model were made; None if none were made yet."""
        projections = self._sql.all(
            StoredProjection,
            "SELECT recipe, code_bytes, projection FROM z_token_projections WHERE model_id = ?",
            [model.id],
        )
        if projections and projections[0].code_bytes < 1:
            raise ValueError("codes of no bytes")  # `Store` looks for damage then
        return projections[0] if projections else None

    def of_chunks(
        self, model: StoredModel, chunk_ids: Sequence[int], recipe: str
    ) -> dict[int, bytes]:
        """
        Chunk id → codes of the text of the chunk.

        A chunk is left out if its codes are missing, were made by another recipe, or have an
        impossible length, which damage leaves.
        """
        projection = self.projection(model)
        if projection is None or projection.recipe != recipe:
            return {}
        dialect = self._sql.dialect
        rows = self._sql.run(
            "SELECT k.id, t.codes FROM chunks k"
            f" {dialect.first} z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" {dialect.first} z_token_states t ON t.embedding_id = e.id"
            f" WHERE k.id {dialect.among}",
            [model.id, dialect.array(chunk_ids)],
            as_binary=True,
        )
        return {
            chunk_id: codes
            for chunk_id, codes in rows
            if isinstance(codes, bytes) and len(codes) % projection.code_bytes == 0
        }

    def cached(self, model: StoredModel, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Hash of a text → codes, as `Embeddings.cached` has its vectors."""
        rows = self._sql.with_keys(
            "SELECT e.hash, t.codes FROM z_embeddings e"
            " JOIN z_token_states t ON t.embedding_id = e.id WHERE e.hash {} AND e.model_id = ?",
            hashes,
            [model.id],
        )
        return dict(rows)

    def texts(self, chunk_ids: Sequence[int]) -> list[ChunkText]:
        """These chunks with their texts, sorted by id; those that do not exist are left out."""
        return chunk_texts(
            self._sql, f" WHERE k.id {self._sql.among} ORDER BY k.id", [self._sql.array(chunk_ids)]
        )

    def waiting(
        self,
        model: StoredModel,
        limit: int,
        collection_ids: Sequence[int] = (),
        after: int = 0,
    ) -> list[ChunkText]:
        """
        Chunks that have a vector of this model but no token states, sorted by id.

        Args:
            limit: Return at most this many.
            collection_ids: Only chunks of these collections; empty for all.
            after: Only chunks with a greater id.

        Raises:
            ModelMismatchError: The model is neither the active nor the coming one.
        """
        clauses, values = self._waiting(model, collection_ids)
        return chunk_texts(
            self._sql,
            f"{clauses} AND k.id > ? ORDER BY k.id LIMIT ?",
            [*values, after, limit],
        )

    def after(self, model: StoredModel, chunk_id: int, limit: int) -> list[ChunkText]:
        """
        The chunks with a vector of this model that have a greater id, the first of them, by id.

        None comes after a chunk that still waits for its vector: that one would be passed over.
        """
        return chunk_texts(
            self._sql,
            " WHERE k.id > ? AND k.model_id = ? AND k.next_hash IS NULL AND k.id <"
            " (SELECT coalesce(min(id), ?) FROM chunks WHERE model_id IS NULL)"
            " ORDER BY k.id LIMIT ?",
            [chunk_id, model.id, _GREATEST_ID, limit],
        )

    def count_after(self, model: StoredModel, chunk_id: int) -> int:
        """How many chunks with a vector of this model have a greater id."""
        return self._sql.number(
            "SELECT count(*) FROM chunks WHERE id > ? AND model_id = ? AND next_hash IS NULL",
            [chunk_id, model.id],
        )

    def count_waiting(self, model: StoredModel, collection_ids: Sequence[int] = ()) -> int:
        """How many chunks `waiting` has; a scan of all chunks. Raises as `waiting`."""
        clauses, values = self._waiting(model, collection_ids)
        join = " JOIN documents d ON d.id = k.document_id" if collection_ids else ""
        return self._sql.number(f"SELECT count(*) FROM chunks k{join}{clauses}", values)

    def _waiting(
        self, model: StoredModel, collection_ids: Sequence[int]
    ) -> tuple[str, list[object]]:
        """Clauses for chunks ``k`` (of documents ``d``) that wait, and the values to bind."""
        column = Models(self._sql).chunk_column(model)
        clauses = (
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            f" WHERE k.{column} = ? AND k.next_hash IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM z_token_states t WHERE t.embedding_id = e.id)"
        )
        condition, values = self._sql.in_collections(collection_ids)
        return clauses + condition, [model.id, model.id, *values]

    def count(self) -> int:
        """How many chunks have token states of the active model; a scan of all chunks."""
        return self._sql.number(
            "SELECT count(*) FROM chunks k JOIN z_models m ON m.id = k.model_id AND m.active"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = m.id"
            " JOIN z_token_states t ON t.embedding_id = e.id"
        )

    def sample(self, most: int) -> list[ChunkText]:
        """At most so many chunks, with a vector or without, spread evenly over the index."""
        ids = self._sql.column("SELECT id FROM chunks ORDER BY id")
        step = max(1.0, len(ids) / most)
        chosen = [ids[int(place * step)] for place in range(min(most, len(ids)))]
        return self.texts(chosen)


class TokensWriter(Tokens):
    """Stores token states."""

    def begin(self, model: StoredModel, projection: StoredProjection) -> None:
        """Record how codes will be made. Codes that were made otherwise are dropped."""
        if self.projection(model) == projection:
            return
        self.forget(model)
        self._sql.run(
            "INSERT INTO z_token_projections (model_id, recipe, code_bytes, projection)"
            " VALUES (?, ?, ?, ?) ON CONFLICT (model_id) DO UPDATE SET recipe = excluded.recipe,"
            " code_bytes = excluded.code_bytes, projection = excluded.projection",
            [model.id, *projection],
        )

    def forget(self, model: StoredModel) -> None:
        """Drop all codes of a model."""
        MetaWriter(self._sql).put(f"{ENGLISH_UP_TO}{model.id}", "0")
        self._sql.run(
            "DELETE FROM z_token_states"
            " WHERE embedding_id IN (SELECT id FROM z_embeddings WHERE model_id = ?)",
            [model.id],
        )

    def put(self, model: StoredModel, codes: Mapping[bytes, bytes]) -> int:
        """
        Keep codes by the hash of their text, for texts that have a vector of this model.

        Returns:
            How many were stored.
        """
        ids = self._sql.with_keys(
            "SELECT hash, id FROM z_embeddings WHERE hash {} AND model_id = ?", codes, [model.id]
        )
        return self._sql.many(
            "INSERT INTO z_token_states (embedding_id, codes) VALUES (?, ?)"
            " ON CONFLICT (embedding_id) DO UPDATE SET codes = excluded.codes",
            [(embedding_id, codes[digest]) for digest, embedding_id in ids],
        )

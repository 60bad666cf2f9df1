"""
Keeps the vectors of chunks in a table of pgvector, if the server has this extension.

The table ``z_vectors`` holds copies of ``z_embeddings`` that the server can compare, one per chunk
and model. It is not made by a migration, because a server may lack the extension, or get it later:
whoever begins to embed makes the table, and fills it with the vectors that exist.

Names of the extension's schema are written before its types and operators, because
``search_path`` may not have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qmd import libraries
from qmd.store.postgres import scope
from qmd.store.postgres.library import Connection, stream
from qmd.store.postgres.rows import many
from qmd.store.sql.models import StoredModel

#: More dimensions do not fit in a page of 8 KiB, and so not in the table: such vectors are
#: compared by the program.
MAX_DIMENSION = 4000
_SCHEMA = (
    "SELECT quote_ident(n.nspname) FROM pg_extension e"
    " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
)


def schema(connection: Connection) -> str | None:
    """The schema of the extension, quoted; None if there is no table of vectors."""
    row = connection.execute(
        "SELECT quote_ident(n.nspname) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
        " JOIN pg_namespace n ON n.oid = t.typnamespace"
        " WHERE a.attrelid = to_regclass('z_vectors') AND a.attname = 'embedding'"
        " AND NOT a.attisdropped"
    ).fetchone()
    return None if row is None else str(row[0])


def version(connection: Connection) -> str | None:
    """The version of the extension in this database; None without a table of vectors."""
    if schema(connection) is None:
        return None
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    return None if row is None else str(row[0])


def prepare(connection: Connection) -> None:
    """Make the table, with the vectors that exist, if there is none and the server can."""
    if schema(connection) is not None:
        return
    from psycopg import errors

    row = connection.execute(_SCHEMA).fetchone()
    if row is None:
        available = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if connection.execute(available).fetchone() is None:
            return
        try:
            with connection.transaction():  # a savepoint
                connection.execute("CREATE EXTENSION vector")
        except errors.InsufficientPrivilege:
            return  # an administrator may make it later
        row = connection.execute(_SCHEMA).fetchone()
        assert row is not None  # just created
    had_views = scope.remove(connection)
    connection.execute("DROP TABLE IF EXISTS z_vectors")  # one that lost its column
    connection.execute(
        "CREATE TABLE z_vectors ("
        " chunk_id bigint NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,"
        " model_id bigint NOT NULL REFERENCES z_models(id) ON DELETE CASCADE,"
        " collection_id bigint NOT NULL REFERENCES collections(id) ON DELETE CASCADE,"
        f" embedding {row[0]}.halfvec NOT NULL,"
        " PRIMARY KEY (chunk_id, model_id))"
    )
    # In the rows themselves: a scan of vectors that are stored elsewhere takes longer.
    connection.execute("ALTER TABLE z_vectors ALTER COLUMN embedding SET STORAGE MAIN")
    connection.execute("CREATE INDEX vectors_collection ON z_vectors (collection_id)")
    connection.execute(
        "COMMENT ON TABLE z_vectors IS 'Copies of the vectors of chunks that pgvector compares,"
        " made from z_embeddings. You may drop this table (CASCADE): searches get slower, and"
        " the next ''qmd embed'' makes it again.'"
    )
    if had_views:
        scope.prepare(connection)
    _fill(connection)


def _fill(connection: Connection) -> None:
    """Copy the vectors of all chunks that have one."""
    columns = {"model_id": "k.hash", "next_model_id": "coalesce(k.next_hash, k.hash)"}
    for column, digest in columns.items():
        rows = stream(
            connection,
            f"SELECT k.id, e.model_id, d.collection_id, e.vector FROM chunks k"
            " JOIN documents d ON d.id = k.document_id"
            f" JOIN z_embeddings e ON e.hash = {digest} AND e.model_id = k.{column}",
            binary=True,
        )
        batch: list[tuple[object, ...]] = []
        for chunk_id, model_id, collection_id, vector in rows:
            batch.append((chunk_id, model_id, collection_id, text(vector)))
            if len(batch) == 1000:
                _insert(connection, batch)
                batch = []
        _insert(connection, batch)


def put(connection: Connection, model: StoredModel, rows: Iterable[tuple[int, int, bytes]]) -> None:
    """Store vectors, if there is a table: triples of chunk id, collection id and vector."""
    if model.dimension <= MAX_DIMENSION and schema(connection) is not None:
        _insert(
            connection,
            [(chunk, model.id, collection, text(vector)) for chunk, collection, vector in rows],
        )


def _insert(connection: Connection, rows: Sequence[Sequence[object]]) -> None:
    many(
        connection,
        "INSERT INTO z_vectors (chunk_id, model_id, collection_id, embedding)"
        " VALUES (%s, %s, %s, %s) ON CONFLICT (chunk_id, model_id)"
        " DO UPDATE SET embedding = excluded.embedding",
        rows,
    )


def renumber(connection: Connection, model_id: int, chunk_id: int, new_id: int) -> None:
    """Give a vector of a chunk to another chunk, if there is a table."""
    if schema(connection) is not None:
        connection.execute(
            "UPDATE z_vectors SET chunk_id = %s WHERE chunk_id = %s AND model_id = %s",
            [new_id, chunk_id, model_id],
        )


def remove(
    connection: Connection,
    model: StoredModel,
    condition: str = "true",
    values: Sequence[object] = (),
) -> None:
    """Remove the vectors of a model, or some of them, if there is a table."""
    if schema(connection) is not None:
        connection.execute(
            f"DELETE FROM z_vectors WHERE model_id = %s AND {condition}", [model.id, *values]
        )


def text(vector: bytes) -> str:
    """float16[dimension] → the form in which pgvector reads it; it loses nothing."""
    return str(
        libraries.np.frombuffer(vector, libraries.np.float16).astype(libraries.np.float64).tolist()
    )

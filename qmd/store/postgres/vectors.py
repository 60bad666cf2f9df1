"""
What PostgreSQL does for vectors: pgvector scans its copies, if the server has this extension.

The table ``z_vectors`` holds copies of ``z_embeddings`` that the server can compare, one per chunk
and model. It is not made by a migration, because a server may lack the extension, or get it later:
whoever begins to embed makes the table, and fills it with the vectors that exist.

A scan of 100,000 vectors of 384 dimensions takes the server 60 ms, an HNSW index 4 ms. That is
approximate, so it answers searches of everything only: with a filter it would miss much of what a
scan of the selected vectors finds.

Names of the extension's schema are written before its types and operators, because
``search_path`` may not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from qmd import libraries
from qmd.store.postgres import scope
from qmd.store.postgres.library import Connection
from qmd.store.sql import POSTGRES, Sql
from qmd.store.sql.models import Models, StoredModel
from qmd.store.sql.vectors import RoundedForm, pack_vectors, put_copies

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: More dimensions do not fit in a page of 8 KiB, and so not in the table: such vectors are
#: compared by the program.
MAX_DIMENSION = 4000
#: With fewer vectors a scan is fast enough.
LEAST_INDEXED = 100_000
#: For more of the nearest than this, the index would have to look at more than pgvector allows.
MOST_BY_INDEX = 500
_INDEX = "vectors_nearest_"
#: The exact vectors: the server's copies are no shorter.
ROUNDED = RoundedForm(
    "SELECT k.id, d.id, d.collection_id, e.vector FROM chunks k"
    " JOIN documents d ON d.id = k.document_id JOIN z_embeddings e ON e.hash = k.hash"
    " WHERE k.id > ? AND e.model_id = ? AND length(e.vector) = ? AND k.model_id IS NOT NULL"
    " ORDER BY k.id LIMIT ?",
    "float16",
    1,
)
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


def library(connection: Connection) -> str:
    """What compares vectors, with its version."""
    if schema(connection) is not None:
        row = connection.execute(
            "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        ).fetchone()
        if row is not None:
            return f"pgvector {row[0]}"
    return (
        f"numpy {libraries.np.__version__} (no pgvector): searches by meaning read all vectors."
        " To make them faster: CREATE EXTENSION vector, then 'qmd embed'"
    )


def nearest_ids(
    sql: Sql,
    model: StoredModel,
    query: NDArray[np.float32],
    k: int,
    condition: str,
    values: Sequence[object],
) -> Iterator[tuple[str, list[object]]]:
    """
    As `qmd.store.sql.vectors.Vectors.nearest`: SELECTs of chunk ids, and their values.

    One may give fewer than ``k`` where the next gives all; there are none without pgvector.
    """
    place = schema(sql.connection)
    if place is None or model.dimension > MAX_DIMENSION:
        return
    packed = copied(pack_vectors(query[None])[0])
    if not condition and k <= MOST_BY_INDEX and has_index(sql.connection, model):
        # More candidates than rows: the best ten of 100 are then nearly always those of a scan.
        sql.run(f"SET LOCAL hnsw.ef_search = {min(1000, max(200, 2 * k))}")
        sql.run("SET LOCAL hnsw.iterative_scan = relaxed_order")
        # No parameter stands for the model: a plan for any model could not use the index of one.
        yield (
            f"SELECT v.chunk_id FROM z_vectors v WHERE v.model_id = {model.id}"
            f" ORDER BY (v.{_compared(place, model)}) OPERATOR({place}.<#>)"
            f" ?::{place}.halfvec({model.dimension}) LIMIT {k}",
            [packed],
        )
    yield (
        f"SELECT v.chunk_id FROM z_vectors v WHERE v.model_id = ?{condition}"
        f" ORDER BY v.embedding OPERATOR({place}.<#>) ?::{place}.halfvec, v.chunk_id LIMIT ?",
        [model.id, *values, packed, k],
    )


def has_index(connection: Connection, model: StoredModel) -> bool:
    """Whether the index of a model is complete."""
    row = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
        [f"{_INDEX}{model.id}"],
    ).fetchone()
    return row is not None and bool(row[0])


def build_index(connection: Connection, least: int = LEAST_INDEXED) -> None:
    """
    Make the index of the active model, if it has at least so many vectors and no index.

    Others can write meanwhile. The connection must be outside a transaction.
    """
    sql = Sql(connection, POSTGRES)
    model, place = Models(sql).active(), schema(connection)
    if model is None or place is None or has_index(connection, model):
        return
    vectors = "SELECT count(*) FROM (SELECT 1 FROM z_vectors WHERE model_id = ? LIMIT ?) v"
    if model.dimension > MAX_DIMENSION or sql.number(vectors, [model.id, least]) < least:
        return
    # Those of earlier models, and one whose making was interrupted.
    for name in sql.column(
        "SELECT quote_ident(indexname) FROM pg_indexes WHERE schemaname = current_schema()"
        " AND tablename = 'z_vectors' AND starts_with(indexname, ?)",
        [_INDEX],
    ):
        sql.run(f"DROP INDEX CONCURRENTLY {name}")
    sql.run(
        f"CREATE INDEX CONCURRENTLY {_INDEX}{model.id} ON z_vectors"
        f" USING hnsw (({_compared(place, model)}) {place}.halfvec_ip_ops)"
        f" WHERE model_id = {model.id}"
    )


def _compared(place: str, model: StoredModel) -> str:
    """What is indexed: an index needs to know the dimension."""
    return f"embedding::{place}.halfvec({model.dimension})"


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
    _fill(Sql(connection, POSTGRES))


def _fill(sql: Sql) -> None:
    """Copy the vectors of all chunks that have one."""
    models = Models(sql)
    for model, column, digest in (
        (models.active(), "model_id", "k.hash"),
        (models.coming(), "next_model_id", "coalesce(k.next_hash, k.hash)"),
    ):
        if model is None:
            continue
        rows = sql.stream(
            "SELECT k.id, d.collection_id, e.vector FROM chunks k"
            " JOIN documents d ON d.id = k.document_id"
            f" JOIN z_embeddings e ON e.hash = {digest} AND e.model_id = k.{column}"
        )
        while batch := list(islice(rows, 1000)):
            put_copies(sql, model, batch)


def has_copies(connection: Connection, dimension: int = 0) -> bool:
    """Whether there is a table, which takes vectors of so many dimensions."""
    return dimension <= MAX_DIMENSION and schema(connection) is not None


def copied(vector: bytes) -> str:
    """float16[dimension] → the form in which pgvector reads it; it loses nothing."""
    return str(
        libraries.np.frombuffer(vector, libraries.np.float16).astype(libraries.np.float64).tolist()
    )

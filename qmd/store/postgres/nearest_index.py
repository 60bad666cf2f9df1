"""
Keeps an HNSW index of pgvector over many vectors, where a scan of all of them is slow.

A scan of 100,000 vectors of 384 dimensions takes the server 60 ms, the index 4 ms. The index is
approximate, so it answers searches of everything only: with a filter it would miss much of what a
scan of the selected vectors finds.
"""

from __future__ import annotations

from qmd.store.postgres import pgvector
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.store.sql import POSTGRES, Sql
from qmd.store.sql.models import Models, StoredModel

#: With fewer vectors a scan is fast enough.
LEAST = 100_000
#: For more of the nearest than this, the index would have to look at more than pgvector allows.
MOST_NEAREST = 500
_PREFIX = "vectors_nearest_"


def exists(connection: Connection, model: StoredModel) -> bool:
    """Whether the index of a model is complete."""
    row = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
        [f"{_PREFIX}{model.id}"],
    ).fetchone()
    return row is not None and bool(row[0])


def build(connection: Connection, least: int) -> None:
    """
    Make the index of the active model, if it has at least so many vectors and no index.

    Others can write meanwhile. The connection must be outside a transaction.
    """
    model, schema = Models(Sql(connection, POSTGRES)).active(), pgvector.schema(connection)
    if model is None or schema is None or exists(connection, model):
        return
    held = "SELECT count(*) FROM (SELECT 1 FROM z_vectors WHERE model_id = %s LIMIT %s) v"
    if model.dimension > pgvector.MAX_DIMENSION or least > int(
        one(connection, held, [model.id, least])[0]
    ):
        return
    # Those of earlier models, and one whose making was interrupted.
    for (name,) in connection.execute(
        "SELECT quote_ident(indexname) FROM pg_indexes WHERE schemaname = current_schema()"
        " AND tablename = 'z_vectors' AND starts_with(indexname, %s)",
        [_PREFIX],
    ).fetchall():
        connection.execute(f"DROP INDEX CONCURRENTLY {name}")
    connection.execute(
        f"CREATE INDEX CONCURRENTLY {_PREFIX}{model.id} ON z_vectors"
        f" USING hnsw (({_compared(schema, model)}) {schema}.halfvec_ip_ops)"
        f" WHERE model_id = {model.id}"
    )


def nearest_ids(connection: Connection, schema: str, model: StoredModel, k: int) -> str:
    """
    SQL for the ids of the nearest ``k`` chunks, by the index; it takes the vector of the query.

    Fewer come back only in rare cases, where many vectors were deleted.
    """
    # More candidates than rows: the best ten of 100 are then nearly always those of a scan.
    connection.execute(f"SET LOCAL hnsw.ef_search = {min(1000, max(200, 2 * k))}")
    connection.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
    # No parameter stands for the model: a plan for any model could not use the index of one.
    return (
        f"SELECT v.chunk_id FROM z_vectors v WHERE v.model_id = {model.id}"
        f" ORDER BY (v.{_compared(schema, model)}) OPERATOR({schema}.<#>)"
        f" %s::{schema}.halfvec({model.dimension}) LIMIT {k}"
    )


def _compared(schema: str, model: StoredModel) -> str:
    """What is indexed: an index needs to know the dimension."""
    return f"embedding::{schema}.halfvec({model.dimension})"

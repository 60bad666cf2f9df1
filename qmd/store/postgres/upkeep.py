"""What PostgreSQL does for `qmd.store.sql.upkeep`."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.sql import Sql, shared
from qmd.store.sql.upkeep import LEFTOVERS_OF_ALL, Leftovers

#: What `cleanup` removes.
LEFTOVERS = (
    Leftovers(
        "cached vectors of texts that are gone",
        "z_embeddings",
        "NOT EXISTS (SELECT 1 FROM chunks k WHERE k.hash = z_embeddings.hash)"
        " AND hash NOT IN (SELECT next_hash FROM chunks WHERE next_hash IS NOT NULL)",
    ),
    Leftovers(
        "vectors of models that are not in use",
        "z_embeddings",
        "model_id IN (SELECT id FROM z_models WHERE NOT active AND NOT next)"
        " AND EXISTS (SELECT 1 FROM chunks k WHERE k.hash = z_embeddings.hash)",
    ),
    *LEFTOVERS_OF_ALL,
)
#: The bytes of the database.
SIZE = "SELECT pg_database_size(current_database())"


def state_of_chunks(sql: Sql) -> object | None:
    """A value that differs after chunks came, went or got vectors; None in a scope."""
    if sql.is_scoped:
        return None
    state: object = sql.first(
        "SELECT (SELECT max(id) FROM z_document_changes), (SELECT max(id) FROM chunks),"
        " (SELECT value FROM z_meta WHERE key = ?)",
        [shared.VECTORS],
    )
    return state


def out_of_step(sql: Sql) -> dict[str, int]:
    """Nothing: the postings of a document belong to its row."""
    return {}


def filling_order(rows: Sequence[Sequence[object]]) -> Sequence[int]:
    """As `qmd.store.sqlite.upkeep.filling_order`."""
    return range(len(rows))

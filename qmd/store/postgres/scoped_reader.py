"""What differs for a client with a scope beyond the rows that it sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from qmd.errors import ScopeError
from qmd.store.postgres.full_text import PostgresFullText
from qmd.store.postgres.rows import one
from qmd.store.postgres.upkeep import PostgresUpkeep
from qmd.store.postgres.vectors import PostgresVectors

if TYPE_CHECKING:
    from qmd.store.sql.models import StoredModel


class ScopedPostgresFullText(PostgresFullText):
    def _totals(self) -> tuple[int, float]:
        return self._totals_of_scope

    @cached_property
    def _totals_of_scope(self) -> tuple[int, float]:
        # The server counts the documents of the scope for it.
        return super()._totals()


class ScopedPostgresVectors(PostgresVectors):
    def sample(self, model: StoredModel, most: int) -> list[bytes]:
        # The table of exact vectors does not say whose text one is of, so chunks are sampled.
        rows = self._connection.execute(
            "SELECT e.vector FROM chunks k"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = %s"
            " WHERE k.model_id IS NOT NULL ORDER BY k.hash LIMIT %s",
            [model.id, most],
            binary=True,
        )
        return [vector for (vector,) in rows]


class ScopedPostgresUpkeep(PostgresUpkeep):
    def size_bytes(self) -> int:
        """The bytes of the texts in the scope: the size of the database would tell of others."""
        sql = "SELECT coalesce(sum(bytes), 0) FROM documents"
        return int(one(self._connection, sql)[0])

    def count_leftovers(self) -> dict[str, int]:
        """Empty: they belong to no collection."""
        return {}

    def problems(self, progress: Callable[[int, int, str], object] | None = None) -> list[str]:
        raise ScopeError

    def copy_to(
        self,
        target: Path,
        *,
        replace: bool,
        progress: Callable[[int, int], object] | None = None,
    ) -> NoReturn:
        raise ScopeError

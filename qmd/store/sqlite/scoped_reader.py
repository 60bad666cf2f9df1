"""A snapshot as a client with a scope sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ScopeError
from qmd.store.sqlite.reader import SqliteReader
from qmd.store.sqlite.scoped_full_text import ScopedFullText
from qmd.store.sqlite.upkeep import SqliteUpkeep
from qmd.store.sqlite.vectors import SqliteVectors

if TYPE_CHECKING:
    from qmd.store.full_text import FullText
    from qmd.store.models import StoredModel


class ScopedSqliteReader(SqliteReader):
    """A snapshot on a connection that `qmd.store.sqlite.scope` has restricted."""

    @cached_property
    def full_text(self) -> FullText:  # type: ignore[override]
        return ScopedFullText(self.connection)

    @cached_property
    def vectors(self) -> SqliteVectors:
        return _ScopedVectors(self.connection)

    @cached_property
    def upkeep(self) -> SqliteUpkeep:
        return _ScopedUpkeep(self.connection)


class _ScopedVectors(SqliteVectors):
    def sample(self, model: StoredModel, most: int) -> list[bytes]:
        # The table of exact vectors does not say whose text one is of, so chunks are sampled.
        count = self.count_chunks()
        step = max(1, count // max(1, most))
        rows = self._connection.execute(
            "SELECT e.vector FROM chunks k"
            " JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = ?"
            " WHERE k.model_id IS NOT NULL AND k.id % ? = 0 LIMIT ?",
            [model.id, step, most],
        )
        return [vector for (vector,) in rows]


class _ScopedUpkeep(SqliteUpkeep):
    def size_bytes(self) -> int:
        """The bytes of the texts in the scope: the size of the file would tell of the others."""
        (size,) = self._connection.execute("SELECT total(bytes) FROM documents").fetchone()
        return int(size)

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
    ) -> int:
        raise ScopeError

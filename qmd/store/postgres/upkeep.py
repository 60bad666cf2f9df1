"""Counts rows for `status`, and does the work of `cleanup` and `doctor` on the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from weakref import WeakKeyDictionary

from qmd.errors import ServerDatabaseError
from qmd.store.postgres import migrate
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.store.sql import Sql, vector_state
from qmd.store.upkeep import MOST_COMPARED, Counts

#: What `cleanup` removes: a name for people, the table and the condition.
_LEFTOVERS = (
    (
        "cached vectors of texts that are gone",
        "z_embeddings",
        "NOT EXISTS (SELECT 1 FROM chunks k WHERE k.hash = z_embeddings.hash)"
        " AND hash NOT IN (SELECT next_hash FROM chunks WHERE next_hash IS NOT NULL)",
    ),
    (
        "vectors of models that are not in use",
        "z_embeddings",
        "model_id IN (SELECT id FROM z_models WHERE NOT active AND NOT next)"
        " AND EXISTS (SELECT 1 FROM chunks k WHERE k.hash = z_embeddings.hash)",
    ),
    ("models that are not in use", "z_models", "NOT active AND NOT next"),
)


#: Connection → the state of the chunks, and how many texts waited for vectors then.
_waiting: WeakKeyDictionary[Connection, tuple[tuple[object, ...], int]] = WeakKeyDictionary()


class PostgresUpkeep:
    """`qmd.store.upkeep.Upkeep` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def counts(self) -> Counts:
        documents = self._count("SELECT count(*) FROM documents")
        chunks = self.count_chunks()
        embedded = chunks - self.count_chunks_waiting()
        outdated = self._count(
            "SELECT count(*) FROM chunks WHERE next_hash IS NOT NULL AND model_id IS NOT NULL"
        )
        return Counts(documents, chunks, embedded, outdated, self.count_contents_waiting())

    def count_chunks(self) -> int:
        return self._count("SELECT count(*) FROM chunks")

    def count_chunks_waiting(self) -> int:
        return self._count("SELECT count(*) FROM chunks WHERE model_id IS NULL")

    def size_bytes(self) -> int:
        return self._count("SELECT pg_database_size(current_database())")

    def count_contents_waiting(self) -> int:
        # Counting those of 300,000 chunks takes a quarter of a second, and most searches come when
        # nothing has changed since the last on their connection.
        state = self._state_of_chunks()
        if state is not None and _waiting.get(self._connection, (None, 0))[0] == state:
            return _waiting[self._connection][1]
        count = self._count(
            "SELECT count(*) FROM (SELECT DISTINCT document_id FROM chunks"
            " WHERE model_id IS NULL) AS waiting"
        )
        if 1 < count <= MOST_COMPARED:
            count = self._count(
                "SELECT count(DISTINCT d.hash) FROM documents d WHERE d.id IN"
                " (SELECT document_id FROM chunks WHERE model_id IS NULL)"
            )
        if state is not None:
            _waiting[self._connection] = state, count
        return count

    def _state_of_chunks(self) -> tuple[object, ...] | None:
        """A value that differs after chunks came, went or got vectors; None in a scope."""
        scope, *state = one(
            self._connection,
            "SELECT nullif(current_setting('qmd.collection_ids', true), ''),"
            " (SELECT max(id) FROM z_document_changes), (SELECT max(id) FROM chunks),"
            " (SELECT value FROM z_meta WHERE key = %s)",
            [vector_state.KEY],
        )
        return tuple(state) if scope is None else None

    def count_leftovers(self) -> dict[str, int]:
        return {
            name: self._count(f"SELECT count(*) FROM {table} WHERE {condition}")
            for name, table, condition in _LEFTOVERS
        }

    def problems(self, progress: Callable[[int, int, str], object] | None = None) -> list[str]:
        """None that this program could see: the server checks its own files."""
        return []

    def migrations(self) -> list[str]:
        return migrate.applied(self._connection)

    def has_misplaced_vectors(self) -> bool:
        return False

    def copy_to(
        self,
        target: Path,
        *,
        replace: bool,
        progress: Callable[[int, int], object] | None = None,
    ) -> NoReturn:
        raise ServerDatabaseError(
            "qmd backs up database files; this database is on a server.",
            hint="Use the server's own tools: pg_dump -Fc URL > FILE, and pg_restore to put it"
            " back. See docs/postgresql.md.",
        )

    def _count(self, sql: str) -> int:
        return int(one(self._connection, sql)[0])


class PostgresUpkeepWriter(PostgresUpkeep):
    """`qmd.store.upkeep.UpkeepWriter` in PostgreSQL."""

    def remove_leftovers(
        self, progress: Callable[[int, int, str], object] | None = None
    ) -> dict[str, int]:
        removed: dict[str, int] = {}
        tell = progress or (lambda done, total, subject: None)
        for name, table, condition in _LEFTOVERS:  # what one removes may leave more for the next
            tell(len(removed), len(_LEFTOVERS) + 1, name)
            cursor = self._connection.execute(f"DELETE FROM {table} WHERE {condition}")
            removed[name] = cursor.rowcount
        vector_state.advance(self._sql)
        return removed

    def remove_misplaced_vectors(self) -> None:
        """There are none."""

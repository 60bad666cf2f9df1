"""Counts rows for `status`, and does the work of `cleanup` and `doctor` on the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from qmd import libraries
from qmd.store import sqlite
from qmd.store.sql import Sql, vector_state
from qmd.store.sqlite import migrate
from qmd.store.sqlite.disk_space import require_free, temporary_directory
from qmd.store.sqlite.library import Connection, ReadingConnection
from qmd.store.upkeep import MOST_COMPARED, Counts

if TYPE_CHECKING:
    from sqlite_utils import Database
    from sqlite_utils.db import Table

#: What `cleanup` removes: a name for people, the table and the condition.
_LEFTOVERS = (
    (
        "cached vectors of texts that are gone",
        "z_embeddings",
        # Both are sorted and compared. NOT IN would put the hashes of all chunks into a tree, in no
        # order, which is slower and slower beyond SQLite's cache. Without the limit, SQLite would
        # drop the order and use a tree, too.
        "hash IN (SELECT hash FROM (SELECT hash FROM z_embeddings"
        " EXCEPT SELECT hash FROM chunks EXCEPT SELECT next_hash FROM chunks"
        " WHERE next_hash IS NOT NULL ORDER BY 1 LIMIT -1))",
    ),
    (
        "vectors of models that are not in use",
        "z_embeddings",
        # Without the sign SQLite would look up each chunk, and mostly there is no such model.
        "model_id NOT IN (SELECT id FROM z_models WHERE active OR next)"
        " AND +hash IN (SELECT hash FROM chunks)",
    ),
    ("models that are not in use", "z_models", "NOT active AND NOT next"),
    # Only what was deleted by hand, with triggers switched off, leaves such rows behind.
    ("vectors without a chunk", "z_vectors", "chunk_id NOT IN (SELECT id FROM chunks)"),
    (
        "token states without a vector",
        "z_token_states",
        "embedding_id NOT IN (SELECT id FROM z_embeddings)",
    ),
)
#: Pages of full text that one transaction merges; it takes 40 ms, in which nobody else can write.
_MERGED_PAGES = 1000
#: A file of this size is written anew only if this share of it is free.
LARGE_BYTES, LEAST_FREE_SHARE = 1 << 30, 0.02
#: How long the end of `compact` waits for readers of the log.
LOG_PATIENCE_MS = 1000
_UNMATCHED = "full-text rows out of step with their documents"


def _database(connection: Connection) -> Database:
    """What sqlite-utils does stands in the transaction that is open, as all else."""
    return libraries.sqlite_utils.Database(connection, use_counts_table=False)


def _table(connection: Connection, name: str) -> Table:
    return cast("Table", _database(connection)[name])


def compact(connection: Connection) -> None:
    """
    Give free pages back to the disk. Not inside a transaction.

    A large file is written anew only if that gives back a part of it that is worth the time.

    Raises DiskFullError: The disk has no room for a second copy; said before it begins.
    """
    pages, page_size, free, file = connection.execute(
        "SELECT page_count, page_size, freelist_count, file FROM pragma_page_count,"
        " pragma_page_size, pragma_freelist_count, pragma_database_list WHERE name = 'main'"
    ).fetchone()
    if pages * page_size < LARGE_BYTES or free > pages * LEAST_FREE_SHARE:
        # VACUUM writes a copy to a temporary file, and then all of it to the log.
        live = (pages - free) * page_size
        folder, temporary = Path(file).parent, temporary_directory()
        needs = {folder: live}
        needs[temporary] = needs.get(temporary, 0) + live
        require_free(needs, "Cleaning up")
        _database(connection).vacuum()
    _empty_log(connection)


def _empty_log(connection: Connection) -> None:
    """
    Move the log into the file, and give its space back if nobody reads it.

    A program that replicates the file reads its log all the time: waiting for it would take as
    long as the busy timeout, and be in vain.
    """
    (patience_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {LOG_PATIENCE_MS}")
    try:
        (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience_ms}")


def merge_full_text(connection: Connection, *, is_first: bool) -> bool:
    """
    Begin (``is_first``) or continue to merge the segments of full text.

    Returns whether more may be left: https://www.sqlite.org/fts5.html#the_merge_command
    """
    before = connection.total_changes
    connection.execute(
        "INSERT INTO z_documents_fts (z_documents_fts, rank) VALUES ('merge', ?)",
        [-_MERGED_PAGES if is_first else _MERGED_PAGES],
    )
    return connection.total_changes - before > 1


class SqliteUpkeep:
    """`qmd.store.upkeep.Upkeep` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def counts(self) -> Counts:
        (documents,) = self._connection.execute("SELECT count(*) FROM documents").fetchone()
        chunks = self.count_chunks()
        embedded = chunks - self.count_chunks_waiting()
        (outdated,) = self._connection.execute(
            "SELECT count(*) FROM chunks WHERE next_hash IS NOT NULL AND model_id IS NOT NULL"
        ).fetchone()
        return Counts(documents, chunks, embedded, outdated, self.count_contents_waiting())

    def count_chunks(self) -> int:
        row = self._connection.execute("SELECT count(*) FROM chunks").fetchone()
        return int(row[0])

    def count_chunks_waiting(self) -> int:
        row = self._connection.execute(
            "SELECT count(*) FROM chunks WHERE model_id IS NULL"
        ).fetchone()
        return int(row[0])

    def size_bytes(self) -> int:
        pages, page_size = self._connection.execute(
            "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"
        ).fetchone()
        return int(pages * page_size)

    def count_contents_waiting(self) -> int:
        if not isinstance(self._connection, ReadingConnection):
            return self._count_now()
        # Counting 10,000 takes 2 ms, and most searches come when nobody has written since the last.
        # The first number moves with what others commit, the second with what is done here.
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        state = (int(version), self._connection.total_changes)
        if self._connection.waiting is None or self._connection.waiting[0] != state:
            self._connection.waiting = (state, self._count_now())
        return self._connection.waiting[1]

    def _count_now(self) -> int:
        (documents,) = self._connection.execute(
            "SELECT count(*) FROM (SELECT DISTINCT document_id FROM chunks WHERE model_id IS NULL)"
        ).fetchone()
        if not 1 < documents <= MOST_COMPARED:
            return int(documents)
        (contents,) = self._connection.execute(
            "SELECT count(DISTINCT d.hash) FROM documents d WHERE d.id IN"
            " (SELECT document_id FROM chunks WHERE model_id IS NULL)"
        ).fetchone()
        return int(contents)

    def count_leftovers(self) -> dict[str, int]:
        counts = {
            name: _table(self._connection, table).count_where(condition)
            for name, table, condition in _LEFTOVERS
        }
        return counts | {_UNMATCHED: self._unmatched()}

    def _unmatched(self) -> int:
        """Rows of the full-text index without a text, and texts without a row."""
        row = self._connection.execute(
            "SELECT (SELECT count(*) FROM z_documents_fts_docsize"
            "        WHERE id NOT IN (SELECT document_id FROM z_searchable)),"
            " (SELECT count(*) FROM z_searchable"
            "        WHERE document_id NOT IN (SELECT id FROM z_documents_fts_docsize))"
        ).fetchone()
        return int(sum(row))

    def problems(self, progress: Callable[[int, int, str], object] | None = None) -> list[str]:
        return sqlite.damage.first_problems(self._connection, progress)

    def migrations(self) -> list[str]:
        return migrate.applied(self._connection)

    def has_misplaced_vectors(self) -> bool:
        return migrate.has_misplaced_vectors(self._connection)

    def copy_to(
        self,
        target: Path,
        *,
        replace: bool,
        progress: Callable[[int, int], object] | None = None,
    ) -> int:
        return sqlite.copies.copy(self._connection, target, replace=replace, progress=progress)


class SqliteUpkeepWriter(SqliteUpkeep):
    """`qmd.store.upkeep.UpkeepWriter` in SQLite."""

    def remove_leftovers(
        self, progress: Callable[[int, int, str], object] | None = None
    ) -> dict[str, int]:
        removed: dict[str, int] = {}
        tell = progress or (lambda done, total, subject: None)
        steps = len(_LEFTOVERS) + 2  # with full text and the free space
        for name, table, condition in _LEFTOVERS:  # what one removes may leave more for the next
            tell(len(removed), steps, name)
            leftovers = _table(self._connection, table)
            removed[name] = leftovers.count_where(condition)
            leftovers.delete_where(condition)
        tell(len(removed), steps, _UNMATCHED)
        removed[_UNMATCHED] = self._unmatched()
        if removed[_UNMATCHED]:
            _table(self._connection, "z_documents_fts").rebuild_fts()
        vector_state.advance(self._sql)
        return removed

    def remove_misplaced_vectors(self) -> None:
        migrate.remove_misplaced_vectors(self._connection)

"""
Does for SQLite what `qmd.store.sql.upkeep` asks, and orders new rows so that they fill its pages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from qmd import libraries
from qmd.records import NamedTuple
from qmd.store.sql import Sql
from qmd.store.sql.upkeep import LEFTOVERS_OF_ALL, Leftovers
from qmd.store.sqlite.disk_space import require_free, temporary_directory
from qmd.store.sqlite.library import Connection, ReadingConnection

if TYPE_CHECKING:
    from sqlite_utils import Database
    from sqlite_utils.db import Table


#: What `cleanup` removes.
LEFTOVERS = (
    Leftovers(
        "cached vectors of texts that are gone",
        "z_embeddings",
        # Both are sorted and compared. NOT IN would put the hashes of all chunks into a tree, in no
        # order, which is slower and slower beyond SQLite's cache. Without the limit, SQLite would
        # drop the order and use a tree, too.
        "hash IN (SELECT hash FROM (SELECT hash FROM z_embeddings"
        " EXCEPT SELECT hash FROM chunks EXCEPT SELECT next_hash FROM chunks"
        " WHERE next_hash IS NOT NULL ORDER BY 1 LIMIT -1))",
    ),
    Leftovers(
        "vectors of models that are not in use",
        "z_embeddings",
        # Without the sign SQLite would look up each chunk, and mostly there is no such model.
        "model_id NOT IN (SELECT id FROM z_models WHERE active OR next)"
        " AND +hash IN (SELECT hash FROM chunks)",
    ),
    *LEFTOVERS_OF_ALL,
    # Only what was deleted by hand, with triggers switched off, leaves such rows behind.
    Leftovers("vectors without a chunk", "z_vectors", "chunk_id NOT IN (SELECT id FROM chunks)"),
    Leftovers(
        "token states without a vector",
        "z_token_states",
        "embedding_id NOT IN (SELECT id FROM z_embeddings)",
    ),
)
#: Pages of full text that one transaction merges; it takes 40 ms, in which nobody else can write.
_MERGED_PAGES = 1000
#: A file of this size is written anew only if this share of it is free.
LARGE_BYTES, LEAST_FREE_SHARE = 1 << 30, 0.02
#: A file of an earlier version is written anew by itself if this share of it is free, and if what
#: stays has not more bytes: some SQLite libraries hold all of them in memory then.
UNASKED_FREE_SHARE, UNASKED_BYTES = 0.1, 256 << 20
#: Pages that one transaction gives back, in 20 ms.
_PAGES_GIVEN_BACK = 1000
#: How long the end of `compact` waits for readers of the log.
LOG_PATIENCE_MS = 1000
#: The bytes of the database.
SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"


def _database(connection: Connection) -> Database:
    """What sqlite-utils does stands in the transaction that is open, as all else."""
    return libraries.sqlite_utils.Database(connection, use_counts_table=False)


def compact(connection: Connection) -> None:
    """
    Give free pages back to the disk. Not inside a transaction.

    A large file is written anew only if that gives back a part of it that is worth the time.

    Raises DiskFullError: The disk has no room for a second copy; said before it begins.
    """
    pages, page_size, free, _, file = _space(connection)
    if pages * page_size < LARGE_BYTES or free > pages * LEAST_FREE_SHARE:
        # VACUUM writes a copy to a temporary file, and then all of it to the log.
        live = (pages - free) * page_size
        folder, temporary = Path(file).parent, temporary_directory()
        needs = {folder: live}
        needs[temporary] = needs.get(temporary, 0) + live
        require_free(needs, "Cleaning up")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # files of 1.7.0 and before lack it
        _database(connection).vacuum()
    _empty_log(connection)


class _Space(NamedTuple):
    """The pages of a file in all, their size in bytes, and how many are free."""

    pages: int
    page_size: int
    free: int
    auto_vacuum: int
    file: str


def _space(connection: Connection) -> _Space:
    row = connection.execute(
        "SELECT page_count, page_size, freelist_count, auto_vacuum, file FROM pragma_page_count,"
        " pragma_page_size, pragma_freelist_count, pragma_auto_vacuum, pragma_database_list"
        " WHERE name = 'main'"
    ).fetchone()
    return _Space(*row)


def is_worth_compacting(connection: Connection) -> bool:
    """Whether a file of an earlier version has so much free space that `compact` need not wait."""
    space = _space(connection)
    live = (space.pages - space.free) * space.page_size
    is_free = space.free > space.pages * UNASKED_FREE_SHARE
    return not space.auto_vacuum and is_free and live <= UNASKED_BYTES


def give_back(connection: Connection) -> bool:
    """Take some free pages off the end of the file. Returns whether more are left."""
    before = _space(connection)
    connection.execute(f"PRAGMA incremental_vacuum({_PAGES_GIVEN_BACK})").fetchall()
    return before.auto_vacuum > 0 and before.free > _PAGES_GIVEN_BACK


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


def state_of_chunks(sql: Sql) -> object | None:
    """A value that differs after anything was written; None for a connection that writes."""
    connection = sql.connection
    return connection.state() if isinstance(connection, ReadingConnection) else None


def out_of_step(sql: Sql) -> dict[str, int]:
    """Rows of the full-text index without a text, and texts without a row, by what they are."""
    count = sql.number(
        "SELECT (SELECT count(*) FROM z_documents_fts_docsize"
        "        WHERE id NOT IN (SELECT document_id FROM z_searchable))"
        " + (SELECT count(*) FROM z_searchable"
        "        WHERE document_id NOT IN (SELECT id FROM z_documents_fts_docsize))"
    )
    return {"full-text rows out of step with their documents": count}


def rebuild_full_text(connection: Connection) -> None:
    """Make the index anew from the texts."""
    cast("Table", _database(connection)["z_documents_fts"]).rebuild_fts()


# --- the order of new rows --------------------------------------------------------------
# What a long row has left over its last full page lies beside other rows, between 500 and 4,000
# bytes of it. In the order in which documents come, a sixth of all pages stays empty.

PAGE_BYTES = 4096
#: What a page has for the cells of rows, each with its number and its place in the page. SQLite
#: keeps so much of a row beside others, at most and at least: https://sqlite.org/fileformat2.html
_ROOM, _CELL = PAGE_BYTES - 8, 12
_MOST, _LEAST = PAGE_BYTES - 35, (PAGE_BYTES - 12) * 32 // 255 - 23
#: Shorter rows stay in order: they fill pages by themselves, and those of equal scores are common.
_SHORT = 1000


def filling_order(rows: Sequence[Sequence[object]]) -> list[int]:
    """
    The positions of rows in the order in which they fill pages; those of one size stay in order.

    A page gets the first row that is left, then the largest that still fit.
    """
    sizes = [_beside_others(_record_bytes(row)) for row in rows]
    left = sorted((size, -position) for position, size in enumerate(sizes) if size >= _SHORT)
    order: list[int] = []
    room, first = 0, 0
    placed = [False] * len(rows)
    while first < len(rows):
        fitting = bisect_right(left, (room, 0))
        if fitting:
            # Of one size the first: its negative position is the greatest.
            size, position = left.pop(fitting - 1)
            position = -position
        else:
            while first < len(rows) and placed[first]:
                first += 1
            if first == len(rows):
                break
            position, size = first, sizes[first]
            if size >= _SHORT:
                del left[bisect_left(left, (size, -position))]
            if size > room:
                room = _ROOM
        placed[position] = True
        order.append(position)
        room -= size
    return order


def _beside_others(record: int) -> int:
    """The bytes of a row that lie in a page with others."""
    if record > _MOST:
        rest = _LEAST + (record - _LEAST) % (PAGE_BYTES - 4)
        record = rest if rest <= _MOST else _LEAST
    return record + _CELL


def _record_bytes(row: Sequence[object]) -> int:
    """The bytes of a row as SQLite writes it: a header with the types, and the values."""
    total = 4
    for value in row:
        if isinstance(value, str):
            size = len(value) if value.isascii() else len(value.encode())
            total += size + (1 if size < 58 else 2 if size < 8186 else 3)
        elif isinstance(value, int):
            total += 1 + min((value.bit_length() + 8) // 8, 8)
        else:
            total += 1
    return total

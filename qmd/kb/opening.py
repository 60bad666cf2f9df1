"""
Opens the store of a database; and `search_once`, for a process that asks nothing else.

What a knowledge base can do besides would take such a process a tenth of its time to load.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, ingest, search, values
from qmd.store import Store, open_store
from qmd.store.sql.shared import KEEPER
from qmd.values.location import DatabaseLocation, ServerDatabase, as_location

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import ProgressCallback, SearchReply, SearchRequest


def opened_store(
    path: str | Path | ServerDatabase,
    replica: DatabaseLocation | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    progress: ProgressCallback | None = None,
) -> Store:
    """Open a store, without what a process has left in it that died. As `KnowledgeBase.open`."""
    store = open_store(
        as_location(path),
        replica,
        create=create,
        read_only=read_only,
        progress=None if progress is None else _migrating(progress),
    )
    try:
        _remove_abandoned_files(store)
    except BaseException:
        store.close()
        raise
    return store


def search_once(path: Path | ServerDatabase, request: SearchRequest) -> tuple[SearchReply, bool]:
    """
    Open a database, search it by words, and close it.

    Returns:
        The reply of `KnowledgeBase.search`, except that it does not say how many texts wait for
        vectors: counting them takes as long as the rest of a search. And if it has no hits, whether
        files are being indexed just now.

    Raises:
        The errors of `KnowledgeBase.open` and `KnowledgeBase.search`.
    """
    store = opened_store(path, read_only=True)
    try:
        with store.reading() as reader:
            reply = search.searches.search_by_words(reader, request)
            return reply, not reply.hits and _is_indexing(store, reader)
    finally:
        store.close()


def _is_indexing(store: Store, reader: Reader) -> bool:
    # What tells whether the process of a record runs takes long to load.
    if '"indexing": true' not in (reader.meta.get(KEEPER) or ""):
        return False
    is_indexing, _ = ingest.keep.freshness.activity(store, reader)
    return is_indexing


def _migrating(progress: ProgressCallback) -> Callable[[int, int, str], None]:
    def tick(done: int, total: int, name: str) -> None:
        progress(values.Progress("migrate", done, total, name))

    return tick


def _remove_abandoned_files(store: Store) -> None:
    """Remove the temporary files of processes that died while they wrote; usually none."""
    with store.reading() as reader:
        if not reader.pending.all():
            return
    files.writing.writer.clean_up(store)

"""Indexing: once, or from now on in the background; and why a file is a document or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import StoreError
from qmd.kb.collections import select_collections
from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from qmd.ingest.keep.keeper import Keeper
    from qmd.values import Explanation, Freshness, IndexReport, ProgressCallback


class IndexingMethods(Parts):
    def index(
        self,
        collections: Sequence[str] = (),
        *,
        verify: bool = False,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """
        Bring the store in line with the disk; may be interrupted and repeated at any time.

        Args:
            collections: Names; none for all.
            verify: Read also the files that look unchanged.

        Raises:
            CollectionNotFoundError, DatabaseBusyError, DiskFullError. A collection whose
            directory cannot be read is listed in ``report.errors``, and keeps its documents.
        """
        from qmd.ingest.index import index_collections

        store = self._store
        return index_collections(
            store,
            select_collections(store, collections),
            verify=verify,
            progress=progress,
            events=self._events,
        )

    def update(
        self, *, pull: bool = False, progress: ProgressCallback | None = None
    ) -> IndexReport:
        """
        Fetch and fast-forward each collection that is a git work tree (if ``pull``), then `index`.

        No program that a work tree names is run; ``errors`` lists what was not pulled for that.
        """
        from qmd.ingest import git_pull
        from qmd.ingest.index import index_collections

        store = self._store
        collections = select_collections(store, ())
        problems = git_pull.pull(collections) if pull else []
        return index_collections(
            store, collections, problems=problems, progress=progress, events=self._events
        )

    def why(self, path: str | Path) -> Explanation:
        """
        Is this file a document, and if not, which rule says so?

        Args:
            path: On the disk, or ``collection/path``, or ``qmd://…``.
        """
        from qmd.ingest import why

        with self._store.reading() as reader:
            return why.explain_path(reader, str(path))

    def keep(
        self,
        *,
        watch: bool = True,
        embed: bool = True,
        polling: bool = False,
        poll_s: float = 2.0,
        reconcile_s: float = 600.0,
    ) -> Keeper:
        """
        Begin to keep the index true to the disk, in the background, until `close`.

        Of all processes that do so on one database, one works; another takes over when it
        ends. A second call gives the same keeper.

        Args:
            watch: React to changes at once; else only walk the folders every ``reconcile_s``.
            embed: Make missing vectors, if the model is on this machine.
            polling: Look for changes rather than rely on the file system's events.
            poll_s: Seconds between two looks, where events fail or are not relied on.
            reconcile_s: Seconds between two walks through all folders.

        Raises:
            ReadOnlyError: The database was opened read-only.
        """
        from qmd.ingest.keep.background_embedding import EmbedderProvider
        from qmd.ingest.keep.keeper import Keeper
        from qmd.ingest.keep.maintain import KeeperOptions

        self._store.require_writable()
        events = self.events
        options = KeeperOptions(watch, embed, polling, poll_s, reconcile_s)
        models = (
            EmbedderProvider(  # lambdas, for the embedders become others when the file is replaced
                lambda connection: self._embedders.target_name(connection),  # noqa: PLW0108
                lambda name: self._embedders.is_available(name),  # noqa: PLW0108
                lambda name: self._embedders.open(name),  # noqa: PLW0108
            )
        )
        with self._lock:
            if self._keeper is None:
                self._keeper = Keeper(lambda: self._store, events, models, options)
            keeper = self._keeper
        keeper.start()
        return keeper

    def freshness(self, *, embeddings_pending: int | None = None) -> Freshness:
        """
        How far the index is behind the disk, and which process keeps it. Where the database was
        deleted or replaced, and cannot be opened again, ``notices`` say only that.

        Args:
            embeddings_pending: The count, where a search has just made it.
        """
        from qmd.ingest.keep import freshness

        keeper = self._keeper
        state, waiting = (None, 0) if keeper is None else (keeper.state, keeper.waiting)
        try:
            store = self._store
            store.require_current()
        except StoreError as error:
            return freshness.unknown_freshness(error.with_hint)
        return freshness.read_freshness(
            store, state, waiting, embeddings_pending=embeddings_pending
        )

"""Indexing, once or continuously in the background; and why a file is a document or is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import ingest
from qmd.errors import StoreError
from qmd.ingest import keep
from qmd.kb.collections import select_collections
from qmd.kb.named_files import document_without_file
from qmd.kb.parts import Parts, open_to_scopes

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
        Update the index from the files on the disk. A run may be interrupted and repeated.

        Args:
            collections: Names of collections; empty for all.
            verify: Read the files that look unchanged as well.
            progress: Called with the state of the run after each file.

        Raises:
            CollectionNotFoundError, DatabaseBusyError, DiskFullError. A collection whose
            directory cannot be read is listed in ``report.errors``, and keeps its documents.
        """
        store = self._store
        return ingest.index.index_collections(
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
        Index all collections; if ``pull``, first fetch and fast-forward those that are git trees.

        A work tree whose configuration names a program to run is not pulled; ``report.errors``
        lists it.
        """
        store = self._store
        collections = select_collections(store, ())
        problems = ingest.git_pull.pull(collections) if pull else []
        return ingest.index.index_collections(
            store, collections, problems=problems, progress=progress, events=self._events
        )

    @open_to_scopes
    def why(self, path: str | Path) -> Explanation:
        """
        Explain whether a file is a document and, if not, which rule leaves it out.

        Args:
            path: A path on the disk, ``collection/path`` or ``qmd://collection/path``; if no file
                is there, any name of a document that `get` takes, or the end of the path of a
                file below the folders of the collections.

        Raises:
            AmbiguousNameError: More than one document has this name, and no file has this path.
        """
        with self._store.reading() as reader:
            explanation = ingest.why.explain_path(reader, str(path))
            if not explanation.indexed:
                document = document_without_file(reader, str(path))
                if document is not None:
                    return ingest.why.explain_path(reader, document.uri)
                return ingest.why.explain_named_file(reader, str(path), explanation)
            return explanation

    def keep(
        self,
        *,
        watch: bool = True,
        embed: bool = True,
        ocr: bool = True,
        polling: bool = False,
        poll_s: float = 2.0,
        reconcile_s: float = 600.0,
    ) -> Keeper:
        """
        Keep the index up to date with the disk, in the background, until `close`.

        Of all processes that keep one database, one does the work; when it ends, another takes
        over. A second call returns the same keeper.

        Args:
            watch: React to changes at once; if False, only walk the folders every ``reconcile_s``.
            embed: Make missing vectors, if the model is on this machine.
            ocr: Read the text in pictures, if this machine can.
            polling: Compare the folders regularly instead of using the system's file events.
            poll_s: Seconds between two such comparisons.
            reconcile_s: Seconds between two walks through all folders.

        Raises:
            ReadOnlyError: The database was opened read-only.
        """
        self._store.require_writable()
        events = self.events
        options = keep.maintain.KeeperOptions(
            watch,
            embed,
            ingest.ocr.recogniser_of(self._settings.ocr) if ocr else None,
            polling,
            poll_s,
            reconcile_s,
        )
        models = keep.background.EmbedderProvider(
            # lambdas: the embedders change when the database file is replaced
            lambda reader: self._embedders.target_name(reader),  # noqa: PLW0108
            lambda name: self._embedders.is_available(name),  # noqa: PLW0108
            lambda name: self._embedders.open(name),  # noqa: PLW0108
        )
        with self._lock:
            if self._keeper is None:
                self._keeper = keep.keeper.Keeper(lambda: self._store, events, models, options)
            keeper = self._keeper
        keeper.start()
        return keeper

    def follow(self) -> None:
        """
        Publish on `events` what other processes change in a database on a server, until `close`.

        `keep` does so, too. With a file, or if this was called before, nothing is done.
        """
        events = self.events
        feed = self._store.change_feed()
        if feed is None:
            return
        listener = keep.follower.ChangeListener(feed, events)
        with self._lock:
            is_first = self._listener is None and self._keeper is None
            if is_first:
                self._listener = listener
        if is_first:
            listener.start()
        else:
            feed.close()

    def freshness(self, *, embeddings_pending: int | None = None) -> Freshness:
        """
        How far the index is behind the disk.

        If the database was deleted or replaced and cannot be opened again, ``notices`` says that
        and the other fields are empty.

        Args:
            embeddings_pending: How many distinct texts have no vectors, if the caller knows it;
                None to count them.
        """
        keeper = self._keeper
        state, waiting = (None, 0) if keeper is None else (keeper.state, keeper.waiting)
        try:
            store = self._store
            store.require_current()
        except StoreError as error:
            return keep.freshness.unknown_freshness(error.with_hint)
        return keep.freshness.read_freshness(
            store, state, waiting, embeddings_pending=embeddings_pending
        )

"""
KnowledgeBase: the library's face, and all that the command line and the servers call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from qmd.backends import Backends, BackendSettings
from qmd.embedders import EmbedderChoice
from qmd.filetools import FileTools, Places, clear_away
from qmd.model import Filters
from qmd.search import pipeline
from qmd.store.store import Store

# What only some methods need is imported by them: `qmd search` is to be quick to start.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.catalogue import Catalogue
    from qmd.inference.protocols import Embedder, Expander, Reranker
    from qmd.ingest.events import EventBus
    from qmd.ingest.keeper import Keeper
    from qmd.model import (
        Check,
        CleanupReport,
        Collection,
        Context,
        DocumentInfo,
        DocumentSlice,
        EmbedReport,
        Explanation,
        Freshness,
        IndexReport,
        ModelSpec,
        MultiGetReply,
        PhotoMetadata,
        Progress,
        SearchReply,
        Status,
    )
    from qmd.posts.archive import Posts
    from qmd.search.bits import BitIndex
    from qmd.search.hybrid import Models
    from qmd.sqlite import Connection
    from qmd.writing.files import FileWriter
    from qmd.writing.images import Images
    from qmd.writing.notes import Notes
    from qmd.writing.policy import WritePolicy
    from qmd.writing.revisions import Revisions
    from qmd.writing.summary import Summary

    ProgressCallback = Callable[[Progress], None]


class KnowledgeBase:
    """
    One qmd database. Thread-safe: any thread may call any method.

    ``with KnowledgeBase.open("notes.sqlite", create=True) as kb: ...``

    Reading methods run on the calling thread; writing ones queue up behind each other and
    wait for their turn. Every error a caller can cause is a `QmdError` with a hint.
    """

    def __init__(
        self,
        store: Store,
        *,
        model: str | None = None,
        cache_dir: Path | None = None,
        embedder: Embedder | None = None,
        expander: Expander | None = None,
        reranker: Reranker | None = None,
        ask_server: bool = False,
        places: Places = Places(),
        backends: BackendSettings = BackendSettings(),
    ) -> None:
        """Use `open`."""
        self._store = store
        self._embedders = EmbedderChoice(
            store,
            model=model,
            cache_dir=cache_dir,
            given=embedder,
            ask_server=ask_server,
            server=backends.embedding_server,
        )
        self._backends = Backends(
            store,
            backends,
            cache_dir=lambda: self._embedders.cache_dir,
            expander=expander,
            reranker=reranker,
        )
        self._file_tools = FileTools(store, places, self.collections, lambda: self._events)
        self._lock = threading.Lock()
        self._events: EventBus | None = None
        self._keeper: Keeper | None = None
        self._bits: BitIndex | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = False,
        read_only: bool = False,
        model: str | None = None,
        cache_dir: str | Path | None = None,
        embedder: Embedder | None = None,
        expander: Expander | None = None,
        reranker: Reranker | None = None,
        ask_server: bool = False,
        vault: str | Path | None = None,
        posts_dir: str | Path = "data",
        write_roots: Sequence[str | Path] = (),
        read_only_files: bool = False,
        backends: BackendSettings = BackendSettings(),
        exiftool: str | Path | None = None,
    ) -> KnowledgeBase:
        """
        Open a database file.

        Args:
            create: Make the file if there is none; an older one is brought up to date.
            read_only: Never write; many processes may do so at once.
            model: An embedding model's name; None for the embedded default.
            cache_dir: Where models are kept; None for the user's cache directory.
            embedder: Use this instead of ``model``.
            expander: Use this instead of what ``backends`` says.
            reranker: Likewise.
            ask_server: While the model is not in memory, let the qmd server that runs for this
                database embed questions, if there is one.
            vault: The directory of the notes tools; None for a vault made of the collections.
            posts_dir: The directory of the posts tools.
            write_roots: Below which directories tools may change files; none for the usual ones
                (see `policy`).
            read_only_files: Tools change no file.
            backends: Which models expand and rerank queries, and where model servers are.
            exiftool: The program that writes into photos; None for the one on PATH.

        Raises:
            DatabaseMissingError: The file does not exist and ``create`` is false.
            SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
            MigrationRequiredError: As their names say; the file is left as it was.
        """
        store = Store(Path(path).expanduser(), create=create, read_only=read_only)
        try:
            clear_away(store)
        except BaseException:
            store.close()
            raise
        return cls(
            store,
            model=model,
            cache_dir=Path(cache_dir).expanduser() if cache_dir is not None else None,
            embedder=embedder,
            expander=expander,
            reranker=reranker,
            ask_server=ask_server,
            places=Places(
                None if vault is None else Path(vault).expanduser(),
                Path(posts_dir),
                tuple(Path(each) for each in write_roots),
                read_only_files,
                exiftool,
            ),
            backends=backends,
        )

    @property
    def path(self) -> Path:
        """The database file."""
        return self._store.path

    @property
    def policy(self) -> WritePolicy:
        """
        Where tools may change files: below the write roots given, else below the collections,
        the vault, the working directory, and what is not hidden in home and temporary directory.
        """
        return self._file_tools.policy()

    @property
    def files(self) -> FileWriter:
        """Changes files on the disk, where `policy` allows it."""
        return self._file_tools.files()

    @property
    def revisions(self) -> Revisions:
        """What files held before tools changed them."""
        return self._file_tools.revisions()

    @property
    def summary(self) -> Summary:
        """Writes what AI clients want kept, as the toolset ``summary`` has it."""
        return self._file_tools.summary()

    @property
    def images(self) -> Images:
        """What photos say about themselves, and writing it."""
        return self._file_tools.images()

    @staticmethod
    def photo_metadata(path: str | Path) -> PhotoMetadata:
        """What a photo says about itself. Raises PhotoError."""
        from qmd.writing.images import Images

        return Images.show(path)

    @property
    def notes(self) -> Notes:
        """Read, create and list notes, in the vault or across the collections."""
        return self._file_tools.notes()

    @property
    def posts(self) -> Posts:
        """The archive of posts: its authors, their posts, and literals in them."""
        return self._file_tools.posts()

    def close(self) -> None:
        """Wait for what is being written, then close the file. May be called twice."""
        if self._keeper is not None:
            self._keeper.stop()
        if self._bits is not None:
            self._bits.close()
        self._file_tools.close()
        self._store.close()

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- collections and contexts ------------------------------------------------------

    def add_collection(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        mask: str = "**/*.md",
        ignore: Sequence[str] = (),
    ) -> Collection:
        """
        Register a directory; `index` fills it.

        Args:
            name: None for the directory's own name.
            mask: Which files are documents: globs, by comma or braces.
            ignore: What is left out, as in a .gitignore.

        Raises:
            InputError: No such directory, or a bad name or mask.
            ConflictError: There is a collection of that name.
        """
        from qmd.ingest import places
        from qmd.store import collections

        place = places.new_collection(path, name, mask, ignore)
        return self._store.write(
            lambda c: collections.add(
                c, name=place.name, path=place.path, pattern=mask, ignore=ignore
            )
        )

    def collections(self) -> list[Collection]:
        """All collections, the one whose documents changed last first."""
        from qmd.store import collections

        with self._store.reading() as connection:
            return collections.everything(connection)

    def collection(self, name: str) -> Collection:
        """Raises CollectionNotFoundError."""
        from qmd.store import collections

        with self._store.reading() as connection:
            return collections.by_name(connection, name)

    def remove_collection(self, name: str) -> Collection:
        """Forget a collection; its files stay. Raises CollectionNotFoundError."""
        from qmd.store import collections

        return self._store.write(lambda c: collections.remove(c, name))

    def rename_collection(self, old: str, new: str) -> Collection:
        """Raises CollectionNotFoundError, ConflictError, InputError."""
        from qmd.ingest import places
        from qmd.store import collections

        places.check_name(new)
        return self._store.write(lambda c: collections.rename(c, old, new))

    def add_context(self, path: str, text: str) -> Context:
        """
        Say what lies below a path; replaces what was said there before.

        Args:
            path: A directory or file on the disk, ``qmd://collection/prefix``, or ``/`` for all.

        Raises:
            InputError: The path lies in no collection, or the text is blank.
        """
        from qmd.ingest import places
        from qmd.store import contexts

        places.check_context_text(text)
        number, prefix = self._context_place(path)
        return self._store.write(lambda c: contexts.put(c, number, prefix, text.strip()))

    def contexts(self) -> list[Context]:
        """From the global one to the most specific."""
        from qmd.store import contexts

        with self._store.reading() as connection:
            return contexts.everything(connection)

    def remove_context(self, path: str) -> Context:
        """Raises ContextNotFoundError, InputError."""
        from qmd.store import contexts

        number, prefix = self._context_place(path)
        return self._store.write(lambda c: contexts.remove(c, number, prefix))

    def _context_place(self, path: str) -> tuple[int | None, str]:
        from qmd.ingest import places

        return places.context_place(path, self.collections())

    # -- disk → store ------------------------------------------------------------------

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
            directory cannot be read is told in ``report.errors``, and keeps its documents.
        """
        from qmd.ingest import runs

        chosen = self._chosen(collections)
        return runs.index(
            self._store, chosen, verify=verify, progress=progress, events=self._events
        )

    def update(
        self, *, pull: bool = False, progress: ProgressCallback | None = None
    ) -> IndexReport:
        """``git pull`` in each collection that is a git work tree (if ``pull``), then `index`."""
        from qmd.ingest import runs

        chosen = self._chosen(())
        problems = runs.pull(chosen) if pull else []
        return runs.index(
            self._store, chosen, problems=problems, progress=progress, events=self._events
        )

    def embed(
        self,
        collections: Sequence[str] = (),
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> EmbedReport:
        """
        Make the missing vectors (``force``: all anew); what is finished survives an interruption.

        Raises:
            ModelMissingError: The model is not on this machine and cannot be had.
            VectorsUnavailableError: sqlite-vec cannot be loaded here.
        """
        from qmd.ingest.embedding import embed

        ids = [collection.id for collection in self._chosen(collections)] if collections else []
        embedder = self._embedders.open(download=True, progress=progress)
        return embed(self._store, embedder, collection_ids=ids, force=force, progress=progress)

    def embed_texts(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"] = "passage"
    ) -> NDArray[np.float32]:
        """
        The vectors of these texts; nothing is stored.

        Args:
            kind: Some models embed questions differently from what answers them.

        Returns:
            float32[len(texts), dimension], unit norm.

        Raises:
            ModelMissingError: The model is not on this machine.
            InferenceError: It is, and fails.
        """
        import numpy as np

        embedder = self._embedders.answerer()
        if kind == "passage":
            return embedder.embed_passages(texts)
        vectors = [embedder.embed_query(text) for text in texts]
        return np.array(vectors, np.float32).reshape(len(texts), embedder.spec.dimension)

    def embedding_model(self) -> ModelSpec:
        """What `embed_texts` would answer with; loads nothing. Raises ModelMissingError."""
        return self._embedders.spec()

    def model_loaded(self) -> bool:
        """Whether the embedding model's weights are in this process's memory."""
        return self._embedders.is_loaded()

    def can_embed(self) -> bool:
        """Whether `embed` can run without downloading anything."""
        return self._embedders.is_available()

    @property
    def models(self) -> Catalogue:
        """Which models there are, which is in use; how to get and how to change one."""
        from qmd.catalogue import Catalogue
        from qmd.ingest.leader import is_led

        return Catalogue(
            self._store,
            self._embedders,
            is_kept=lambda: is_led(self._store.path),
            wake=lambda: self._keeper.embed_soon() if self._keeper is not None else None,
        )

    def why(self, path: str | Path) -> Explanation:
        """
        Is this file a document, and if not, which rule says so?

        Args:
            path: On the disk, or ``collection/path``, or ``qmd://…``.
        """
        from qmd.ingest import why

        with self._store.reading() as connection:
            return why.explain_path(connection, str(path))

    def _chosen(self, names: Sequence[str]) -> list[Collection]:
        from qmd.store import collections

        with self._store.reading() as connection:
            if not names:
                return sorted(collections.everything(connection), key=lambda c: c.name)
            return [collections.by_name(connection, name) for name in dict.fromkeys(names)]

    # -- live --------------------------------------------------------------------------

    @property
    def events(self) -> EventBus:
        """What happens to the index by this process's hands: ``kb.events.subscribe(print)``."""
        from qmd.ingest.events import EventBus

        with self._lock:
            if self._events is None:
                self._events = EventBus()
            return self._events

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
            watch: React to changes at once; else only walk the folders, now and then.
            embed: Make missing vectors, if a model is on this machine.
            polling: Look for changes rather than rely on the file system's events.
            poll_s: Seconds between two looks, where events fail or are not relied on.
            reconcile_s: Seconds between two walks through everything.

        Raises:
            ReadOnlyError: The database was opened read-only.
        """
        from qmd.ingest.background import Models
        from qmd.ingest.keeper import Keeper
        from qmd.ingest.lead import KeepOptions

        self._store.require_writable()
        events = self.events
        options = KeepOptions(watch, embed, polling, poll_s, reconcile_s)
        models = Models(self._embedders.wanted, self._embedders.available, self._embedders.open)
        with self._lock:
            if self._keeper is None:
                self._keeper = Keeper(self._store, events, models, options)
            keeper = self._keeper
        keeper.start()
        return keeper

    def freshness(self, *, embeddings_pending: int | None = None) -> Freshness:
        """
        How far the index is behind the disk, and who keeps it.

        Args:
            embeddings_pending: As a search has just counted it, so that it is not done again.
        """
        from qmd.ingest import freshness

        keeper = self._keeper
        state, waiting = (None, 0) if keeper is None else (keeper.state, keeper.waiting)
        return freshness.read(self._store, state, waiting, embeddings_pending=embeddings_pending)

    # -- search and read ---------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.0,
        filters: Filters = Filters(),
        explain: bool = False,
        min_relevance: float = 0.0,
    ) -> SearchReply:
        """
        Full text (BM25). ``limit`` None means all.

        Raises:
            InputError, CollectionNotFoundError.
        """
        request = pipeline.Request(query, limit, min_score, filters, explain, min_relevance)
        with self._store.reading() as connection:
            return pipeline.search(connection, request)

    def vsearch(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.3,
        filters: Filters = Filters(),
        explain: bool = False,
        min_relevance: float = 0.0,
        expand: bool = True,
        intent: str | None = None,
    ) -> SearchReply:
        """
        Vectors; ``expand`` and ``intent`` as in `query`.

        Raises:
            VectorIndexMissingError, ModelMissingError, ModelMismatchError,
            VectorsUnavailableError, InputError, CollectionNotFoundError.
        """
        from qmd.search import hybrid

        request = pipeline.Request(query, limit, min_score, filters, explain, min_relevance)
        with self._store.reading() as connection:
            models = self._models(connection, expand=expand, rerank=False)
            return hybrid.vsearch(connection, request, models, intent=intent)

    def query(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.0,
        filters: Filters = Filters(),
        explain: bool = False,
        rerank: bool = True,
        expand: bool = True,
        candidates: int = 30,
        intent: str | None = None,
        min_relevance: float = 0.0,
    ) -> SearchReply:
        """
        Both, fused; full text alone where vectors are missing (``reply.degraded`` says why).

        Args:
            rerank: Rerank the best ``candidates``: by the reranker, if one was given, else by
                the scores of full text and vectors. Without, the fused order stays.
            expand: Let the expander, if one was given, ask in other words too.
            intent: What the question is about, for expander and reranker.

        Raises:
            InputError, CollectionNotFoundError.
        """
        from qmd.search import hybrid

        request = pipeline.Request(query, limit, min_score, filters, explain, min_relevance)
        with self._store.reading() as connection:
            models = self._models(connection, expand=expand, rerank=rerank)
            return hybrid.query(connection, request, models, candidates=candidates, intent=intent)

    def _models(self, connection: Connection, *, expand: bool, rerank: bool) -> Models:
        """For one query; together they take no more time than it may cost."""
        from qmd.inference.guard import Budget
        from qmd.search.hybrid import Models

        backends = self._backends
        budget = Budget(backends.settings.budget_s)
        reranker = backends.reranker(budget) if rerank else None
        # Whoever is slow must leave time to those that come after.
        share = 1.0 if reranker is None else 0.5
        first = 0.5 * share if self._embedders.asks_server(connection) else share
        return Models(
            lambda: backends.careful(self._embedders.for_questions(connection), budget, share),
            backends.expander(budget, share=first) if expand else None,
            reranker,
            timeout_s=budget.seconds,
            bits=self._bit_index(),
            rerank=rerank,
        )

    def _bit_index(self) -> BitIndex:
        from qmd.search.bits import BitIndex

        with self._lock:
            if self._bits is None:
                self._bits = BitIndex()
            return self._bits

    def get(
        self, file: str, *, from_line: int | None = None, max_lines: int | None = None
    ) -> DocumentSlice:
        """
        One document, by ``collection/path``, ``qmd://…``, a path on the disk, a unique suffix,
        ``#docid`` or six hex digits; ``:LINE`` (and ``:COUNT``) behind it beats ``from_line``.

        Raises:
            DocumentNotFoundError: With up to three suggestions.
            AmbiguousNameError: More than one document fits.
            InputError: ``max_lines`` below 1.
        """
        from qmd.search import lookup

        with self._store.reading() as connection:
            return lookup.get(connection, file, from_line=from_line, max_lines=max_lines)

    def multi_get(
        self, pattern: str, *, max_lines: int | None = None, max_bytes: int = 10240
    ) -> MultiGetReply:
        """
        Several documents by glob or comma-separated list; larger ones than ``max_bytes`` are
        named, not read.

        Raises:
            NoMatchError, InputError.
        """
        from qmd.search import lookup

        with self._store.reading() as connection:
            return lookup.multi_get(connection, pattern, max_lines=max_lines, max_bytes=max_bytes)

    def documents(
        self, prefix: str = "", *, limit: int | None = None, offset: int = 0
    ) -> list[DocumentInfo]:
        """
        The documents below ``collection/prefix``, by collection and path.

        Args:
            limit: None for all.
            offset: How many to leave out at the start.

        Raises:
            CollectionNotFoundError.
        """
        from qmd.store import documents

        with self._store.reading() as connection:
            collection, rest = self._folder(connection, prefix)
            return documents.below(connection, collection, rest, limit=limit, offset=offset)

    def count_documents(self, prefix: str = "") -> int:
        """How many documents `documents` lists without a limit. Raises CollectionNotFoundError."""
        from qmd.store import documents

        with self._store.reading() as connection:
            return documents.count_below(connection, *self._folder(connection, prefix))

    @staticmethod
    def _folder(connection: Connection, prefix: str) -> tuple[str | None, str]:
        from qmd.store import collections

        collection, _, rest = prefix.removeprefix("qmd://").strip("/").partition("/")
        if collection:
            collections.by_name(connection, collection)
        return collection or None, rest

    # -- upkeep ------------------------------------------------------------------------

    def status(self) -> Status:
        """What is indexed, waits for vectors, or was left out."""
        from qmd.search import status

        with self._store.reading() as connection:
            return status.read(connection, self._store.path)

    def cleanup(self, *, dry_run: bool = False) -> CleanupReport:
        """Remove what nothing refers to any more, and give the space back to the disk."""
        from qmd.model import CleanupReport
        from qmd.store import upkeep

        before = self._store.path.stat().st_size
        if dry_run:
            with self._store.reading() as connection:
                return CleanupReport(upkeep.leftovers(connection), before, before, dry_run=True)
        removed = self._store.write(upkeep.remove_leftovers)
        self._store.write_outside_transaction(upkeep.compact)
        return CleanupReport(removed, before, self._store.path.stat().st_size, dry_run=False)

    def backup(self, path: str | Path, *, force: bool = False) -> int:
        """
        Write a consistent copy of the database to a file, while others go on writing.

        Returns:
            The copy's size in bytes.

        Raises:
            ConflictError: The file exists and ``force`` is false.
            InputError, StoreError, DiskFullError: It cannot be written.
        """
        from qmd.store import copies

        target = Path(path).expanduser().absolute()
        with self._store.reading() as connection:
            return copies.copy(connection, target, replace=force)

    @staticmethod
    def restore(database: str | Path, backup: str | Path) -> Path | None:
        """
        Put a backup in the place of a database that no program has open; the old one is kept.

        Returns:
            Where the old database is now, None if there was none.

        Raises:
            DatabaseMissingError: There is no such backup.
            ConflictError: A program keeps the database, or has it open.
            StoreError: The backup is damaged, or none that this program can read.
        """
        from qmd.ingest.restore import restore

        return restore(Path(database).expanduser().absolute(), Path(backup).expanduser())

    def doctor(self, *, home: Path | None = None) -> list[Check]:
        """
        Everything that may be wrong, each with a remedy.

        Args:
            home: Where AI clients keep their settings; None for the user's home directory.
        """
        from qmd import doctor

        return doctor.examine(
            self._store,
            self._embedders,
            self._backends,
            home or Path.home(),
            self._file_tools.exiftool_command,
        )

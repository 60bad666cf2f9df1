"""What is indexed (collections and contexts), indexing it, vectors, and the text in pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qmd import inference, ingest, libraries, models
from qmd.ingest import keep
from qmd.kb.files import document_without_file
from qmd.kb.parts import Parts, open_to_scopes
from qmd.system import cancellation, clock
from qmd.values.text import DEFAULT_MASK

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd import values
    from qmd.inference.protocols import TokenStates
    from qmd.ingest.keep.freshness import IndexLock, KeeperState
    from qmd.ingest.keep.keeper import Keeper
    from qmd.models.catalogue import Catalogue
    from qmd.store import Reader, SharedLock, Store, Writer
    from qmd.values.reports import CollectionPreview


class IndexingMethods(Parts):
    def index(
        self,
        collections: Sequence[str] = (),
        *,
        verify: bool = False,
        progress: values.ProgressCallback | None = None,
    ) -> values.IndexReport:
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
        return self._index(
            select_collections(self._store, collections), verify=verify, progress=progress
        )

    def index_before_keeping(
        self, collections: Sequence[str] = (), *, progress: values.ProgressCallback | None = None
    ) -> values.IndexReport:
        """
        As `index`, for a process that calls `keep` next and wants the report first.

        `freshness` and `events` tell of it from its beginning, as they tell of what `keep` does.
        Until `keep` or `close` is called, they say that the index is kept.
        """
        self._release_lock()
        state = keep.freshness.KeeperState(self.events)
        state.embeds = self._embedders.is_available()
        state.watch = "native"  # what changes meanwhile is found by the keeper that follows
        lock = keep.freshness.lock_of(self._store)
        with self._telling(state, lock) as tell:
            report = self._index(
                select_collections(self._store, collections), tell=tell, progress=progress
            )
            if not collections:
                state.synced()
        if state.leader:
            self._walk, self._kept_lock = state, lock
        return report

    def _release_lock(self) -> None:
        """Do not keep the index any more, if `keep` was not called."""
        with self._lock:
            self._walk = None
            lock, self._kept_lock = self._kept_lock, None
        if lock is not None:
            lock.release()

    def _index(
        self,
        collections: Sequence[values.Collection],
        *,
        verify: bool = False,
        problems: Sequence[str] = (),
        tell: values.ProgressCallback | None = None,
        progress: values.ProgressCallback | None = None,
    ) -> values.IndexReport:
        """
        Index, and tell other processes of it.

        Args:
            tell: What tells them; None to begin with the first file that is to be read, because a
                run that finds nothing to do takes a third longer if it tells so.
        """
        store, events = self._store, self._events
        with ExitStack() as telling:

            def tell_both(tick: values.Progress) -> None:
                nonlocal tell
                if tell is None and tick.total:
                    state = keep.freshness.KeeperState(self.events)
                    tell = telling.enter_context(self._telling(state))
                for each in (tell, progress):
                    if each is not None:
                        each(tick)

            return ingest.index.index_collections(
                store,
                collections,
                verify=verify,
                problems=problems,
                progress=tell_both,
                events=events,
            )

    @contextmanager
    def _telling(
        self, state: KeeperState, lock_to_keep: IndexLock | SharedLock | None = None
    ) -> Iterator[values.ProgressCallback]:
        self._walk = state
        try:
            with keep.freshness.keeping(
                self._store, self.events, state, lock_to_keep=lock_to_keep
            ) as tell:
                yield tell
        finally:
            self._walk = None

    def update(
        self, *, pull: bool = False, progress: values.ProgressCallback | None = None
    ) -> values.IndexReport:
        """
        Index all collections; if ``pull``, first fetch and fast-forward those that are git trees.

        A work tree whose configuration names a program to run is not pulled; ``report.errors``
        lists it.
        """
        collections = select_collections(self._store, ())
        problems = ingest.git_pull.pull(collections) if pull else []
        return self._index(collections, problems=problems, progress=progress)

    @open_to_scopes
    def why(self, path: str | Path) -> values.Explanation:
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
                self._keeper = keep.keeper.Keeper(
                    lambda: self._store, events, models, options, lock=self._kept_lock
                )
                self._kept_lock = None
            keeper = self._keeper
        self._release_lock()
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
        listener = keep.loop.ChangeListener(feed, events)
        with self._lock:
            is_first = self._listener is None and self._keeper is None
            if is_first:
                self._listener = listener
        if is_first:
            listener.start()
        else:
            feed.close()


class CollectionMethods(Parts):
    def add_collection(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        mask: str = DEFAULT_MASK,
        ignore: Sequence[str] = (),
    ) -> values.Collection:
        """
        Register a directory; `index` fills it.

        A directory that was a collection before gets the contexts back that it had.

        Args:
            name: The collection's name; None takes that of the directory.
            mask: Which files are documents: globs, separated by commas or in braces.
            ignore: Patterns of files to leave out, as in a .gitignore.

        Raises:
            InputError: The directory does not exist, or the name or mask is not valid.
            ConflictError: A collection of that name exists.
        """
        new = ingest.new_collection.new_collection(path, name, mask, ignore)
        ingest.new_collection.refuse_known_folder(new, mask, ignore, self.collections())

        def add(writer: Writer) -> values.Collection:
            added = writer.collections.add(
                name=new.name, path=new.path, pattern=mask, ignore=ignore
            )
            _restore_contexts(writer, added)
            _forget_removed(writer, new.path)
            return added

        return self._write_audited(self._store, "collection add", f"{new.name}: {new.path}", add)

    def overlap_notice(self, path: str | Path) -> str | None:
        """What to tell who adds a folder that is, holds or lies in that of a collection."""
        return ingest.new_collection.overlap_notice(path, self.collections())

    @staticmethod
    def preview_collection(
        path: str | Path,
        *,
        name: str | None = None,
        mask: str = DEFAULT_MASK,
        ignore: Sequence[str] = (),
        budget_s: float = 5.0,
    ) -> CollectionPreview:
        """
        Scan a directory as `add_collection` and `index` would; nothing is read or stored.

        Args:
            budget_s: The seconds after which the count is given as it is then.

        Raises:
            As `add_collection`, but for ConflictError.
        """
        return ingest.new_collection.preview(path, name, mask, ignore, budget_s=budget_s)

    @open_to_scopes
    def collections(self) -> list[values.Collection]:
        """All collections, the most recently changed first."""
        return self._store.read(lambda reader: reader.collections.all())

    @open_to_scopes
    def collection(self, name: str) -> values.Collection:
        """The collection of this name. Raises CollectionNotFoundError."""
        return self._store.read(lambda reader: reader.collections.by_name(name))

    @open_to_scopes
    def breaks_lines(self, name: str) -> bool:
        """
        Whether a line end inside a paragraph is shown as one, as Obsidian shows it in a vault.

        Raises CollectionNotFoundError. False outside vaults, and in a vault with "Strict line
        breaks".
        """
        settings = ingest.rules.vault_settings(Path(self.collection(name).path))
        return settings is not None and not settings.strict_line_breaks

    def remove_collection(self, name: str) -> values.Collection:
        """
        Remove a collection from the index and return it; its files stay on the disk.

        Its contexts come back when its directory is added again, or by `restore_removed`.

        Raises:
            CollectionNotFoundError.
        """

        def remove(writer: Writer) -> values.Collection:
            _keep_contexts(writer, writer.collections.by_name(name))
            removed = writer.collections.remove(name)
            _keep_removed(writer, removed)
            return removed

        return self._write_audited(self._store, "collection remove", name, remove)

    def restore_removed(self, *, since: str | None) -> values.Collection | None:
        """
        Add the collection again that was removed last, with its contexts; `index` fills it.

        Args:
            since: ISO 8601; None is returned if none was removed after that. None for any time.

        Raises:
            As `add_collection`; the collection is not tried again then.
        """
        removed = self._store.read(_removed)
        last = removed[-1] if removed else None
        if last is None or (since is not None and last["at"] <= since):
            return None
        self._store.write(lambda writer: _forget_removed(writer, last["path"]))
        added = self.add_collection(
            last["path"], name=last["name"], mask=last["pattern"], ignore=last["ignore"]
        )
        return added if last["included"] else self.include_collection(added.name, included=False)

    def change_collection(
        self, name: str, *, mask: str | None = None, ignore: Sequence[str] | None = None
    ) -> values.Collection:
        """
        Change which files of a collection are documents, and return it; `index` applies the change.

        Args:
            mask: As for `add_collection`; None leaves it.
            ignore: The patterns instead of those that it has; None leaves them.

        Raises:
            CollectionNotFoundError.
            InputError: The mask or a pattern is not valid.
        """
        now = self.collection(name)
        mask = now.pattern if mask is None else mask
        ignore = now.ignore if ignore is None else ignore
        ingest.new_collection.check_globs(mask, ignore)
        ingest.rules.Rules(Path(now.path), mask, ignore)
        return self._write_audited(
            self._store,
            "collection set",
            f"{name}: {mask}",
            lambda writer: writer.collections.set_rules(name, pattern=mask, ignore=ignore),
        )

    def rename_collection(self, old: str, new: str) -> values.Collection:
        """
        Give a collection another name and return it.

        Raises:
            CollectionNotFoundError: There is no collection ``old``.
            ConflictError: A collection ``new`` exists.
            InputError: ``new`` is not a valid name.
        """
        ingest.new_collection.check_name(new)
        return self._write_audited(
            self._store,
            "collection rename",
            f"{old} to {new}",
            lambda writer: writer.collections.rename(old, new),
        )

    def include_collection(self, name: str, *, included: bool) -> values.Collection:
        """
        Say whether searches that name no collection look in this one; it is kept up to date anyway.

        Raises:
            CollectionNotFoundError.
        """
        return self._write_audited(
            self._store,
            "collection include" if included else "collection exclude",
            name,
            lambda writer: writer.collections.set_included(name, included=included),
        )

    def add_context(self, path: str, text: str) -> values.Context:
        """
        Describe what lies below a path; an earlier description of it is replaced.

        Args:
            path: A directory or file on the disk, ``qmd://collection/prefix``, or ``/`` for all.

        Raises:
            InputError: The path lies in no collection, or the text is blank.
        """
        ingest.new_collection.check_context_text(text)
        store = self._store
        collection_id, prefix = _context_location(store, path)
        return self._write_audited(
            store,
            "context add",
            path,
            lambda writer: writer.contexts.put(collection_id, prefix, text.strip()),
        )

    @open_to_scopes
    def contexts(self) -> list[values.Context]:
        """All contexts, from the global one to the most specific."""
        return self._store.read(lambda reader: reader.contexts.all())

    def remove_context(self, path: str) -> values.Context:
        """
        Remove the description of a path and return it.

        Raises:
            ContextNotFoundError: The path has no description.
            InputError: The path lies in no collection.
        """
        store = self._store
        collection_id, prefix = _context_location(store, path)
        return self._write_audited(
            store, "context rm", path, lambda writer: writer.contexts.remove(collection_id, prefix)
        )


#: Key of the collections that were removed, oldest first, with their settings and the time.
_REMOVED = "removed collections"
_MOST_REMOVED = 20


def _removed(reader: Reader | Writer) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = json.loads(reader.meta.get(_REMOVED) or "[]")
    return kept


def _keep_removed(writer: Writer, collection: values.Collection) -> None:
    """Keep the settings of a collection that is removed; a pushed one comes back by a push."""
    if collection.owner:
        return
    settings = {
        "name": collection.name,
        "path": collection.path,
        "pattern": collection.pattern,
        "ignore": list(collection.ignore),
        "included": collection.included,
        "at": clock.now(),
    }
    kept = [*_removed(writer), settings][-_MOST_REMOVED:]
    writer.meta.put(_REMOVED, json.dumps(kept, ensure_ascii=False))


def _forget_removed(writer: Writer, path: str) -> None:
    """There is nothing to restore of a directory that is a collection again."""
    removed = _removed(writer)
    kept = [each for each in removed if each["path"] != path]
    if len(kept) < len(removed):
        writer.meta.put(_REMOVED, json.dumps(kept, ensure_ascii=False))


def _kept_contexts_key(collection: values.Collection) -> str:
    return f"contexts of {collection.path}"


def _keep_contexts(writer: Writer, collection: values.Collection) -> None:
    """Keep the contexts of a collection that is removed, by its directory."""
    contexts = [
        (each.prefix, each.text)
        for each in writer.contexts.all()
        if each.collection == collection.name
    ]
    if contexts:
        writer.meta.put(_kept_contexts_key(collection), json.dumps(contexts, ensure_ascii=False))


def _restore_contexts(writer: Writer, collection: values.Collection) -> None:
    key = _kept_contexts_key(collection)
    for prefix, text in json.loads(writer.meta.get(key) or "[]"):
        writer.contexts.put(collection.id, prefix, text)
    if writer.meta.get(key):
        writer.meta.put(key, "")


def _context_location(store: Store, path: str) -> tuple[int | None, str]:
    return ingest.collection_paths.context_location(path, select_collections(store, ()))


def select_collections(store: Store, names: Sequence[str]) -> list[values.Collection]:
    """
    The collections of these names, without repetitions; without names all, sorted by name.

    Raises:
        CollectionNotFoundError.
    """
    with store.reading() as reader:
        if not names:
            return sorted(reader.collections.all(), key=lambda c: c.name)
        return [reader.collections.by_name(name) for name in dict.fromkeys(names)]


def _ids_of(store: Store, names: Sequence[str]) -> list[int]:
    """The ids of the collections of these names; none, for all, without names."""
    return [each.id for each in select_collections(store, names)] if names else []


class EmbeddingMethods(Parts):
    def embed(
        self,
        collections: Sequence[str] = (),
        *,
        force: bool = False,
        progress: values.ProgressCallback | None = None,
    ) -> values.EmbedReport:
        """
        Make the missing vectors. After an interruption the finished ones stay.

        Args:
            collections: Names of collections; empty for all.
            force: Make all vectors, also those that exist.
            progress: Called while the model is downloaded, and after each batch of chunks.

        Raises:
            CollectionNotFoundError.
            ModelMissingError: The model is not on this machine and cannot be downloaded.
            VectorsUnavailableError: sqlite-vec cannot be loaded here.
        """
        opened = self._current()
        ids = _ids_of(opened.store, collections)
        embedder = opened.embedders.open(download=True, progress=progress)
        return ingest.embedding.embed(
            opened.store, embedder, collection_ids=ids, force=force, progress=progress
        )

    def count_unread_pictures(self) -> int:
        """How many pages without a text layer, and photos, wait for `ocr`."""
        return self._store.read(lambda reader: reader.pictures.counts().waiting)

    def ocr(
        self,
        collections: Sequence[str] = (),
        *,
        force: bool = False,
        progress: values.ProgressCallback | None = None,
    ) -> values.OcrReport:
        """
        Read the text in pictures: pages without a text layer, and photos.

        It becomes part of their documents. After an interruption what was read stays.

        Args:
            collections: Names of collections; empty for all.
            force: Read all, also those that were read.
            progress: Called before each page.

        Raises:
            CollectionNotFoundError.
            OcrUnavailableError: The package is missing, or memory is short, and pages wait.
        """
        store = self._store
        return ingest.ocr.read_pictures(
            store,
            ingest.ocr.recogniser_of(self._settings.ocr),
            collection_ids=_ids_of(store, collections),
            force=force,
            progress=progress,
            events=self._events,
            check=cancellation.check,
        )

    def embed_texts(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"] = "passage"
    ) -> NDArray[np.float32]:
        """
        Embed texts and return their vectors; nothing is stored.

        Args:
            kind: What the texts are; some models embed queries and passages differently.

        Returns:
            float32[len(texts), dimension], unit norm.

        Raises:
            ModelMissingError: The model is not on this machine.
            InferenceError: The model failed.
        """
        embedder = self._embedders.query_embedder()
        if kind == "passage":
            return embedder.embed_passages(texts)
        vectors = [embedder.embed_query(text) for text in texts]
        return libraries.np.array(vectors, libraries.np.float32).reshape(
            len(texts), embedder.spec.dimension
        )

    def embed_texts_with_tokens(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"] = "passage"
    ) -> tuple[NDArray[np.float32], Sequence[TokenStates]]:
        """
        Embed texts, and return the token states of each as well; nothing is stored.

        Returns:
            The vectors of `embed_texts`; and token states, none if the model does not give them.

        Raises:
            ModelMissingError, InferenceError: As `embed_texts`.
        """
        embedder = inference.protocols.token_embedder(self._embedders.query_embedder())
        if embedder is None:
            return self.embed_texts(texts, kind=kind), ()
        if kind == "passage":
            return embedder.embed_passages_with_tokens(texts)
        pairs = [embedder.embed_query_with_tokens(text) for text in texts]
        vectors = libraries.np.array([vector for vector, _ in pairs], libraries.np.float32)
        return vectors.reshape(len(texts), embedder.spec.dimension), [each for _, each in pairs]

    @open_to_scopes
    def embedding_model(self) -> values.ModelSpec:
        """The model that `embed_texts` uses; loads nothing. Raises ModelMissingError."""
        return self._embedders.spec()

    @open_to_scopes
    def model_loaded(self) -> bool:
        """Whether the embedding model's weights are in this process's memory."""
        return self._embedders.is_loaded()

    @open_to_scopes
    def can_embed(self) -> bool:
        """Whether `embed` can run without downloading anything."""
        return self._embedders.is_available()

    @property
    def models(self) -> Catalogue:
        """Lists the models, downloads one, and changes the one that this database uses."""
        opened = self._current()
        return models.catalogue.Catalogue(
            opened.store,
            opened.embedders,
            is_kept=lambda: keep.freshness.is_kept(opened.store),
            wake=lambda: self._keeper.embed_soon() if self._keeper is not None else None,
        )

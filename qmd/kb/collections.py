"""Collections (the indexed folders) and contexts (descriptions of what lies below a path)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd import ingest
from qmd.kb.parts import Parts, open_to_scopes
from qmd.system import clock
from qmd.values.names import DEFAULT_MASK

if TYPE_CHECKING:
    from qmd.store import Reader, Store, Writer
    from qmd.values import Collection, Context
    from qmd.values.reports import CollectionPreview


class CollectionMethods(Parts):
    def add_collection(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        mask: str = DEFAULT_MASK,
        ignore: Sequence[str] = (),
    ) -> Collection:
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

        def add(writer: Writer) -> Collection:
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
    def collections(self) -> list[Collection]:
        """All collections, the most recently changed first."""
        with self._store.reading() as reader:
            return reader.collections.all()

    @open_to_scopes
    def collection(self, name: str) -> Collection:
        """The collection of this name. Raises CollectionNotFoundError."""
        with self._store.reading() as reader:
            return reader.collections.by_name(name)

    @open_to_scopes
    def breaks_lines(self, name: str) -> bool:
        """
        Whether a line end inside a paragraph is shown as one, as Obsidian shows it in a vault.

        Raises CollectionNotFoundError. False outside vaults, and in a vault with "Strict line
        breaks".
        """
        settings = ingest.vault.vault_settings(Path(self.collection(name).path))
        return settings is not None and not settings.strict_line_breaks

    def remove_collection(self, name: str) -> Collection:
        """
        Remove a collection from the index and return it; its files stay on the disk.

        Its contexts come back when its directory is added again, or by `restore_removed`.

        Raises:
            CollectionNotFoundError.
        """

        def remove(writer: Writer) -> Collection:
            _keep_contexts(writer, writer.collections.by_name(name))
            removed = writer.collections.remove(name)
            _keep_removed(writer, removed)
            return removed

        return self._write_audited(self._store, "collection remove", name, remove)

    def restore_removed(self, *, since: str | None) -> Collection | None:
        """
        Add the collection again that was removed last, with its contexts; `index` fills it.

        Args:
            since: ISO 8601; None is returned if none was removed after that. None for any time.

        Raises:
            As `add_collection`; the collection is not tried again then.
        """
        with self._store.reading() as reader:
            removed = _removed(reader)
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
    ) -> Collection:
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

    def rename_collection(self, old: str, new: str) -> Collection:
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

    def include_collection(self, name: str, *, included: bool) -> Collection:
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

    def add_context(self, path: str, text: str) -> Context:
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
    def contexts(self) -> list[Context]:
        """All contexts, from the global one to the most specific."""
        with self._store.reading() as reader:
            return reader.contexts.all()

    def remove_context(self, path: str) -> Context:
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


def _keep_removed(writer: Writer, collection: Collection) -> None:
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


def _kept_contexts_key(collection: Collection) -> str:
    return f"contexts of {collection.path}"


def _keep_contexts(writer: Writer, collection: Collection) -> None:
    """Keep the contexts of a collection that is removed, by its directory."""
    contexts = [
        (each.prefix, each.text)
        for each in writer.contexts.all()
        if each.collection == collection.name
    ]
    if contexts:
        writer.meta.put(_kept_contexts_key(collection), json.dumps(contexts, ensure_ascii=False))


def _restore_contexts(writer: Writer, collection: Collection) -> None:
    key = _kept_contexts_key(collection)
    for prefix, text in json.loads(writer.meta.get(key) or "[]"):
        writer.contexts.put(collection.id, prefix, text)
    if writer.meta.get(key):
        writer.meta.put(key, "")


def _context_location(store: Store, path: str) -> tuple[int | None, str]:
    return ingest.collection_paths.context_location(path, select_collections(store, ()))


def select_collections(store: Store, names: Sequence[str]) -> list[Collection]:
    """
    The collections of these names, without repetitions; without names all, sorted by name.

    Raises:
        CollectionNotFoundError.
    """
    with store.reading() as reader:
        if not names:
            return sorted(reader.collections.all(), key=lambda c: c.name)
        return [reader.collections.by_name(name) for name in dict.fromkeys(names)]

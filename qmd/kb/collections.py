"""Collections and contexts: which folders there are, and what lies in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from qmd.store import Store
    from qmd.values import Collection, Context


class CollectionMethods(Parts):
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
            ignore: Patterns of files to leave out, as in a .gitignore.

        Raises:
            InputError: No such directory, or a bad name or mask.
            ConflictError: There is a collection of that name.
        """
        from qmd.ingest.new_collection import new_collection

        new = new_collection(path, name, mask, ignore)
        return self._store.write(
            lambda writer: writer.collections.add(
                name=new.name, path=new.path, pattern=mask, ignore=ignore
            )
        )

    def collections(self) -> list[Collection]:
        """All collections, the most recently changed first."""

        with self._store.reading() as reader:
            return reader.collections.all()

    def collection(self, name: str) -> Collection:
        """Raises CollectionNotFoundError."""

        with self._store.reading() as reader:
            return reader.collections.by_name(name)

    def remove_collection(self, name: str) -> Collection:
        """Forget a collection; its files stay. Raises CollectionNotFoundError."""

        return self._store.write(lambda writer: writer.collections.remove(name))

    def rename_collection(self, old: str, new: str) -> Collection:
        """Raises CollectionNotFoundError, ConflictError, InputError."""
        from qmd.ingest.new_collection import check_name

        check_name(new)
        return self._store.write(lambda writer: writer.collections.rename(old, new))

    def add_context(self, path: str, text: str) -> Context:
        """
        Describe what lies below a path; an earlier description of it is replaced.

        Args:
            path: A directory or file on the disk, ``qmd://collection/prefix``, or ``/`` for all.

        Raises:
            InputError: The path lies in no collection, or the text is blank.
        """
        from qmd.ingest.new_collection import check_context_text

        check_context_text(text)
        store = self._store
        collection_id, prefix = _context_location(store, path)
        return store.write(lambda writer: writer.contexts.put(collection_id, prefix, text.strip()))

    def contexts(self) -> list[Context]:
        """From the global one to the most specific."""

        with self._store.reading() as reader:
            return reader.contexts.all()

    def remove_context(self, path: str) -> Context:
        """Raises ContextNotFoundError, InputError."""

        store = self._store
        collection_id, prefix = _context_location(store, path)
        return store.write(lambda writer: writer.contexts.remove(collection_id, prefix))


def _context_location(store: Store, path: str) -> tuple[int | None, str]:
    from qmd.ingest.collection_paths import context_location

    return context_location(path, select_collections(store, ()))


def select_collections(store: Store, names: Sequence[str]) -> list[Collection]:
    """
    The collections of these names, each once; without names all, sorted by name.

    Raises:
        CollectionNotFoundError.
    """
    with store.reading() as reader:
        if not names:
            return sorted(reader.collections.all(), key=lambda c: c.name)
        return [reader.collections.by_name(name) for name in dict.fromkeys(names)]

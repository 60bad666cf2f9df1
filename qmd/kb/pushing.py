"""Takes what other machines push: the files of their folders."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, ingest
from qmd.errors import CollectionNotFoundError, ConflictError, WritesForbiddenError
from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from qmd.files.pushed import PushedFolder
    from qmd.values import Collection
    from qmd.values.pushes import Push, PushedFiles, PushReport

_pushing = threading.Lock()
"""Held while one step of a push is stored and indexed."""


class PushingMethods(Parts):
    @property
    def takes_pushes(self) -> bool:
        """Whether there is a directory for folders of other machines (`Settings.push_folder`)."""
        return self._settings.push_folder is not None

    def pushed_files(self, name: str, *, after: str = "") -> PushedFiles:
        """
        The files of a pushed folder, page by page, in the order of their paths.

        Args:
            name: The collection's name; one that nobody has pushed yet has no files.
            after: The last path of the page before; "" for the first page.

        Raises:
            WritesForbiddenError: This knowledge base takes no pushes.
            ConflictError: The collection of this name is a folder of this machine.
            InputError: ``name`` or ``after`` cannot be one.
        """
        folder = self._pushed_folder(name)
        self._pushed_collection(name, folder)
        return folder.listing(after)

    def push(self, name: str, push: Push) -> PushReport:
        """
        Store one step of a push, and index it. The first step makes the collection.

        Raises:
            As `pushed_files`; ReadOnlyError, DiskFullError.
        """
        return self._push(name, push, actor="")

    def _push(self, name: str, push: Push, *, actor: str) -> PushReport:
        """As `push`; ``actor`` is the name of the client's token for the audit log."""
        self._store.require_writable()
        folder = self._pushed_folder(name)
        with _pushing:
            folder.create()
            collection = self._pushed_collection(name, folder)
            if collection is None:
                ingest.new_collection.check_globs(push.pattern)
                ingest.rules.Rules(folder.root, push.pattern)  # raises InputError
                collection = self._store.write(
                    lambda writer: writer.collections.add(
                        name=name,
                        path=str(folder.root),
                        pattern=push.pattern,
                        ignore=(),
                        owner=push.owner,
                    )
                )
            elif not actor and collection.owner != push.owner:
                # A token names the collections of its holder; the administrator's opens all.
                raise ConflictError(
                    f"The collection '{name}' is the folder of {collection.owner}.",
                    hint="Push yours under another name: --name NAME. If it is the same folder, add"
                    f" --owner '{collection.owner}'.",
                )
            elif collection.pattern != push.pattern:
                raise ConflictError(
                    f"The collection '{name}' has the mask {collection.pattern}.",
                    hint=f"Push with --mask '{collection.pattern}', or under another name.",
                )
            report, paths = folder.apply(push, name)
            ingest.index.index_files(self._store, paths, [collection], self._events)
            if paths:
                target = f"{name}: {report.stored} stored, {report.deleted} deleted"
                self._write_audited(self._store, "push", target, lambda writer: None, actor)
        return report

    def _pushed_folder(self, name: str) -> PushedFolder:
        place = self._settings.push_folder
        if place is None or self._settings.read_only_files:
            raise WritesForbiddenError(
                "This server takes no folders of other machines.",
                hint="Start it with --push-folder DIR, where it keeps them, not --read-only.",
            )
        ingest.new_collection.check_name(name)
        directory = Path(place).expanduser().resolve()
        return files.pushed.PushedFolder(directory / name, directory / ".parts" / name)

    def _pushed_collection(self, name: str, folder: PushedFolder) -> Collection | None:
        with self._store.reading() as reader:
            try:
                collection = reader.collections.by_name(name)
            except CollectionNotFoundError:
                return None
        if collection.path != str(folder.root) and collection.owner:
            raise ConflictError(
                f"The server keeps '{name}' in another directory, {collection.path}.",
                hint="On the server: start it with the --push-folder of before, or 'qmd collection"
                f" remove {name}' and push anew.",
            )
        if collection.path != str(folder.root):
            raise ConflictError(
                f"The collection '{name}' is a folder of the server itself.",
                hint="Push under another name: --name NAME.",
            )
        return collection

"""
The files that tools read and write: notes, posts, photos, summaries, and their earlier contents.

Each property makes a new object from the settings and the collections as they are now.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, ingest
from qmd.files import photos, posts, writing
from qmd.kb.named_files import files_with_history
from qmd.kb.parts import Parts, open_to_scopes
from qmd.records import replace
from qmd.settings import POSTS_DIR
from qmd.system.session import current_confirm

if TYPE_CHECKING:
    from qmd.files.notes import Notes
    from qmd.files.photos.exiftool import ExifTool
    from qmd.files.photos.images import Images
    from qmd.files.posts.archive import PostArchive
    from qmd.files.revisions import FileHistory
    from qmd.files.summary import Summary
    from qmd.files.undo import Undo
    from qmd.files.writing.policy import WritePolicy
    from qmd.files.writing.writer import FileWriter
    from qmd.store import Store
    from qmd.values import Collection, PhotoMetadata
    from qmd.values.proposed import Confirm


class FileMethods(Parts):
    @property
    @open_to_scopes
    def policy(self) -> WritePolicy:
        """
        Where tools may change files.

        If the settings have write roots: below these. If not: in the collections, the vault and the
        working directory, and in what is not hidden of the home and temporary directories; but if
        each write is confirmed, in the collections and the vault alone.
        """
        return self._policy(self._store)

    @property
    @open_to_scopes
    def confirms_writes(self) -> bool:
        """
        Whether a person confirms each write of this thread's work (``Settings.confirm_writes``,
        or `qmd.system.session`).
        """
        return self._confirm is not None

    @property
    def _confirm(self) -> Confirm | None:
        return current_confirm() or self._settings.confirm_writes

    @property
    @open_to_scopes
    def files(self) -> FileWriter:
        """Writes files where `policy` allows it."""
        return self._writer(self._store)

    @property
    @open_to_scopes
    def revisions(self) -> FileHistory:
        """The contents that files had before tools changed them."""
        store = self._store

        def candidates(name: str) -> list[Path]:
            with store.reading() as reader:
                return files_with_history(reader, name)

        return files.revisions.FileHistory(self._writer(store), candidates)

    @property
    @open_to_scopes
    def undo(self) -> Undo:
        """Lists and undoes the changes that tools have written."""
        store = self._store
        collections = _collections(store)
        return files.undo.Undo(self._writer(store), lambda path: _name(path, collections))

    @open_to_scopes
    def file_name(self, path: Path) -> str:
        """``collection/path`` of a file; its absolute path if it is in no collection."""
        return _name(path, _collections(self._store))

    @property
    def summary(self) -> Summary:
        """Writes the texts that AI clients keep with the toolset ``summary``."""
        return files.summary.Summary(self.files)

    @property
    def images(self) -> Images:
        """Reads and writes the metadata of photos."""
        store = self._store
        return photos.images.Images(lambda: self._writer(store), self._exiftool())

    @staticmethod
    def photo_metadata(path: str | Path) -> PhotoMetadata:
        """Read the metadata of a photo. Raises PhotoError."""
        return photos.images.Images.show(path)

    @property
    def notes(self) -> Notes:
        """Reads, creates and lists notes, in the vault or in the collections."""
        store = self._store
        vault = self._settings.vault
        if vault is not None:
            directory = Path(vault).expanduser()
            return files.notes.Notes(
                lambda: files.vault.Vault.of_directory(directory), lambda: self._writer(store)
            )
        return files.notes.Notes(
            lambda: files.vault.Vault.of_collections(_collections(store)),
            lambda: self._writer(store),
        )

    @property
    def posts(self) -> PostArchive:
        """Lists, reads and searches the archive of posts."""
        return posts.archive.PostArchive(self._store, Path(self._settings.posts_dir))

    def has_posts(self) -> bool:
        """
        Whether there is an archive of posts. The default directory, ``data``, may hold anything, so
        it counts only if it looks like one.
        """
        directory = Path(self._settings.posts_dir)
        is_default = directory == Path(POSTS_DIR)
        return self.posts.looks_like_one() if is_default else self.posts.exists()

    def _policy(self, store: Store) -> WritePolicy:
        policy = self._policy_of_roots(store)
        pushed = self._settings.push_folder
        if pushed is None:
            return policy
        return replace(policy, pushed=Path(pushed).expanduser().resolve())

    def _policy_of_roots(self, store: Store) -> WritePolicy:
        settings = self._settings
        if settings.read_only_files:
            return writing.policy.WritePolicy.read_only()
        directories: list[str | Path] = [collection.path for collection in _collections(store)]
        if settings.vault is not None:
            directories.append(settings.vault)
        if self.confirms_writes:
            return writing.policy.WritePolicy.for_agent(directories, settings.write_roots)
        if settings.write_roots:
            return writing.policy.WritePolicy.explicit(settings.write_roots)
        return writing.policy.WritePolicy.default(directories)

    def _writer(self, store: Store) -> FileWriter:
        return writing.writer.FileWriter(
            store,
            self._policy(store),
            lambda files: ingest.index.index_files(store, files, _collections(store), self._events),
            confirm=self._confirm,
        )

    def _exiftool(self) -> ExifTool:
        """The program that writes into photos; one for each open database file."""
        opened = self._current()
        with self._lock:
            if opened.exiftool is None:
                opened.exiftool = photos.exiftool.ExifTool(self._settings.exiftool)
            return opened.exiftool


def _collections(store: Store) -> list[Collection]:
    with store.reading() as reader:
        return reader.collections.all()


def _name(path: Path, collections: Sequence[Collection]) -> str:
    """``collection/path`` of a file; its path if it is in no collection."""
    for collection in collections:
        root = Path(os.path.realpath(collection.path))
        if path.is_relative_to(root):
            return f"{collection.name}/{path.relative_to(root).as_posix()}"
    return str(path)

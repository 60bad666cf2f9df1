"""
Makes what works on files: notes, summaries, photos, posts, and their history.

`parts.py` imports this module when the first of them is needed, since `qmd search` needs none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.files.notes.notes import Notes
from qmd.files.notes.vault import Vault
from qmd.files.posts.archive import PostArchive
from qmd.files.revisions import FileHistory
from qmd.files.summary import Summary
from qmd.files.writing.policy import WritePolicy
from qmd.files.writing.writer import FileWriter
from qmd.ingest.collection_paths import candidate_files
from qmd.ingest.index import index_file
from qmd.settings import Settings

if TYPE_CHECKING:
    from qmd.files.photos.exiftool import ExifTool
    from qmd.files.photos.images import Images
    from qmd.ingest.events import EventBus
    from qmd.store import Store
    from qmd.values import Collection


class FileTools:
    """
    Makes the objects behind `KnowledgeBase.notes` and the properties beside it, for one store.

    ``events``: who is told of files that were indexed; None while nobody listens.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        events: Callable[[], EventBus | None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._events = events
        self._exiftool: ExifTool | None = None
        self._lock = threading.Lock()

    def policy(self) -> WritePolicy:
        settings = self._settings
        if settings.read_only_files:
            return WritePolicy.read_only()
        directories: list[str | Path] = [each.path for each in self._collections()]
        if settings.vault is not None:
            directories.append(settings.vault)
        if settings.confirm_writes is not None:
            return WritePolicy.for_agent(directories, settings.write_roots)
        if settings.write_roots:
            return WritePolicy.explicit(settings.write_roots)
        return WritePolicy.default(directories)

    def files(self) -> FileWriter:
        return FileWriter(
            self._store, self.policy(), self._index, confirm=self._settings.confirm_writes
        )

    def revisions(self) -> FileHistory:
        return FileHistory(
            self._store, self.files(), lambda path: candidate_files(path, self._collections())
        )

    def summary(self) -> Summary:
        return Summary(self.files())

    def images(self) -> Images:
        from qmd.files.photos.exiftool import ExifTool
        from qmd.files.photos.images import Images

        with self._lock:
            if self._exiftool is None:
                self._exiftool = ExifTool(self._settings.exiftool)
        return Images(self.files, self._exiftool)

    def notes(self) -> Notes:
        if self._settings.vault is not None:
            vault = Path(self._settings.vault).expanduser()
            return Notes(lambda: Vault.of_directory(vault), self.files)
        return Notes(lambda: Vault.of_collections(self._collections()), self.files)

    def posts(self) -> PostArchive:
        return PostArchive(self._store, Path(self._settings.posts_dir))

    def close(self) -> None:
        """End the program that writes into photos, if it runs."""
        if self._exiftool is not None:
            self._exiftool.close()

    def _collections(self) -> list[Collection]:
        with self._store.reading() as reader:
            return reader.collections.all()

    def _index(self, file: Path) -> None:
        index_file(self._store, file, self._collections(), self._events())

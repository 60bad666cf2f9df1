"""
KnowledgeBase: the library's face, and all that the command line and the servers call.

This module opens and closes it; each module beside it holds the methods of one capability. Most of
them import a layer on the first call that needs it, which keeps `qmd search` quick to start.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from qmd.kb.collections import CollectionMethods
from qmd.kb.documents import DocumentMethods
from qmd.kb.embedding import EmbeddingMethods
from qmd.kb.files import FileMethods
from qmd.kb.indexing import IndexingMethods
from qmd.kb.search import SearchMethods
from qmd.kb.upkeep import UpkeepMethods
from qmd.settings import Settings
from qmd.store import Store, open_store


class KnowledgeBase(
    CollectionMethods,
    IndexingMethods,
    EmbeddingMethods,
    SearchMethods,
    DocumentMethods,
    FileMethods,
    UpkeepMethods,
):
    """
    One qmd database. Thread-safe: any thread may call any method.

    ``with KnowledgeBase.open("notes.sqlite", create=True) as kb: ...``

    Reading methods run on the calling thread; writing ones queue up behind each other and
    wait for their turn. Every error a caller can cause is a `QmdError` with a hint.
    """

    @classmethod
    def open(
        cls,
        path: str | Path,
        settings: Settings = Settings(),
        *,
        create: bool = False,
        read_only: bool = False,
    ) -> KnowledgeBase:
        """
        Open a database file.

        Args:
            settings: Which models it uses, and where its tools may write.
            create: Make the file if there is none; an older one is brought up to date.
            read_only: Never write; many processes may do so at once.

        Raises:
            DatabaseMissingError: The file does not exist and ``create`` is false.
            SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
            MigrationRequiredError: As their names say; the file is left as it was.
        """
        store = open_store(Path(path).expanduser(), create=create, read_only=read_only)
        try:
            _remove_abandoned_files(store)
        except BaseException:
            store.close()
            raise
        return cls(store, settings)

    def close(self) -> None:
        """Wait for what is being written, then close the file. May be called twice."""
        if self._keeper is not None:
            self._keeper.stop()
        with self._reopening:
            self._closed = True
        self._opened.close()

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _remove_abandoned_files(store: Store) -> None:
    """Remove the temporary files of processes that died while they wrote; mostly there are none."""
    with store.reading() as reader:
        if not reader.pending.all():
            return
    from qmd.files.writing.writer import clean_up

    clean_up(store)

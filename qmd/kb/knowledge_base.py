"""Opens and closes a knowledge base, whose methods are those of the other modules."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from qmd.kb.access import AccessMethods
from qmd.kb.chats import ChatMethods
from qmd.kb.documents import DocumentMethods
from qmd.kb.editing import EditingMethods, MovingMethods
from qmd.kb.files import FileMethods, PhotoMethods
from qmd.kb.graph import GraphMethods
from qmd.kb.indexing import CollectionMethods, EmbeddingMethods, IndexingMethods
from qmd.kb.memory import CapturingMethods, MemoryMethods
from qmd.kb.opening import opened_store
from qmd.kb.search import SearchMethods
from qmd.kb.transfer import PushingMethods, TransferMethods
from qmd.kb.upkeep import UpkeepMethods
from qmd.settings import Settings
from qmd.values.location import ServerDatabase, as_location

if TYPE_CHECKING:
    from qmd.values import ProgressCallback


class KnowledgeBase(
    CollectionMethods,
    IndexingMethods,
    EmbeddingMethods,
    MemoryMethods,
    GraphMethods,
    SearchMethods,
    PhotoMethods,
    DocumentMethods,
    MovingMethods,
    CapturingMethods,
    ChatMethods,
    AccessMethods,
    TransferMethods,
    PushingMethods,
    UpkeepMethods,
    # Others above inherit from these two:
    EditingMethods,
    FileMethods,
):
    """
    An open qmd database. Thread-safe: any thread may call any method.

    ``with KnowledgeBase.open("notes.sqlite", create=True) as kb: ...``

    A method that reads runs on the calling thread. A method that writes waits until earlier writes
    are finished. Every error that a caller can cause is a `QmdError` with a hint.
    """

    @classmethod
    def open(
        cls,
        path: str | Path | ServerDatabase,
        settings: Settings = Settings(),
        *,
        create: bool = False,
        read_only: bool = False,
        progress: ProgressCallback | None = None,
    ) -> KnowledgeBase:
        """
        Open a database.

        Args:
            path: The SQLite file, where ``~`` stands for the home directory; or the URL of a
                PostgreSQL database, ``postgresql://…``.
            settings: Which models to use, and where tools may write.
            create: Create the file (on a server: the tables) if it does not exist, and migrate a
                database of an older version.
            read_only: Refuse every write. Any number of processes may open a database so.
            progress: Called before each migration of an older file.

        Raises:
            DatabaseMissingError: It does not exist and ``create`` is false.
            DatabaseUnreachableError: The server of the database cannot be reached.
            ConfigError: A URL is malformed, or names no replica of the database.
            SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError,
            MigrationRequiredError: As their names say. The file is not changed.
        """
        replica = None if settings.replica is None else as_location(settings.replica)
        store = opened_store(path, replica, create=create, read_only=read_only, progress=progress)
        return cls(store, settings)

    def close(self) -> None:
        """Wait for the running write to finish, then close the file. May be called twice."""
        if self._keeper is not None:
            self._keeper.stop()
        if self._listener is not None:
            self._listener.stop()
        self._release_lock()
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

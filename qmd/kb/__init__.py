"""
KnowledgeBase: the library's face, and all that the command line and the servers call.

Here it is opened and closed; what it can do is in the modules beside, by capability.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from qmd.files.file_tools import Places, clear_away
from qmd.kb.collections import Collections
from qmd.kb.documents import Documents
from qmd.kb.embedding import Embedding
from qmd.kb.files import Files
from qmd.kb.indexing import Indexing
from qmd.kb.search import Search
from qmd.kb.upkeep import Upkeep
from qmd.models.backends import BackendSettings
from qmd.store.sqlite.store import Store

if TYPE_CHECKING:
    from qmd.files.proposed import Confirm
    from qmd.inference.protocols import Embedder, Expander, Reranker


class KnowledgeBase(Collections, Indexing, Embedding, Search, Documents, Files, Upkeep):
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
        confirm_writes: Confirm | None = None,
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
            confirm_writes: For those who hand the tools to a language model. It is called with
                each change that a tool would make (`qmd.files.proposed`), and what it does not
                answer with True is not written. Tools then write inside the collections and the
                vault alone (or below ``write_roots``), and never what steers other programs.

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
                confirm_writes,
            ),
            backends=backends,
        )

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

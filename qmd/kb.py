"""
KnowledgeBase: the library's face, and all that the command line and the servers call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from qmd.model import (
    Check,
    CleanupReport,
    Collection,
    Context,
    DocumentInfo,
    DocumentSlice,
    EmbedReport,
    Explanation,
    Filters,
    IndexReport,
    MultiGetReply,
    Progress,
    SearchReply,
    Status,
)

ProgressCallback = Callable[[Progress], None]


class KnowledgeBase:
    """
    One qmd database. Thread-safe: any thread may call any method.

    ``with KnowledgeBase.open("notes.sqlite", create=True) as kb: ...``
    """

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = False,
        read_only: bool = False,
        model: str | None = None,
    ) -> KnowledgeBase:
        """
        Open a database file.

        Raises:
            DatabaseMissingError: The file does not exist and ``create`` is false.
            SchemaTooNewError, NotADatabaseError, CorruptDatabaseError, DatabaseBusyError.
        """
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

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
        """Register a directory; `index` fills it. Raises InputError, ConflictError."""
        raise NotImplementedError

    def collections(self) -> list[Collection]:
        """By last update, newest first."""
        raise NotImplementedError

    def collection(self, name: str) -> Collection:
        raise NotImplementedError

    def remove_collection(self, name: str) -> Collection:
        raise NotImplementedError

    def rename_collection(self, old: str, new: str) -> Collection:
        raise NotImplementedError

    def add_context(self, path: str, text: str) -> Context:
        """``path``: a directory or file on the disk, ``qmd://collection/prefix``, or ``/``."""
        raise NotImplementedError

    def contexts(self) -> list[Context]:
        raise NotImplementedError

    def remove_context(self, path: str) -> Context:
        raise NotImplementedError

    # -- disk → store ------------------------------------------------------------------

    def index(
        self,
        collections: Sequence[str] = (),
        *,
        verify: bool = False,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the store in line with the disk; ``verify`` reads files that look unchanged too."""
        raise NotImplementedError

    def update(
        self, *, pull: bool = False, progress: ProgressCallback | None = None
    ) -> IndexReport:
        """``git pull`` in each collection that is a git work tree (if ``pull``), then `index`."""
        raise NotImplementedError

    def embed(
        self,
        collections: Sequence[str] = (),
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> EmbedReport:
        """Make the missing vectors. Raises ModelMissingError, VectorsUnavailableError."""
        raise NotImplementedError

    def why(self, path: str | Path) -> Explanation:
        raise NotImplementedError

    # -- search and read ---------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.0,
        filters: Filters = Filters(),
        explain: bool = False,
    ) -> SearchReply:
        """Full text (BM25). ``limit`` None means all. Raises InputError, CollectionNotFoundError."""
        raise NotImplementedError

    def vsearch(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float = 0.3,
        filters: Filters = Filters(),
        explain: bool = False,
    ) -> SearchReply:
        """Vectors. Raises VectorIndexMissingError, ModelMissingError, VectorsUnavailableError."""
        raise NotImplementedError

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
    ) -> SearchReply:
        """Both, fused; full text alone where vectors are missing (``reply.degraded`` says why)."""
        raise NotImplementedError

    def get(
        self, file: str, *, from_line: int | None = None, max_lines: int | None = None
    ) -> DocumentSlice:
        """
        One document, by ``collection/path``, ``qmd://…``, a path on the disk, a unique suffix,
        ``#docid`` or six hex digits; ``:LINE`` behind it beats ``from_line``.

        Raises:
            DocumentNotFoundError: With up to three suggestions.
            AmbiguousNameError: More than one document fits.
        """
        raise NotImplementedError

    def multi_get(
        self, pattern: str, *, max_lines: int | None = None, max_bytes: int = 10240
    ) -> MultiGetReply:
        """Several documents by glob or comma-separated list. Raises NoMatchError."""
        raise NotImplementedError

    def documents(self, prefix: str = "") -> list[DocumentInfo]:
        """The documents below ``collection/prefix``, by collection and path."""
        raise NotImplementedError

    # -- upkeep ------------------------------------------------------------------------

    def status(self) -> Status:
        raise NotImplementedError

    def cleanup(self, *, dry_run: bool = False) -> CleanupReport:
        raise NotImplementedError

    def doctor(self) -> list[Check]:
        raise NotImplementedError

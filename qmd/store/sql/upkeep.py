"""Counts for `status`, and the work of `cleanup`, `backup` and `doctor` on the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from weakref import WeakKeyDictionary

from qmd.errors import ScopeError, ServerDatabaseError
from qmd.records import NamedTuple
from qmd.store.sql import Capability, Connection, Sql, shared

#: Telling the texts of so many documents apart takes 20 ms.
MOST_COMPARED = 10_000
#: Connection → the state of the chunks, and how many texts waited for vectors then.
_waiting: WeakKeyDictionary[Connection, tuple[object, int]] = WeakKeyDictionary()


class Counts(NamedTuple):
    """
    How much the database holds.

    ``chunks_outdated``: how many of those with a vector have another title or other headings now.
    ``needs_embedding``: how many distinct texts have a chunk without a vector.
    """

    documents: int
    chunks: int
    chunks_embedded: int
    chunks_outdated: int
    needs_embedding: int


class Leftovers(NamedTuple):
    """Rows that nothing refers to any more: a name for people, the table and the condition."""

    name: str
    table: str
    condition: str


#: What `cleanup` removes in the same way whatever the engine is.
LEFTOVERS_OF_ALL = (
    Leftovers(
        "texts of pictures that are gone",
        "z_picture_texts",
        "NOT EXISTS (SELECT 1 FROM z_pictures p WHERE p.source = z_picture_texts.source"
        " AND p.page = z_picture_texts.page)",
    ),
    Leftovers("models that are not in use", "z_models", "NOT active AND NOT next"),
)


class Upkeep(Capability):
    """Counts and checks the content of the database, and copies it."""

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        self._engine = sql.engine("upkeep")

    def counts(self) -> Counts:
        """How much the database holds."""
        number = self._sql.number
        chunks = self.count_chunks()
        return Counts(
            number("SELECT count(*) FROM documents"),
            chunks,
            chunks - self.count_chunks_waiting(),
            number(
                "SELECT count(*) FROM chunks WHERE next_hash IS NOT NULL AND model_id IS NOT NULL"
            ),
            self.count_contents_waiting(),
        )

    def count_chunks(self) -> int:
        """How many chunks there are."""
        return self._sql.number("SELECT count(*) FROM chunks")

    def count_chunks_waiting(self) -> int:
        """How many chunks have no vector."""
        return self._sql.number("SELECT count(*) FROM chunks WHERE model_id IS NULL")

    def size_bytes(self) -> int:
        """
        Bytes of the database in this snapshot; a part may not be in the main file yet.

        In a scope those of its texts: the size of the whole would tell of the others.
        """
        if self._sql.is_scoped:
            return self._sql.number("SELECT coalesce(sum(bytes), 0) FROM documents")
        return self._sql.number(self._engine.SIZE)

    def count_contents_waiting(self) -> int:
        """
        How many distinct texts have a chunk without a vector.

        It is cheap enough for every search: if more than `MOST_COMPARED` documents wait, those of
        equal text count one by one.
        """
        # Counting those of 300,000 chunks takes a quarter of a second, and most searches come when
        # nothing has changed since the last on their connection.
        connection = self._sql.connection
        state = self._engine.state_of_chunks(self._sql)
        if state is None:
            return self._count_contents()
        if _waiting.get(connection, (None, 0))[0] != state:
            _waiting[connection] = state, self._count_contents()
        return _waiting[connection][1]

    def _count_contents(self) -> int:
        documents = self._sql.number(
            "SELECT count(*) FROM (SELECT DISTINCT document_id FROM chunks"
            " WHERE model_id IS NULL) AS waiting"
        )
        if not 1 < documents <= MOST_COMPARED:
            return documents
        return self._sql.number(
            "SELECT count(DISTINCT d.hash) FROM documents d WHERE d.id IN"
            " (SELECT document_id FROM chunks WHERE model_id IS NULL)"
        )

    def count_leftovers(self) -> dict[str, int]:
        """
        Name of a kind (for people) → how many rows of it nothing refers to any more.

        Empty in a scope: they belong to no collection.
        """
        if self._sql.is_scoped:
            return {}
        counts = {
            each.name: self._sql.number(f"SELECT count(*) FROM {each.table} WHERE {each.condition}")
            for each in self._engine.LEFTOVERS
        }
        counts |= self._engine.out_of_step(self._sql)
        return counts

    def problems(self, progress: Callable[[int, int, str], object] | None = None) -> list[str]:
        """
        The first twenty damages, as sentences. The call reads the whole database.

        Args:
            progress: Called before each check with the number of those done, of all, and its
                subject.

        Raises:
            ScopeError: In a scope.
        """
        self._require_whole()
        if self._sql.dialect.is_shared:
            return []  # the server checks its own files
        problems = self._sql.engine("damage").first_problems(self._sql.connection, progress)
        return list(problems)

    def migrations(self) -> list[str]:
        """The names of the migrations that made the schema, in order."""
        return list(self._sql.engine("migrate").applied(self._sql.connection))

    def copy_to(
        self,
        target: Path,
        *,
        replace: bool,
        progress: Callable[[int, int], object] | None = None,
    ) -> int:
        """
        Write this snapshot to a database file; others may write to the original meanwhile.

        Args:
            progress: Called with the bytes that are copied, and all bytes.

        Returns:
            The size of the copy in bytes.

        Raises:
            ConflictError: The target exists and ``replace`` is false, or is a database in use.
            InputError, StoreError, DiskFullError: The copy cannot be written; no part of it stays.
            ServerDatabaseError: The database is on a server.
            ScopeError: In a scope.
        """
        self._require_whole()
        if self._sql.dialect.is_shared:
            raise ServerDatabaseError(
                "qmd backs up database files; this database is on a server.",
                hint="Use the server's own tools: pg_dump -Fc URL > FILE, and pg_restore to put it"
                " back. See docs/postgresql.md.",
            )
        copy = self._sql.engine("copies").copy
        return int(copy(self._sql.connection, target, replace=replace, progress=progress))

    def _require_whole(self) -> None:
        if self._sql.is_scoped:
            raise ScopeError


class UpkeepWriter(Upkeep):
    """Removes what is no longer needed."""

    def remove_leftovers(
        self, progress: Callable[[int, int, str], object] | None = None
    ) -> dict[str, int]:
        """
        Remove what `count_leftovers` counts, and return the counts.

        ``progress``: called before each kind with the number of those done, of all steps of a
        cleanup, and its name.
        """
        removed: dict[str, int] = {}
        out_of_step: dict[str, int] = self._engine.out_of_step(self._sql)
        tell = progress or (lambda done, total, subject: None)
        # With the free space, which is given back afterwards.
        steps = len(self._engine.LEFTOVERS) + len(out_of_step) + 1
        for name, table, condition in self._engine.LEFTOVERS:
            tell(len(removed), steps, name)  # what one removes may leave more for the next
            removed[name] = self._sql.run(f"DELETE FROM {table} WHERE {condition}").rowcount
        for name, count in out_of_step.items():
            tell(len(removed), steps, name)
            if count:
                self._engine.rebuild_full_text(self._sql.connection)
            removed[name] = count
        shared.advance_vectors(self._sql)
        return removed

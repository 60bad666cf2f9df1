"""Care of the database: status, cleanup, backup, restore, rescue and the checks of doctor."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import __version__, health, values
from qmd.errors import ServerDatabaseError
from qmd.kb.parts import Parts, open_to_scopes
from qmd.system import clock
from qmd.values.location import ServerDatabase, as_location

if TYPE_CHECKING:
    from qmd.store import Reader, Store
    from qmd.values.reports import Overview, WarnedDocument


class UpkeepMethods(Parts):
    @open_to_scopes
    def status(self) -> values.Status:
        """Count what is indexed, what waits for vectors and what was left out."""
        with self._store.reading() as reader:
            return health.status.read(reader, self.location, self._embedders, self._settings.ocr)

    @open_to_scopes
    def overview(self) -> Overview:
        """The figures of `status` that cost little, and how many files were skipped."""
        with self._store.reading() as reader:
            return health.status.read_overview(reader, self.location, self._embedders)

    @open_to_scopes
    def skips(self, reason: str, *, offset: int = 0, limit: int = 100) -> list[values.SkippedFile]:
        """A page of the files that were skipped for a reason, by collection and path."""
        with self._store.reading() as reader:
            return reader.files.skips(reason, offset=offset, limit=limit)

    @open_to_scopes
    def count_warned(self) -> int:
        """How many documents were read with warnings."""
        return self._store.read(lambda reader: reader.files.count_warned())

    @open_to_scopes
    def warned(self, *, offset: int = 0, limit: int = 100) -> list[WarnedDocument]:
        """A page of the documents that were read with warnings, by collection and path."""
        return self._store.read(lambda reader: reader.files.warned(offset=offset, limit=limit))

    @open_to_scopes
    def indexed_per_hour(self, since: datetime) -> dict[datetime, int]:
        """
        How many documents the index took in, as they are now, by hour (UTC), oldest first.

        A document counts once, in the hour in which it was last read.
        """
        with self._store.reading() as reader:
            hours = reader.files.indexed_per_hour(clock.from_ns(int(since.timestamp() * 1e9)))
        return {datetime.fromisoformat(f"{hour}:00:00+00:00"): count for hour, count in hours}

    @property
    def plugins(self) -> tuple[str, ...]:
        """The names of the plugins that its settings turn on."""
        return tuple(self._settings.plugins)

    def cleanup(
        self, *, dry_run: bool = False, progress: values.ProgressCallback | None = None
    ) -> values.CleanupReport:
        """
        Remove rows that nothing refers to any more, and give their space back to the disk.

        Args:
            dry_run: Only count what would be removed.
            progress: Called before each step.
        """

        def tell(done: int, total: int, subject: str) -> None:
            if progress is not None:
                progress(values.Progress("cleanup", done, total, subject))

        store = self._store
        store.require_current()
        with store.reading() as reader:
            before = _size_bytes(store, reader)
            if dry_run:
                return values.CleanupReport(
                    dry_run=True,
                    removed=reader.upkeep.count_leftovers(),
                    bytes_before=before,
                    bytes_after=before,
                )
        removed = store.write(lambda writer: writer.upkeep.remove_leftovers(tell))
        tell(len(removed), len(removed) + 1, "free space of the database")
        store.compact()
        after = store.read(lambda reader: _size_bytes(store, reader))
        return values.CleanupReport(
            dry_run=False,
            removed=removed,
            bytes_before=before,
            bytes_after=after,
        )

    def backup(
        self,
        path: str | Path,
        *,
        force: bool = False,
        progress: values.ProgressCallback | None = None,
    ) -> int:
        """
        Write a consistent copy of the database to a file; other processes may write meanwhile.

        Args:
            path: Its directory must have room for all of it.
            progress: Called with the megabytes that are copied.

        Returns:
            The copy's size in bytes.

        Raises:
            ConflictError: The file exists and ``force`` is false.
            InputError, StoreError, DiskFullError: The copy cannot be written.
        """
        target = Path(path).expanduser().absolute()
        with self._store.reading() as reader:
            if progress is None:
                return reader.upkeep.copy_to(target, replace=force)
            return reader.upkeep.copy_to(
                target,
                replace=force,
                progress=lambda done, total: progress(
                    values.Progress("backup", done // 1_000_000, total // 1_000_000, "megabytes")
                ),
            )

    @staticmethod
    def backup_older(
        database: str | Path | ServerDatabase, path: str | Path, *, force: bool = False
    ) -> int:
        """
        As `backup`, of a database of an earlier version, which is left as it is.

        Raises:
            NotADatabaseError, SchemaTooNewError, CorruptDatabaseError: As their names say.
            Those of `backup`.
        """
        target = Path(path).expanduser().absolute()
        return health.restore.backup_older(_file(database), target, replace=force)

    @staticmethod
    def restore(database: str | Path | ServerDatabase, backup: str | Path) -> Path | None:
        """
        Replace a database by a backup. The old database is kept under another name.

        Returns:
            The path of the old database; None if there was none.

        Raises:
            DatabaseMissingError: The backup does not exist.
            ServerDatabaseError: The database is on a server.
            ConflictError: A program has the database open.
            StoreError: The backup is damaged, or this program cannot read it.
        """
        return health.restore.restore(_file(database), Path(backup).expanduser())

    @staticmethod
    def rescue(database: str | Path | ServerDatabase) -> values.Rescued:
        """
        Replace a damaged database by a new one that holds what can still be read of it.

        Collections, contexts, earlier contents of files and vectors are saved; `index` then reads
        the documents again. The damaged file is kept under another name.

        Raises:
            DatabaseMissingError: The file does not exist.
            ServerDatabaseError: The database is on a server.
            ConflictError: A program has the database open.
            CorruptDatabaseError: Nothing can be read of it; it is not changed.
        """
        return health.restore.rescue(_file(database))

    def doctor(
        self, *, home: Path | None = None, progress: values.ProgressCallback | None = None
    ) -> list[values.Check]:
        """
        Check the database and its surroundings; each problem comes with a remedy.

        Args:
            home: The directory with the settings of AI clients; None for the user's home.
            progress: Called before each check of the database, which reads all of it.
        """
        opened = self._current()
        return health.doctor.examine(
            opened.store,
            opened.embedders,
            opened.backends,
            home or Path.home(),
            self._settings.exiftool,
            version=__version__,
            progress=progress,
        )


def _size_bytes(store: Store, reader: Reader) -> int:
    """Of a file all that it takes on the disk; of a server what it says."""
    location = store.location
    return location.stat().st_size if isinstance(location, Path) else reader.upkeep.size_bytes()


def _file(database: str | Path | ServerDatabase) -> Path:
    """Raises ServerDatabaseError: It is a database on a server."""
    location = as_location(database)
    if isinstance(location, Path):
        return location.absolute()
    raise ServerDatabaseError(
        f"Only a database file can be replaced by qmd; {location} is on a server.",
        hint="Use the server's own tools, such as pg_restore. See docs/postgresql.md.",
    )

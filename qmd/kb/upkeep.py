"""Care of the database: status, cleanup, backup, restore, rescue and the checks of doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from datetime import datetime

    from qmd.values import Check, CleanupReport, Rescued, SkippedFile, Status
    from qmd.values.reports import Overview, WarnedDocument


class UpkeepMethods(Parts):
    def status(self) -> Status:
        """Count what is indexed, what waits for vectors and what was left out."""
        from qmd.health import status

        with self._store.reading() as reader:
            return status.read(reader, self.path)

    def overview(self) -> Overview:
        """The figures of `status` that cost little, and how many files were skipped."""
        from qmd.health import status

        with self._store.reading() as reader:
            return status.read_overview(reader, self.path)

    def skips(self, reason: str, *, offset: int = 0, limit: int = 100) -> list[SkippedFile]:
        """A page of the files that were skipped for a reason, by collection and path."""
        with self._store.reading() as reader:
            return reader.files.skips(reason, offset=offset, limit=limit)

    def count_warned(self) -> int:
        """How many documents were read with warnings."""
        with self._store.reading() as reader:
            return reader.files.count_warned()

    def warned(self, *, offset: int = 0, limit: int = 100) -> list[WarnedDocument]:
        """A page of the documents that were read with warnings, by collection and path."""
        with self._store.reading() as reader:
            return reader.files.warned(offset=offset, limit=limit)

    def indexed_per_hour(self, since: datetime) -> dict[datetime, int]:
        """
        How many documents the index took in, as they are now, by hour (UTC), oldest first.

        A document counts once, in the hour in which it was last read.
        """
        from datetime import datetime

        from qmd.system import clock

        with self._store.reading() as reader:
            hours = reader.files.indexed_per_hour(clock.from_ns(int(since.timestamp() * 1e9)))
        return {datetime.fromisoformat(f"{hour}:00:00+00:00"): count for hour, count in hours}

    def cleanup(self, *, dry_run: bool = False) -> CleanupReport:
        """
        Remove rows that nothing refers to any more, and give their space back to the disk.

        Args:
            dry_run: Only count what would be removed.
        """
        from qmd.values import CleanupReport

        store = self._store
        store.require_current()
        before = store.path.stat().st_size
        if dry_run:
            with store.reading() as reader:
                return CleanupReport(
                    dry_run=True,
                    removed=reader.upkeep.count_leftovers(),
                    bytes_before=before,
                    bytes_after=before,
                )
        removed = store.write(lambda writer: writer.upkeep.remove_leftovers())
        store.compact()
        return CleanupReport(
            dry_run=False,
            removed=removed,
            bytes_before=before,
            bytes_after=store.path.stat().st_size,
        )

    def backup(self, path: str | Path, *, force: bool = False) -> int:
        """
        Write a consistent copy of the database to a file; other processes may write meanwhile.

        Returns:
            The copy's size in bytes.

        Raises:
            ConflictError: The file exists and ``force`` is false.
            InputError, StoreError, DiskFullError: The copy cannot be written.
        """
        target = Path(path).expanduser().absolute()
        with self._store.reading() as reader:
            return reader.upkeep.copy_to(target, replace=force)

    @staticmethod
    def restore(database: str | Path, backup: str | Path) -> Path | None:
        """
        Replace a database by a backup. The old database is kept under another name.

        Returns:
            The path of the old database; None if there was none.

        Raises:
            DatabaseMissingError: The backup does not exist.
            ConflictError: A program has the database open.
            StoreError: The backup is damaged, or this program cannot read it.
        """
        from qmd.health.restore import restore

        return restore(Path(database).expanduser().absolute(), Path(backup).expanduser())

    @staticmethod
    def rescue(database: str | Path) -> Rescued:
        """
        Replace a damaged database by a new one that holds what can still be read of it.

        Collections, contexts, earlier contents of files and vectors are saved; `index` then reads
        the documents again. The damaged file is kept under another name.

        Raises:
            DatabaseMissingError: The file does not exist.
            ConflictError: A program has the database open.
            CorruptDatabaseError: Nothing can be read of it; it is not changed.
        """
        from qmd.health.restore import rescue

        return rescue(Path(database).expanduser().absolute())

    def doctor(self, *, home: Path | None = None) -> list[Check]:
        """
        Check the database and its surroundings; each problem comes with a remedy.

        Args:
            home: The directory with the settings of AI clients; None for the user's home.
        """
        from qmd import __version__
        from qmd.health import doctor

        opened = self._current()
        return doctor.examine(
            opened.store,
            opened.embedders,
            opened.backends,
            home or Path.home(),
            self._settings.exiftool,
            version=__version__,
        )

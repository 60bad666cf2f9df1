"""The database itself: its state, its size, its copies, its health."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from qmd.values import Check, CleanupReport, Rescued, Status


class UpkeepMethods(Parts):
    def status(self) -> Status:
        """What is indexed, waits for vectors, or was left out."""
        from qmd.health import status

        with self._store.reading() as reader:
            return status.read(reader, self.path)

    def cleanup(self, *, dry_run: bool = False) -> CleanupReport:
        """Remove what nothing refers to any more, and give the space back to the disk."""
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
        Write a consistent copy of the database to a file, while others go on writing.

        Returns:
            The copy's size in bytes.

        Raises:
            ConflictError: The file exists and ``force`` is false.
            InputError, StoreError, DiskFullError: It cannot be written.
        """

        target = Path(path).expanduser().absolute()
        with self._store.reading() as reader:
            return reader.upkeep.copy_to(target, replace=force)

    @staticmethod
    def restore(database: str | Path, backup: str | Path) -> Path | None:
        """
        Put a backup in the place of a database that no program has open; the old one is kept.

        Returns:
            Where the old database is now, None if there was none.

        Raises:
            DatabaseMissingError: There is no such backup.
            ConflictError: A program keeps the database, or has it open.
            StoreError: The backup is damaged, or none that this program can read.
        """
        from qmd.health.restore import restore

        return restore(Path(database).expanduser().absolute(), Path(backup).expanduser())

    @staticmethod
    def rescue(database: str | Path) -> Rescued:
        """
        Replace a damaged database by a new one with what can be read of it; the old one is kept.

        Saved are collections, contexts, earlier contents of files and vectors; `index` makes the
        documents anew.

        Raises:
            DatabaseMissingError: There is no such file.
            ConflictError: A program keeps the database, or has it open.
            CorruptDatabaseError: Nothing can be read of it; it was left as it is.
        """
        from qmd.health.rescue import rescue

        return rescue(Path(database).expanduser().absolute())

    def doctor(self, *, home: Path | None = None) -> list[Check]:
        """
        Everything that may be wrong, each with a remedy.

        Args:
            home: Where AI clients keep their settings; None for the user's home directory.
        """
        from qmd.health import doctor

        opened = self._current()
        return doctor.examine(
            opened.store,
            opened.embedders,
            opened.backends,
            home or Path.home(),
            self._settings.exiftool,
        )

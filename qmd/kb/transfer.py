"""Taking over folders of other programs, and carrying a knowledge base to another machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import __version__, transfer
from qmd.kb.parts import Parts
from qmd.store import open_store
from qmd.values.location import database_location

if TYPE_CHECKING:
    from qmd.transfer.programs import Program
    from qmd.transfer.take_back import Move
    from qmd.values import ProgressCallback
    from qmd.values.exports import CopyReport, ExportReport, ReturnReport
    from qmd.values.imports import ImportPlan, ImportReport, UnpackReport


class TransferMethods(Parts):
    @staticmethod
    def plan_import(program: Program, file: str | Path | None = None) -> ImportPlan:
        """
        Read which folders another program has; nothing is changed.

        Args:
            file: Its configuration file; None for the place where the program keeps it. For
                tobi/qmd also the name of one of its indexes.

        Raises:
            NotFoundError: There is no such file.
            InputError: It is not one of the program.
        """
        path = None if file is None else Path(file).expanduser()
        return transfer.programs.plan(program, path, os.environ, Path.home())

    def import_folders(self, plan: ImportPlan, *, dry_run: bool = False) -> ImportReport:
        """
        Add the collections and contexts of a plan; `index` then fills the collections.

        Nothing that is there is changed, and the report lists what was not taken.

        Args:
            dry_run: Only say what would be added.
        """
        record = self._audit_record("import", str(Path(plan.source).absolute()))
        return transfer.take_over.take_over(self._store, plan, dry_run=dry_run, record=record)

    def export(
        self, target: str | Path, *, settings: bytes | None = None, force: bool = False
    ) -> ExportReport:
        """
        Write what only the database holds: collections, contexts, history and conversations.

        Documents and vectors are left out, because the files of the notes give them again.

        Args:
            target: A folder, or an archive if the name ends in ``.zip``.
            settings: The content of ``config.toml``, to be kept with it.
            force: Replace an export that is there.

        Raises:
            ConflictError: The target exists and ``force`` is false, or it is no export.
            StoreError: It cannot be written.
        """
        path = Path(target).expanduser().absolute()
        return transfer.export.export(
            self._store, path, settings=settings, version=__version__, force=force
        )

    def import_export(
        self, source: str | Path, *, moves: Sequence[Move] = (), dry_run: bool = False
    ) -> ReturnReport:
        """
        Add what `export` wrote; nothing that is there is changed. `index` then fills it.

        Args:
            moves: Folders that have another path on this machine, as (there, here).
            dry_run: Only say what would be added.

        Raises:
            NotFoundError: There is nothing at the path.
            InputError: It is no export, or is damaged. Nothing was changed.
        """
        path = Path(source).expanduser().absolute()
        record = self._audit_record("import", str(path))
        return transfer.take_back.take_back(
            self._store, path, moves=moves, dry_run=dry_run, record=record
        )

    def copy_to(self, target: str, *, progress: ProgressCallback | None = None) -> CopyReport:
        """
        Copy this knowledge base into another database, on a server or in a file.

        A copy that was interrupted goes on where it was: what is there already stays as it is.

        Args:
            target: A URL of PostgreSQL, or the path of a file; it is created if it is not there.

        Raises:
            ConflictError: A collection there has the name of another folder here.
            StoreError: One of the databases cannot be used. What was copied stays.
        """
        location = database_location(target)
        if isinstance(location, Path):
            location = location.expanduser().absolute()
        with closing(open_store(location, create=True)) as store:
            return transfer.copy_to.copy_to(
                self._store,
                store,
                name=str(location),
                version=__version__,
                progress=progress or (lambda tick: None),
            )

    def record_import(self, source: str | Path, folder: str | Path) -> None:
        """Write in the audit log that `unpack_notes` has written files into a folder."""
        self._write_audited(self._store, "import", f"{source}: {folder}", lambda writer: None)

    @staticmethod
    def unpack_notes(
        archive: str | Path,
        folder: str | Path,
        *,
        encoding: str | None = None,
        dry_run: bool = False,
    ) -> UnpackReport:
        """
        Unpack a ZIP archive of notes into a folder; no file that is there is changed.

        Args:
            encoding: That of names that do not say theirs, such as "gbk"; None to detect it.
            dry_run: Write nothing.

        Raises:
            NotFoundError: There is no such archive.
            InputError: It is none, is encrypted, or holds more than may be unpacked.
            StoreError: The folder cannot be written.
        """
        source, target = Path(archive).expanduser(), Path(folder).expanduser()
        return transfer.markdown_zip.unpack(
            source.absolute(), target.absolute(), encoding=encoding, dry_run=dry_run
        )

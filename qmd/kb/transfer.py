"""What comes from other programs and machines, and carrying a knowledge base to another."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import __version__, files, ingest, transfer
from qmd.errors import CollectionNotFoundError, ConflictError, WritesForbiddenError
from qmd.kb.parts import Parts
from qmd.store import open_store
from qmd.values.location import database_location

if TYPE_CHECKING:
    from qmd import values
    from qmd.files.pushed import PushedFolder
    from qmd.transfer.programs import Program
    from qmd.transfer.take_back import Move
    from qmd.values import Collection, ProgressCallback


class TransferMethods(Parts):
    @staticmethod
    def plan_import(program: Program, file: str | Path | None = None) -> values.transfer.ImportPlan:
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

    def import_folders(
        self, plan: values.transfer.ImportPlan, *, dry_run: bool = False
    ) -> values.transfer.ImportReport:
        """
        Add the collections and contexts of a plan; `index` then fills the collections.

        Nothing that is there is changed, and the report lists what was not taken.

        Args:
            dry_run: Only say what would be added.
        """
        record = self._audit_record("import", str(Path(plan.source).absolute()))
        return transfer.programs.carry_out(self._store, plan, dry_run=dry_run, record=record)

    def export(
        self, target: str | Path, *, settings: bytes | None = None, force: bool = False
    ) -> values.transfer.ExportReport:
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
    ) -> values.transfer.ReturnReport:
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

    def copy_to(
        self, target: str, *, progress: ProgressCallback | None = None
    ) -> values.transfer.CopyReport:
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
            return transfer.take_back.copy_to(
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
    ) -> values.transfer.UnpackReport:
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


#: Held while one step of a push is stored and indexed.
_pushing = threading.Lock()


class PushingMethods(Parts):
    @property
    def takes_pushes(self) -> bool:
        """Whether there is a directory for folders of other machines (`Settings.push_folder`)."""
        return self._settings.push_folder is not None

    def pushed_files(self, name: str, *, after: str = "") -> values.transfer.PushedFiles:
        """
        The files of a pushed folder, page by page, in the order of their paths.

        Args:
            name: The collection's name; one that nobody has pushed yet has no files.
            after: The last path of the page before; "" for the first page.

        Raises:
            WritesForbiddenError: This knowledge base takes no pushes.
            ConflictError: The collection of this name is a folder of this machine.
            InputError: ``name`` or ``after`` cannot be one.
        """
        folder = self._pushed_folder(name)
        self._pushed_collection(name, folder)
        return folder.listing(after)

    def push(self, name: str, push: values.transfer.Push) -> values.transfer.PushReport:
        """
        Store one step of a push, and index it. The first step makes the collection.

        Raises:
            As `pushed_files`; ReadOnlyError, DiskFullError.
        """
        return self._push(name, push, actor="")

    def _push(
        self, name: str, push: values.transfer.Push, *, actor: str
    ) -> values.transfer.PushReport:
        """As `push`; ``actor`` is the name of the client's token for the audit log."""
        self._store.require_writable()
        folder = self._pushed_folder(name)
        with _pushing:
            folder.create()
            collection = self._pushed_collection(name, folder)
            if collection is None:
                ingest.new_collection.check_globs(push.pattern)
                ingest.rules.Rules(folder.root, push.pattern)  # raises InputError
                collection = self._store.write(
                    lambda writer: writer.collections.add(
                        name=name,
                        path=str(folder.root),
                        pattern=push.pattern,
                        ignore=(),
                        owner=push.owner,
                    )
                )
            elif not actor and collection.owner != push.owner:
                # A token names the collections of its holder; the administrator's opens all.
                raise ConflictError(
                    f"The collection '{name}' is the folder of {collection.owner}.",
                    hint="Push yours under another name: --name NAME. If it is the same folder, add"
                    f" --owner '{collection.owner}'.",
                )
            elif collection.pattern != push.pattern:
                raise ConflictError(
                    f"The collection '{name}' has the mask {collection.pattern}.",
                    hint=f"Push with --mask '{collection.pattern}', or under another name.",
                )
            report, paths = folder.apply(push, name)
            ingest.index.index_files(self._store, paths, [collection], self._events)
            if paths:
                target = f"{name}: {report.stored} stored, {report.deleted} deleted"
                self._write_audited(self._store, "push", target, lambda writer: None, actor)
        return report

    def _pushed_folder(self, name: str) -> PushedFolder:
        place = self._settings.push_folder
        if place is None or self._settings.read_only_files:
            raise WritesForbiddenError(
                "This server takes no folders of other machines.",
                hint="Start it with --push-folder DIR, where it keeps them, not --read-only.",
            )
        ingest.new_collection.check_name(name)
        directory = Path(place).expanduser().resolve()
        return files.pushed.PushedFolder(directory / name, directory / ".parts" / name)

    def _pushed_collection(self, name: str, folder: PushedFolder) -> Collection | None:
        with self._store.reading() as reader:
            try:
                collection = reader.collections.by_name(name)
            except CollectionNotFoundError:
                return None
        if collection.path != str(folder.root) and collection.owner:
            raise ConflictError(
                f"The server keeps '{name}' in another directory, {collection.path}.",
                hint="On the server: start it with the --push-folder of before, or 'qmd collection"
                f" remove {name}' and push anew.",
            )
        if collection.path != str(folder.root):
            raise ConflictError(
                f"The collection '{name}' is a folder of the server itself.",
                hint="Push under another name: --name NAME.",
            )
        return collection

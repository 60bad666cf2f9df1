"""What the database records of the writes of a change: temporary files, and revisions."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qmd.errors import ConflictError, QmdError
from qmd.files.writing.locked_folder import LockedFolder, is_temporary_name, locked
from qmd.store.sql.revisions import FileStep, RevisionContent, pack_revision
from qmd.system import clock
from qmd.system.session import current_face
from qmd.values.access import AuditEntry

if TYPE_CHECKING:
    from qmd.store import Store, Writer

_log = logging.getLogger(__name__)


class ChangeRecords:
    """
    The records of one change.

    Attributes:
        number: The number of the change in the database; None before its first file.
    """

    def __init__(self, store: Store, *, tool: str, session: str, actor: str) -> None:
        """``actor``: The name of the token with which the client writes; "" without one."""
        self._store = store
        self._tool = tool
        self._session = session
        self._actor = actor
        self._open: set[str] = set()  # temporary files that this object has recorded
        self.number: int | None = None

    def begin(
        self, folder: LockedFolder, *, temporary: str | None = None, step: FileStep | None = None
    ) -> int | None:
        """
        Record a temporary file, and what is about to be done to a file, in one transaction. The
        latter is an entry of the audit log, too.

        Then remove the temporary files that killed processes have left in the directory. Since the
        directory is locked, no other process is writing them.

        Args:
            temporary: The name of the temporary file in ``folder``.

        Returns:
            The number of the revision, for `end`; None without a step.
        """

        entry = None if step is None else self._entry(step)  # the face is one of this thread

        def record(writer: Writer) -> tuple[int | None, int | None, list[str]]:
            recorded = writer.pending.in_directory(str(folder.path))
            abandoned = [path for path in recorded if path not in self._open]
            if temporary is not None:
                writer.pending.begin(str(folder.path / temporary))
            if step is None:
                return self.number, None, abandoned
            change = self.number or writer.revisions.begin_change(
                tool=self._tool, session=self._session
            )
            if entry is not None:
                writer.access.record(entry)
            return change, writer.revisions.keep(change, step), abandoned

        self.number, revision, abandoned = self._store.write(record)
        if temporary is not None:
            self._open.add(str(folder.path / temporary))
        if abandoned:
            discard(folder, abandoned)
            self.end(temporaries=abandoned)
        return revision

    def _entry(self, step: FileStep) -> AuditEntry:
        moved = "" if step.moved_from is None else f"{step.moved_from} to "
        target = f"{step.action} {moved}{step.path}"
        session = self._session
        return AuditEntry(clock.now(), self._actor, current_face(), session, self._tool, target)

    def end(self, *, temporaries: list[str], undone_revision: int | None = None) -> None:
        """
        Remove the records of temporary files, given by their absolute paths.

        Args:
            undone_revision: A revision to be removed, since its file was not changed after all.
        """

        self._open.difference_update(temporaries)

        def record(writer: Writer) -> None:
            writer.pending.end(temporaries)
            if undone_revision is not None:
                writer.revisions.forget(undone_revision)
                if self.number is not None and writer.revisions.change(self.number) is None:
                    self.number = None

        try:
            self._store.write(record)
        except QmdError as error:  # the next opening of the database removes the record
            _log.warning("a finished write stays noted: %s", error)


def content_to_keep(
    path: Path, content: bytes, kind: Literal["content", "metadata"] = "content"
) -> RevisionContent:
    """
    Prepare the present content of a file for a revision.

    Raises:
        ConflictError: It is too long.
    """
    kept = pack_revision(content, kind)
    if kept is None:
        raise ConflictError(
            f"{path} holds {len(content):,} bytes, more than the history of a file can keep.",
            hint="Rename the file first if its content may be replaced, or append to it.",
        )
    return kept


def discard(folder: LockedFolder, temporaries: list[str]) -> None:
    """Remove files of this directory, given by absolute paths, if their names are temporary."""
    for name in (Path(temporary).name for temporary in temporaries):
        if is_temporary_name(name):
            folder.discard_all(name)


def clean_up(store: Store) -> None:
    """
    Remove the temporary files of processes that died while they wrote.

    Files that are being written now stay, and so do files that cannot be reached.
    """
    by_directory: dict[Path, list[str]] = {}
    with store.reading() as reader:
        for temporary in reader.pending.all():
            by_directory.setdefault(Path(temporary).parent, []).append(temporary)
    removed: list[str] = []
    for directory, abandoned in by_directory.items():
        try:
            with locked(directory, wait_s=0) as folder:
                # The directory is locked, so the processes that recorded these files have ended.
                discard(folder, abandoned)
        except (FileNotFoundError, NotADirectoryError):
            pass  # the directory is gone, and the files with it
        except OSError as error:
            _log.info("temporary files stay for now: %s", error)
            continue
        removed += abandoned
    if removed and not store.read_only:  # else the next process that may write removes the records
        try:
            store.write(lambda writer: writer.pending.end(removed))
        except QmdError as error:
            _log.warning("%s", error)

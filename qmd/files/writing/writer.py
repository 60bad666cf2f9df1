"""
The writer that all tools use to change files.

It writes only where the policy allows it, replaces a file whole or not at all, keeps the old
content, records which tool changed what, and updates the index afterwards.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import libraries, values
from qmd.errors import ConflictError, FileChangedError, QmdError
from qmd.files.writing import locked_folder
from qmd.files.writing.policy import ResolvedPath, WritePolicy
from qmd.store.sql import revisions
from qmd.system import cancellation, clock
from qmd.system.session import current_face, current_session
from qmd.system.user_dirs import lock_beside, lock_mode
from qmd.values.access import AuditEntry
from qmd.values.text import fold
from qmd.values.writing import FileAction

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from qmd.store import Store, Writer
    from qmd.values.location import DatabaseLocation


_log = logging.getLogger(__name__)

#: How often a change is tried if another program keeps saving the file meanwhile.
_ATTEMPTS = 5


class FileWriter:
    """
    Changes files. Each file is changed atomically, and in one directory changes run one after the
    other, also those of other processes. After an `OSError` the file is unchanged.
    """

    def __init__(
        self,
        store: Store,
        policy: WritePolicy,
        update_index: Callable[[Sequence[Path]], None],
        *,
        confirm: values.proposed.Confirm | None = None,
        actor: str = "",
        whole_store: Store | None = None,
    ) -> None:
        """
        Args:
            store: What the client sees of the knowledge base.
            update_index: Called with the files that were changed.
            confirm: Called before each write, move and deletion; None if no confirmation is
                needed.
            actor: The name of the token with which the client writes, for the audit log.
            whole_store: Records what is written, so that it can be undone. A client with a scope
                sees a part of it; for all others it is ``store``.
        """
        self.store = store
        self.whole_store = whole_store or store
        self.policy = policy
        self._update_index = update_index
        self.confirm = confirm
        self.actor = actor

    @contextmanager
    def change(self, *, tool: str) -> Iterator[ChangeWriter]:
        """
        Change several files in the block as one change, which is undone as a whole.

        The index has the new contents when the block has ended; if not, `ChangeWriter.problem` says
        why. If the block fails, what it has written until then stays, is recorded and can be
        undone.

        Args:
            tool: The name of the tool that writes, for the history.
        """
        change = ChangeWriter(self, tool)
        try:
            yield change
        finally:
            if change.changed:
                change.problem = self.index(change.changed)

    def rewrite(
        self, path: str | Path | ResolvedPath, content: NewContentOf, *, tool: str
    ) -> Written:
        """`ChangeWriter.rewrite` as a change of its own."""
        with self.change(tool=tool) as change:
            written = change.rewrite(path, content)
        return replace(written, change=change.number, problem=change.problem)

    def join(self, number: int, later: int) -> int:
        """
        Make a change a part of the one that it goes on with; returns the number of what it is now.

        That is ``later`` if they do not belong together: `RevisionsWriter.join` says when.
        """
        is_one = self.whole_store.write(lambda writer: writer.revisions.join(number, later))
        return number if is_one else later

    def index(self, paths: Sequence[Path]) -> str | None:
        """
        Update the index after writes; returns a sentence that says why it failed.

        `change` does so at its end.

        No error is raised, because the files were written: a client would write them again.
        """
        try:
            with cancellation.uninterrupted():
                self._update_index(paths)
        except QmdError as error:
            names = ", ".join(map(str, paths[:3]))
            _log.warning("written, but not indexed: %s: %s", names, error)
            return error.with_hint
        return None


@dataclass(frozen=True, slots=True)
class NewMetadata:
    """
    A photo with other metadata: the history keeps that alone, and a person is shown that alone.

    Attributes:
        kept: The metadata that the photo had.
        before, after: As in `ProposedFields`.
    """

    data: bytes
    kept: bytes
    before: Mapping[str, tuple[str, ...]]
    after: Mapping[str, tuple[str, ...]]


#: What a file is to hold; None deletes it.
NewContent = bytes | NewMetadata | None
#: Called with the present content, None if there is no file; raises to leave the file as it is.
NewContentOf = Callable[["bytes | None"], NewContent]


class ChangeWriter:
    """
    Changes files as one change; `FileWriter.change` makes it.

    Attributes:
        number: The number of the change, for undo; None while no file was changed.
        changed: The files that were written, deleted and moved (both paths), in this order.
        problem: Set at the end of the change: a sentence that says why the index does not have the
            new contents; None if it has.
    """

    def __init__(self, files: FileWriter, tool: str) -> None:
        self._files = files
        self._tool = tool
        self._session = current_session()
        self.number: int | None = None
        self.changed: list[Path] = []
        self.problem: str | None = None

    def rewrite(self, path: str | Path | ResolvedPath, content: NewContentOf) -> Written:
        """
        Replace the content of a file by one that may depend on the present one, or delete the file.

        A file that does not exist is created, with the folders above it. Nobody else who uses this
        class changes the file in between, so that of several appends at the same time none is lost.
        The present content itself is not written again.

        Args:
            path: The file, as `WritePolicy.resolve` takes it.
            content: It may be called more than once.

        Raises:
            OutsideRootsError: The policy does not allow to write there.
            ConflictError: The present content is too long for a revision, and the new one does not
                begin with it.
            WriteDeclinedError: ``confirm`` did not allow the change.
            FileChangedError: The file has changed since ``confirm`` allowed the change.
            StoreError: The old content could not be kept, so the file was not changed.
            OSError: The disk or its permissions do not allow it.
            The errors of ``content``.
        """
        target = self._writable(path)
        with suppress(FileNotFoundError):
            target.lstat()  # raises for a path that is too long, before directories are made
        if self._files.confirm is not None:
            content = self._agreed(target, content, self._files.confirm)
        cancellation.check()
        with (
            cancellation.uninterrupted(),
            locked_folder.locked(target.parent, create=True) as folder,
        ):
            for _ in range(_ATTEMPTS):
                old = folder.read(target.name)
                present = None if old is None else old.data
                new = content(present)
                if self._put(folder, target, old, new):
                    self.changed.append(target)
                    return Written(target, old is not None, len(_data(new) or b""))
        raise OSError(errno.EBUSY, "The file is being changed", str(target))

    def delete(self, path: str | Path | ResolvedPath, *, if_hash: str | None = None) -> Written:
        """
        Delete a file; its content becomes a revision.

        Args:
            if_hash: The SHA-256 that the content must have, in hexadecimal.

        Raises:
            FileNotFoundError: There is no such file.
            FileChangedError: The content has another hash.
            The other errors of `rewrite`.
        """

        def nothing(present: bytes | None) -> None:
            if present is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            if if_hash is not None and _hash(present) != if_hash:
                raise FileChangedError(str(path), since="it was read")

        return self.rewrite(path, nothing)

    def move(
        self,
        source: str | Path | ResolvedPath,
        target: str | Path | ResolvedPath,
        *,
        if_hash: str | None = None,
    ) -> Written:
        """
        Move or rename a file; the folders above the new path are created.

        A new name that differs in case alone is a rename, also where the disk ignores case.

        Args:
            if_hash: The SHA-256 that the content must have, in hexadecimal.

        Raises:
            FileNotFoundError: There is no such file.
            FileExistsError: Something is at the new path.
            FileChangedError: The content has another hash.
            OSError: As for `rewrite`; errno EXDEV if the new path is on another disk.
            The other errors of `rewrite`.
        """
        old = self._writable(source)
        new = self._new_path(target, old)
        if old == new:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
        if self._files.confirm is not None:
            with locked_folder.locked(old.parent) as folder, folder.original(old.name):
                pass  # it is there, and may be moved
            self._require_consent(
                self._files.confirm, values.proposed.ProposedMove(self._tool, old, new)
            )
        cancellation.check()
        with cancellation.uninterrupted(), _both_locked(old.parent, new.parent) as folders:
            from_folder, to_folder = folders
            with from_folder.original(old.name) as descriptor:
                digest = _hash_of_file(descriptor)
                size = os.fstat(descriptor).st_size
            if if_hash is not None and digest != if_hash:
                raise FileChangedError(str(old), since="it was read")
            before = revisions.RevisionContent(digest, size, b"", "none")

            def move() -> bool:
                from_folder.move(old.name, to_folder, new.name)
                return True

            self._do(
                to_folder, revisions.FileStep(str(new), "move", before, digest, str(old)), move
            )
        self.changed += [old, new]
        return Written(new, True, size)

    def _writable(self, path: str | Path | ResolvedPath) -> Path:
        """The file, if the policy allows to write there, and the database can record it."""
        target = self._files.policy.resolve(path).target
        self._files.whole_store.require_writable()
        return target

    def _new_path(self, path: str | Path | ResolvedPath, old: Path) -> Path:
        """The path to move to, with the name as the caller writes it. Raises FileExistsError."""
        new = self._files.policy.resolve(path).target
        if isinstance(path, ResolvedPath):
            return new
        name = Path(path).name
        # Windows resolves a name to the one on the disk, which may differ in case.
        if is_other_case(new, new.with_name(name)):
            return new.with_name(name)
        named = Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111
        if named.is_symlink():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(named))
        return new

    # -- consent -----------------------------------------------------------------------

    def _agreed(
        self, target: Path, content: NewContentOf, confirm: values.proposed.Confirm
    ) -> NewContentOf:
        """
        Ask ``confirm`` to allow what ``content`` makes of the file, and return what gives just
        that. No lock is held while it waits.

        Raises:
            WriteDeclinedError: ``confirm`` did not allow it.
        """
        before = None
        with suppress(FileNotFoundError), locked_folder.locked(target.parent) as folder:
            old = folder.read(target.name)
            before = None if old is None else old.data
        new = content(before)
        if _data(new) != before:
            self._require_consent(confirm, _proposed(self._tool, target, before, new))

        def agreed(present: bytes | None) -> NewContent:
            if present != before:
                raise FileChangedError(str(target))
            return new

        return agreed

    def _require_consent(
        self, confirm: values.proposed.Confirm, proposed: values.proposed.Proposed
    ) -> None:
        """
        Ask ``confirm``. A move or undo lets others run while it waits for the answer.

        Raises:
            WriteDeclinedError: ``confirm`` did not allow the change.
            ConflictError: Another note was moved meanwhile, and this one was planned without it.
        """
        if not holds_move_lock():
            values.proposed.require_consent(confirm, proposed)
            return
        before = self._latest_move()
        with move_lock_given_up():
            values.proposed.require_consent(confirm, proposed)
        if self._latest_move() != before:
            raise ConflictError(
                f"Other notes were moved while the person was asked; {proposed.path} was not"
                " written.",
                hint="Look at the notes again, then ask for the move that is right now.",
            )

    def _latest_move(self) -> int:
        with self._files.whole_store.reading() as reader:
            return reader.revisions.latest_change(("move_note", "undo"))

    # -- the one way in which a file changes -------------------------------------------

    def _put(
        self,
        folder: locked_folder.LockedFolder,
        target: Path,
        old: locked_folder.FileContent | None,
        new: NewContent,
    ) -> bool:
        """
        Give the file a new content, and keep its old one.

        Returns:
            False, and the file is unchanged, if another program has changed it since it was read.
        """
        data, present = _data(new), None if old is None else old.data
        if data == present:
            return True
        action: FileAction = "delete" if data is None else "create" if old is None else "write"
        before = revisions.NO_FILE if present is None else _kept(target, present, new)
        step = revisions.FileStep(str(target), action, before, "" if data is None else _hash(data))
        temporary = None if data is None else locked_folder.temporary_name()

        def put() -> bool:
            if temporary is not None:
                folder.create(temporary, [data or b""], like=None if old is None else target.name)
            if folder.state(target.name) != (None if old is None else old.state):
                return False
            # If the database with the old content is gone, the file must not be replaced.
            self._files.whole_store.require_current()
            if temporary is None:
                folder.remove(target.name)
            else:
                folder.replace(temporary, target.name)
            return True

        return self._do(folder, step, put, temporary)

    def _do(
        self,
        folder: locked_folder.LockedFolder,
        step: revisions.FileStep,
        act: Callable[[], bool],
        temporary: str | None = None,
    ) -> bool:
        """
        Record what is about to be done to a file, with its old content, and do it.

        Args:
            act: Returns whether it was done. If it was not, or failed, the record is removed again.
            temporary: The name of a file that `act` may leave in ``folder``; it is removed.
        """
        temporaries = [] if temporary is None else [str(folder.path / temporary)]
        revision = self._begin(folder, step, temporaries)
        is_done = False
        try:
            is_done = act()
        finally:
            if temporary is not None:
                folder.discard(temporary)
            if temporaries or not is_done:
                self._end(temporaries, undone_revision=None if is_done else revision)
        return is_done

    def _begin(
        self,
        folder: locked_folder.LockedFolder,
        step: revisions.FileStep,
        temporaries: Sequence[str],
    ) -> int:
        """
        Record a step and its temporary files in one transaction; the step is an entry of the audit
        log, too. Returns the number of the revision.

        Then remove the temporary files that killed processes have left in the directory. Since the
        directory is locked, no other process is writing them.
        """
        moved = "" if step.moved_from is None else f"{step.moved_from} to "
        target = f"{step.action} {moved}{step.path}"
        face = current_face()  # of this thread: the database has its own
        entry = AuditEntry(clock.now(), self._files.actor, face, self._session, self._tool, target)

        def record(writer: Writer) -> tuple[int, int, list[str]]:
            abandoned = writer.pending.in_directory(str(folder.path))
            for path in temporaries:
                writer.pending.begin(path)
            change = self.number or writer.revisions.begin_change(
                tool=self._tool, session=self._session
            )
            writer.access.record(entry)
            return change, writer.revisions.keep(change, step), abandoned

        self.number, revision, abandoned = self._files.whole_store.write(record)
        if abandoned:
            _discard(folder, abandoned)
            self._end(abandoned)
        return revision

    def _end(self, temporaries: Sequence[str], *, undone_revision: int | None = None) -> None:
        """
        Remove the records of temporary files.

        Args:
            undone_revision: A revision to be removed, since its file was not changed after all.
        """

        def record(writer: Writer) -> None:
            writer.pending.end(temporaries)
            if undone_revision is not None:
                writer.revisions.forget(undone_revision)
                if self.number is not None and writer.revisions.change(self.number) is None:
                    self.number = None

        try:
            self._files.whole_store.write(record)
        except QmdError as error:  # the next opening of the database removes the record
            _log.warning("a finished write stays noted: %s", error)


@dataclass(frozen=True, slots=True)
class Written:
    """
    A file that was written, moved or deleted.

    Attributes:
        path: The file, all links followed; of a moved file the new path.
        existed: Whether the file was there before.
        bytes: Its size now.
        change, problem: As in `ChangeWriter`, if the write was a change of its own; else None.
    """

    path: Path
    existed: bool
    bytes: int
    change: int | None = None
    problem: str | None = None


def is_other_case(one: Path, other: Path) -> bool:
    """Whether two paths differ in the case of the file's name alone, or in its Unicode form."""
    return (
        one.parent == other.parent and one.name != other.name and fold(one.name) == fold(other.name)
    )


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
            with locked_folder.locked(directory, wait_s=0) as folder:
                # The directory is locked, so the processes that recorded these files have ended.
                _discard(folder, abandoned)
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


def _discard(folder: locked_folder.LockedFolder, temporaries: Sequence[str]) -> None:
    """Remove files of this directory, given by absolute paths, if their names are temporary."""
    for name in (Path(temporary).name for temporary in temporaries):
        if locked_folder.is_temporary_name(name):
            folder.discard(name)


def _data(new: NewContent) -> bytes | None:
    return new.data if isinstance(new, NewMetadata) else new


def _kept(path: Path, present: bytes, new: NewContent) -> revisions.RevisionContent:
    """
    What the history keeps of a file that gets a new content.

    Raises:
        ConflictError: It is too long.
    """
    if isinstance(new, NewMetadata):
        kept = revisions.pack_revision(new.kept, "metadata")
    elif (
        new is not None and len(present) > revisions.MAX_REVISION_BYTES and new.startswith(present)
    ):
        # An append loses nothing, so a content that is too long for a revision is not kept.
        kept = revisions.RevisionContent(_hash(present), len(present), b"", "none")
    else:
        kept = revisions.pack_revision(present)
    if kept is None:
        raise ConflictError(
            f"{path} holds {len(present):,} bytes, more than the history of a file can keep.",
            hint="Delete it with another program; that cannot be undone."
            if new is None
            else "Rename the file first if its content may be replaced, or append to it.",
        )
    return kept


def _proposed(
    tool: str, path: Path, before: bytes | None, new: NewContent
) -> values.proposed.Proposed:
    if isinstance(new, NewMetadata):
        return values.proposed.ProposedFields(tool, path, new.before, new.after)
    if new is None:
        return values.proposed.ProposedDeletion(tool, path, before or b"")
    return values.proposed.ProposedText(tool, path, before, new)


@contextmanager
def _both_locked(
    source: Path, target: Path
) -> Iterator[tuple[locked_folder.LockedFolder, locked_folder.LockedFolder]]:
    """
    Lock the directories of a move; they may be the same. ``target`` is created.

    They are locked in a fixed order: two moves in opposite directions do not wait for each other.
    """
    with ExitStack() as stack:
        if _is_same_directory(source, target):
            folder = stack.enter_context(locked_folder.locked(source))
            yield folder, folder
            return
        folders = {
            path: stack.enter_context(locked_folder.locked(path, create=path == target))
            for path in sorted((source, target))
        }
        yield folders[source], folders[target]


def _is_same_directory(one: Path, other: Path) -> bool:
    """Whether both paths lead to one directory; on some disks they may differ in case."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hash_of_file(descriptor: int) -> str:
    """The SHA-256 of an open file, in hexadecimal."""
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        return locked_folder.sha256_of(file)


_held: ContextVar[BaseFileLock | None] = ContextVar("qmd_move", default=None)

#: Seconds that a move waits for another one.
WAIT_S = 30.0


@contextmanager
def one_move_at_a_time(database: DatabaseLocation) -> Iterator[None]:
    """
    Hold the lock ``<database>.moves.lock``; the system releases it if the process is killed.

    A move finds out first which notes link to the note, and then rewrites them at the paths that
    they had. If another move renamed one of them meanwhile, its links would be left behind.

    Raises:
        ConflictError: Another move or undo has held the lock for longer than `WAIT_S`.
        OSError: The lock file cannot be made.
    """
    path = str(lock_beside(database, ".moves.lock"))
    lock = libraries.filelock.FileLock(path, mode=lock_mode(database))
    _acquire(lock)
    try:
        with cancellation.in_block(_held, lock):
            yield
    finally:
        lock.release()


def holds_move_lock() -> bool:
    """Whether this thread's work is a move or an undo that has the lock."""
    return _held.get() is not None


@contextmanager
def move_lock_given_up() -> Iterator[None]:
    """
    Let other moves have the lock in the block, which waits for a person.

    Raises:
        ConflictError: Another move still has the lock `WAIT_S` after the block.
    """
    lock = _held.get()
    assert lock is not None
    lock.release()
    try:
        yield
    finally:
        _acquire(lock)


def _acquire(lock: BaseFileLock) -> None:
    """Raises ConflictError."""
    try:
        lock.acquire(timeout=WAIT_S, poll_interval=0.01)
    except libraries.filelock.Timeout:
        raise ConflictError(
            "Another move or undo is still running; nothing was written.", hint="Try again later."
        ) from None

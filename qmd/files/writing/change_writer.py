"""One change: what one call of a tool does to one or several files; `FileWriter.change`."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ConflictError, FileChangedError
from qmd.files.writing.locked_folder import (
    FileContent,
    LockedFolder,
    locked,
    sha256_of,
    temporary_name,
)
from qmd.files.writing.policy import ResolvedPath, WritePolicy
from qmd.files.writing.records import ChangeRecords, content_to_keep
from qmd.files.writing.turns import holds_turn, turn_given_up
from qmd.store.sql.revisions import MAX_REVISION_BYTES, NO_FILE, FileStep, RevisionContent
from qmd.system import cancellation
from qmd.values.names import fold
from qmd.values.proposed import (
    Confirm,
    Proposed,
    ProposedDeletion,
    ProposedMove,
    ProposedText,
    require_consent,
)

if TYPE_CHECKING:
    from qmd.store import Store

#: How often a change is tried if another program keeps saving the file meanwhile.
_ATTEMPTS = 5


@dataclass(slots=True)
class _Step:
    """What was recorded before it is done to a file; whether it has happened."""

    has_happened: bool = False


class ChangeWriter:
    """
    Changes files as one change.

    Attributes:
        changed: The files that were written, deleted and moved (both paths), in this order.
        problem: Set at the end of the change: a sentence that says why the index does not have the
            new contents; None if it has.
    """

    def __init__(
        self,
        store: Store,
        policy: WritePolicy,
        *,
        tool: str,
        session: str,
        confirm: Confirm | None,
        actor: str,
    ) -> None:
        """For `FileWriter.change`."""
        self._store = store
        self._policy = policy
        self._tool = tool
        self._confirm = confirm
        self._records = ChangeRecords(store, tool=tool, session=session, actor=actor)
        self.changed: list[Path] = []
        self.problem: str | None = None

    @property
    def number(self) -> int | None:
        """The number of the change, for undo; None while no file was changed."""
        return self._records.number

    def resolve(self, path: str | Path | ResolvedPath) -> ResolvedPath:
        """
        Follow all links in a path, and check that the policy allows to write there.

        The links of a `ResolvedPath` have been followed already.

        Raises:
            OutsideRootsError: The policy does not allow it; the hint says what would.
        """
        if not isinstance(path, ResolvedPath):
            return self._policy.resolve(path)
        self._policy.permitted(path.target)
        return path

    def rewrite(
        self, path: str | Path | ResolvedPath, content: Callable[[bytes | None], bytes]
    ) -> Written:
        """
        Replace the content of a file by one that may depend on the present one.

        A file that does not exist is created, with the folders above it. Nobody else who uses this
        class changes the file in between, so that of several appends at the same time none is lost.

        Args:
            path: The file, as in `resolve`.
            content: Called with the present content (None if there is no file); returns the new
                one, or raises to leave the file as it is. It may be called more than once.

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
        agreed = None if self._confirm is None else self._agreed(target, content, self._confirm)
        cancellation.check()
        with cancellation.uninterrupted(), locked(target.parent, create=True) as folder:
            for _ in range(_ATTEMPTS):
                old = folder.read(target.name)
                present = None if old is None else old.data
                data = content(present) if agreed is None else _unchanged(agreed, present)
                if self._replace(folder, target, old, data):
                    return self._done(Written(target, old is not None, len(data)))
        raise OSError(errno.EBUSY, "The file is being changed", str(target))

    def delete(self, path: str | Path | ResolvedPath, *, if_hash: str | None = None) -> Written:
        """
        Delete a file; its content becomes a revision.

        Args:
            if_hash: The SHA-256 that the content must have, in hexadecimal.

        Raises:
            FileNotFoundError: There is no such file.
            FileChangedError: The content has another hash; or it has changed since ``confirm``
                allowed the deletion.
            The other errors of `rewrite`.
        """
        target = self._writable(path)
        agreed = None
        if self._confirm is not None:
            with locked(target.parent) as folder:
                agreed = _present(folder, target, if_hash).data
            self._require_consent(self._confirm, ProposedDeletion(self._tool, target, agreed))
        cancellation.check()
        with cancellation.uninterrupted(), locked(target.parent) as folder:
            for _ in range(_ATTEMPTS):
                present = _present(folder, target, if_hash)
                if agreed is not None and present.data != agreed:
                    raise FileChangedError(str(target))
                if self._remove(folder, target, present):
                    return self._done(Written(target, True, 0))
        raise OSError(errno.EBUSY, "The file is being changed", str(target))

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
        if self._confirm is not None:
            with locked(old.parent) as folder:
                folder.require_replaceable(old.name)
            self._require_consent(self._confirm, ProposedMove(self._tool, old, new))
        cancellation.check()
        with cancellation.uninterrupted(), _both_locked(old.parent, new.parent) as folders:
            written = self._move(*folders, old, new, if_hash)
        self.changed.append(old)
        return self._done(written)

    @contextmanager
    def draft(self, path: str | Path | ResolvedPath) -> Iterator[Draft]:
        """
        Prepare a new version of an existing file, for programs that write files themselves.

        The directory is locked inside the block. `Draft.temporary` is a free name beside the file
        with its suffix. At the end all files whose names begin with it are removed.

        Raises:
            FileNotFoundError: The file does not exist.
            The errors of `rewrite`.
        """
        target = self._writable(path)

        def commit(draft: Draft, new: Path | None, kept: bytes | None) -> None:
            if new is not None:
                folder.copy_in(new, name)
            draft.written = self._done(self._put(folder, target, name, draft.original, kept))

        cancellation.check()
        name = temporary_name(target.suffix)
        with (
            cancellation.uninterrupted(),
            locked(target.parent) as folder,
            folder.original(target.name) as original,
        ):
            draft = Draft(target, original, target.parent / name, folder, commit)
            self._records.begin(folder, temporary=name)
            try:
                yield draft
            finally:
                folder.discard_all(name)
                self._records.end(temporaries=[str(draft.temporary)])

    def _writable(self, path: str | Path | ResolvedPath) -> Path:
        """The file, if the policy allows to write there, and the database can record it."""
        target = self.resolve(path).target
        self._store.require_writable()
        return target

    def _done(self, written: Written) -> Written:
        self.changed.append(written.path)
        return written

    def _agreed(
        self, target: Path, content: Callable[[bytes | None], bytes], confirm: Confirm
    ) -> ProposedText:
        """
        Ask ``confirm`` to allow the change, and return the change. No lock is held while it waits.

        Raises:
            WriteDeclinedError: ``confirm`` did not allow it.
        """
        present = None
        with suppress(FileNotFoundError), locked(target.parent) as folder:
            old = folder.read(target.name)
            present = None if old is None else old.data
        proposed = ProposedText(self._tool, target, present, content(present))
        self._require_consent(confirm, proposed)
        return proposed

    def _require_consent(self, confirm: Confirm, proposed: Proposed) -> None:
        """
        Ask ``confirm``. A move or undo lets others run while it waits for the answer.

        Raises:
            WriteDeclinedError: ``confirm`` did not allow the change.
            ConflictError: Another note was moved meanwhile, and this one was planned without it.
        """
        if not holds_turn():
            require_consent(confirm, proposed)
            return
        before = self._latest_move()
        with turn_given_up():
            require_consent(confirm, proposed)
        if self._latest_move() != before:
            raise ConflictError(
                f"Other notes were moved while the person was asked; {proposed.path} was not"
                " written.",
                hint="Look at the notes again, then ask for the move that is right now.",
            )

    def _latest_move(self) -> int:
        with self._store.reading() as reader:
            return reader.revisions.latest_change(("move_note", "undo"))

    @contextmanager
    def _recorded(
        self, folder: LockedFolder, step: FileStep | None, temporary: str | None = None
    ) -> Iterator[_Step]:
        """
        Record what the block does to a file, with its old content, before it does it.

        If the block does not say that it has happened, or fails, the record is removed again. The
        ``temporary`` file is removed at the end.
        """
        revision = self._records.begin(folder, temporary=temporary, step=step)
        begun = _Step()
        try:
            yield begun
        finally:
            if temporary is not None:
                folder.discard(temporary)
            undone = None if begun.has_happened else revision
            if temporary is not None or undone is not None:
                temporaries = [] if temporary is None else [str(folder.path / temporary)]
                self._records.end(temporaries=temporaries, undone_revision=undone)

    def _replace(
        self, folder: LockedFolder, target: Path, old: FileContent | None, data: bytes
    ) -> bool:
        """
        Replace the file by ``data``, and keep its old content.

        Returns:
            False, and the file is unchanged, if another program has changed it since it was read.
        """
        step = None
        if old is None:
            step = FileStep(str(target), "create", NO_FILE, _hash(data))
        elif old.data != data:
            # An append loses nothing, so a content that is too long for a revision is not kept.
            if len(old.data) > MAX_REVISION_BYTES and data.startswith(old.data):
                before = RevisionContent(_hash(old.data), len(old.data), b"", "none")
            else:
                before = content_to_keep(target, old.data)
            step = FileStep(str(target), "write", before, _hash(data))
        name = temporary_name()
        with self._recorded(folder, step, name) as begun:
            folder.create(name, data, like=None if old is None else target.name)
            if folder.state(target.name) != (None if old is None else old.state):
                return False
            # If the database with the old content is gone, the file must not be replaced.
            self._store.require_current()
            folder.replace(name, target.name)
            begun.has_happened = True
        return True

    def _put(
        self, folder: LockedFolder, target: Path, name: str, original: int, kept: bytes | None
    ) -> Written:
        """Replace the file by the temporary file ``name``; ``kept``: the earlier metadata."""
        folder.require_replaceable(target.name)
        folder.finish(name, like=target.name)
        size = folder.size(name)
        with folder.original(name) as new:
            hash_after = _hash_of_file(new)
        if kept is None:
            before_hash = _hash_of_file(original)
            before = RevisionContent(before_hash, os.fstat(original).st_size, b"", "none")
        else:
            before = content_to_keep(target, kept, "metadata")
        step = FileStep(str(target), "write", before, hash_after)
        with self._recorded(folder, step) as begun:
            self._store.require_current()  # it holds the earlier metadata
            folder.replace(name, target.name)
            begun.has_happened = True
        return Written(target, True, size)

    # -- deleting and moving -----------------------------------------------------------

    def _remove(self, folder: LockedFolder, target: Path, present: FileContent) -> bool:
        """As `_replace`."""
        step = FileStep(str(target), "delete", content_to_keep(target, present.data), "")
        with self._recorded(folder, step) as begun:
            if folder.state(target.name) != present.state:
                return False
            self._store.require_current()
            folder.remove(target.name)
            begun.has_happened = True
        return True

    def _new_path(self, path: str | Path | ResolvedPath, old: Path) -> Path:
        """The path to move to, with the name as the caller writes it. Raises FileExistsError."""
        new = self.resolve(path).target
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

    def _move(
        self,
        source: LockedFolder,
        target: LockedFolder,
        old: Path,
        new: Path,
        if_hash: str | None,
    ) -> Written:
        with source.original(old.name) as descriptor:
            digest = _hash_of_file(descriptor)
            size = os.fstat(descriptor).st_size
        if if_hash is not None and digest != if_hash:
            raise FileChangedError(str(old), since="it was read")
        before = RevisionContent(digest, size, b"", "none")
        step = FileStep(str(new), "move", before, digest, str(old))
        with self._recorded(target, step) as begun:
            self._store.require_current()
            source.move(old.name, target, new.name)
            begun.has_happened = True
        return Written(new, True, size)


@contextmanager
def _both_locked(source: Path, target: Path) -> Iterator[tuple[LockedFolder, LockedFolder]]:
    """
    Lock the directories of a move; they may be the same. ``target`` is created.

    They are locked in a fixed order: two moves in opposite directions do not wait for each other.
    """
    with ExitStack() as stack:
        if _is_same_directory(source, target):
            folder = stack.enter_context(locked(source))
            yield folder, folder
            return
        folders = {
            path: stack.enter_context(locked(path, create=path == target))
            for path in sorted((source, target))
        }
        yield folders[source], folders[target]


def _is_same_directory(one: Path, other: Path) -> bool:
    """Whether both paths lead to one directory; on some disks they may differ in case."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False


def _present(folder: LockedFolder, target: Path, if_hash: str | None) -> FileContent:
    """The file in a folder. Raises FileNotFoundError, FileChangedError."""
    present = folder.read(target.name)
    if present is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    if if_hash is not None and _hash(present.data) != if_hash:
        raise FileChangedError(str(target), since="it was read")
    return present


def _unchanged(agreed: ProposedText, present: bytes | None) -> bytes:
    """The content that was allowed. Raises FileChangedError if the file has changed since."""
    if present != agreed.before:
        raise FileChangedError(str(agreed.path))
    return agreed.after


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hash_of_file(descriptor: int) -> str:
    """The SHA-256 of an open file, in hexadecimal; the position in the file is not changed."""
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        position = file.tell()
        file.seek(0)
        digest = sha256_of(file)
        file.seek(position)
    return digest


def is_other_case(one: Path, other: Path) -> bool:
    """Whether two paths differ in the case of the file's name alone, or in its Unicode form."""
    return (
        one.parent == other.parent and one.name != other.name and fold(one.name) == fold(other.name)
    )


@dataclass(frozen=True, slots=True)
class Written:
    """
    A file that was written, moved or deleted.

    Attributes:
        path: The file, all links followed; of a moved file the new path.
        existed: Whether the file was there before.
        bytes: Its size now.
        problem: A sentence that says why the index does not have the new content; None if it has.
            The file itself was written. Inside a `FileWriter.change` it is always None.
    """

    path: Path
    existed: bool
    bytes: int
    problem: str | None = None


@dataclass(slots=True)
class Draft:
    """
    A new version of an existing file. Without a call of `commit` the file is not changed.

    Attributes:
        path: The file, all links followed.
        original: A descriptor of the file, for reading. A program that needs a path gets a copy in
            a private directory, where nobody can replace it by a link.
        temporary: A path beside the file at which the new version may be written.
        written: The result of `commit`; None before.
    """

    path: Path
    original: int
    temporary: Path
    _folder: LockedFolder
    _commit: Callable[[Draft, Path | None, bytes | None], None]
    written: Written | None = field(default=None)

    def state(self) -> tuple[int, ...] | None:
        """The `state_of` the file now; None if it is gone."""
        return self._folder.state(self.path.name)

    def commit(self, new: Path | None = None, *, kept: bytes | None) -> None:
        """
        Replace the file by its new version.

        Args:
            new: The path of the new version; None if it was written to ``temporary``.
            kept: The earlier metadata, for the revisions; None to keep nothing.

        Raises:
            OSError, QmdError: The file was not changed.
        """
        self._commit(self, new, kept)

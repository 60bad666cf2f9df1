"""
The writer that all tools use to change files.

It writes only where the policy allows it, replaces a file whole or not at all, keeps the old
content, and updates the index afterwards.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qmd.errors import ConflictError, FileChangedError, QmdError
from qmd.files.writing.locked_folder import (
    FileContent,
    LockedFolder,
    is_temporary_name,
    locked,
    temporary_name,
)
from qmd.files.writing.policy import WritePolicy
from qmd.files.writing.resolved_path import ResolvedPath
from qmd.store.revisions import MAX_REVISION_BYTES, RevisionContent, pack_revision
from qmd.system import cancellation
from qmd.values.proposed import Confirm, ProposedText, require_consent

if TYPE_CHECKING:
    from qmd.store import Store, Writer

_log = logging.getLogger(__name__)

#: How often a change is tried if another program keeps saving the file meanwhile.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Written:
    """
    A file that was written.

    Attributes:
        path: The file, all links followed.
        existed: Whether the file was there before.
        bytes: Its size now.
        problem: A sentence that says why the index does not have the new content; None if it has.
            The file itself was written.
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


class FileWriter:
    """
    Changes files. Each change is atomic, and in one directory changes run one after the other,
    also those of other processes. After an `OSError` the file is unchanged.
    """

    def __init__(
        self,
        store: Store,
        policy: WritePolicy,
        indexed: Callable[[Path], None],
        *,
        confirm: Confirm | None = None,
    ) -> None:
        """
        Args:
            indexed: Called with a file that was written; updates the index.
            confirm: Called before each write and append; None if no confirmation is needed. The
                caller of `draft` asks for confirmation itself, since only it knows the content.
        """
        self._store = store
        self.policy = policy
        self._indexed = indexed
        self.confirm = confirm

    def resolve(self, path: str | Path | ResolvedPath) -> ResolvedPath:
        """
        Follow all links in a path, and check that the policy allows to write there.

        The links of a `ResolvedPath` have been followed already.

        Raises:
            OutsideRootsError: The policy does not allow it; the hint says what would.
        """
        if not isinstance(path, ResolvedPath):
            return self.policy.resolve(path)
        self.policy.permitted(path.target)
        return path

    def write(self, path: str | Path | ResolvedPath, data: bytes, *, tool: str) -> Written:
        """
        Write a whole file; it is created if it does not exist, with the folders above it.

        Args:
            path: The file, as in `resolve`.
            data: The new content.
            tool: The name of the tool that writes, for the revisions.

        Raises:
            OutsideRootsError: The policy does not allow to write there.
            ConflictError: The present content is too long for a revision.
            WriteDeclinedError: ``confirm`` did not allow the change.
            FileChangedError: The file has changed since ``confirm`` allowed the change.
            StoreError: The old content could not be kept, so the file was not changed.
            OSError: The disk or its permissions do not allow it.
        """
        return self._change(path, lambda old: data, tool, appending=False)

    def append(
        self, path: str | Path | ResolvedPath, added: Callable[[bytes | None], bytes], *, tool: str
    ) -> Written:
        """
        Append to a file. Of several appends at the same time none is lost.

        Args:
            added: Called with the present content (None if there is no file); returns the bytes to
                append. It may be called more than once.

        Raises:
            The errors of `write`.
        """
        return self._change(path, lambda old: (old or b"") + added(old), tool, appending=True)

    @contextmanager
    def draft(self, path: str | Path | ResolvedPath, *, tool: str) -> Iterator[Draft]:
        """
        Prepare a new version of an existing file, for programs that write files themselves.

        The directory is locked inside the block. `Draft.temporary` is a free name beside the file
        with its suffix. At the end all files whose names begin with it are removed.

        Raises:
            FileNotFoundError: The file does not exist.
            The errors of `write`.
        """
        target = self.resolve(path).target
        self._store.require_writable()

        def commit(draft: Draft, new: Path | None, kept: bytes | None) -> None:
            if new is not None:
                folder.copy_in(new, name)
            draft.written = self._put(folder, target, name, tool, kept)

        cancellation.check()
        name = temporary_name(target.suffix)
        with (
            cancellation.uninterrupted(),
            locked(target.parent) as folder,
            folder.original(target.name) as original,
        ):
            draft = Draft(target, original, target.parent / name, folder, commit)
            self._begin(folder, name)
            try:
                yield draft
            finally:
                folder.discard_all(name)
                self._end([str(draft.temporary)])
        if draft.written is not None:
            draft.written = self._finished(draft.written)

    # -- one change --------------------------------------------------------------------

    def _change(
        self,
        path: str | Path | ResolvedPath,
        content: Callable[[bytes | None], bytes],
        tool: str,
        *,
        appending: bool,
    ) -> Written:
        """``content``: returns the new content of the file for its present one."""
        target = self.resolve(path).target
        self._store.require_writable()
        with suppress(FileNotFoundError):
            target.lstat()  # raises for a path that is too long, before directories are made
        agreed = None if self.confirm is None else self._agreed(target, content, tool, self.confirm)
        cancellation.check()
        with cancellation.uninterrupted(), locked(target.parent, create=True) as folder:
            for _ in range(_ATTEMPTS):
                old = folder.read(target.name)
                present = None if old is None else old.data
                data = content(present) if agreed is None else _unchanged(agreed, present)
                if self._replace(folder, target, old, data, tool, appending=appending):
                    break
            else:
                raise OSError(errno.EBUSY, "The file is being changed", str(target))
        return self._finished(Written(target, old is not None, len(data)))

    def _agreed(
        self,
        target: Path,
        content: Callable[[bytes | None], bytes],
        tool: str,
        confirm: Confirm,
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
        proposed = ProposedText(tool, target, present, content(present))
        require_consent(confirm, proposed)
        return proposed

    def _replace(
        self,
        folder: LockedFolder,
        target: Path,
        old: FileContent | None,
        data: bytes,
        tool: str,
        *,
        appending: bool,
    ) -> bool:
        """
        Replace the file by ``data``, and keep its old content.

        Returns:
            False, and the file is unchanged, if another program has changed it since it was read.
        """
        kept = None
        # An append loses nothing, so the old content is not kept if it is too long for a revision.
        is_long = old is not None and len(old.data) > MAX_REVISION_BYTES
        if old is not None and old.data != data and not (appending and is_long):
            kept = _kept(target, old.data)
        name = temporary_name()
        self._begin(folder, name, target, kept, tool)
        try:
            folder.create(name, data, like=None if old is None else target.name)
            if folder.state(target.name) != (None if old is None else old.state):
                return False
            # If the database with the old content is gone, the file must not be replaced.
            self._store.require_current()
            folder.replace(name, target.name)
            return True
        finally:
            folder.discard(name)
            self._end([str(folder.path / name)])

    def _put(
        self, folder: LockedFolder, target: Path, name: str, tool: str, kept: bytes | None
    ) -> Written:
        """Replace the file by the temporary file ``name``; ``kept``: the earlier metadata."""
        folder.require_replaceable(target.name)
        folder.finish(name, like=target.name)
        if kept is not None:
            metadata = _kept(target, kept, "metadata")
            self._store.write(
                lambda writer: writer.revisions.keep(str(target), metadata, tool=tool)
            )
        size = folder.size(name)
        self._store.require_current()  # it holds the earlier metadata
        folder.replace(name, target.name)
        return Written(target, True, size)

    def _finished(self, written: Written) -> Written:
        """
        Update the index after a write; if that fails, the result says why.

        No error is raised, because the file was written: a client would write it a second time.
        """
        try:
            with cancellation.uninterrupted():
                self._indexed(written.path)
        except QmdError as error:
            _log.warning("written, but not indexed: %s: %s", written.path, error)
            return replace(written, problem=error.with_hint)
        return written

    # -- records in the database -------------------------------------------------------

    def _begin(
        self,
        folder: LockedFolder,
        name: str,
        target: Path | None = None,
        kept: RevisionContent | None = None,
        tool: str = "",
    ) -> None:
        """
        Record a temporary file and keep the old content, in one transaction.

        Then remove the temporary files that killed processes have left in the directory. Since the
        directory is locked, no other process is writing them.
        """
        temporary = str(folder.path / name)

        def begin(writer: Writer) -> list[str]:
            abandoned = writer.pending.in_directory(str(folder.path))
            writer.pending.begin(temporary)
            if kept is not None:
                writer.revisions.keep(str(target), kept, tool=tool)
            return abandoned

        abandoned = self._store.write(begin)
        if abandoned:
            discard(folder, abandoned)
            self._end(abandoned)

    def _end(self, temporaries: list[str]) -> None:
        """Remove the records of temporary files."""
        try:
            self._store.write(lambda writer: writer.pending.end(temporaries))
        except QmdError as error:  # the next opening of the database removes the record
            _log.warning("a finished write stays noted: %s", error)


def _unchanged(agreed: ProposedText, present: bytes | None) -> bytes:
    """The content that was allowed. Raises FileChangedError if the file has changed since."""
    if present != agreed.before:
        raise FileChangedError(str(agreed.path))
    return agreed.after


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


def discard(folder: LockedFolder, temporaries: list[str]) -> None:
    """Remove files of this directory, given by absolute paths, if their names are temporary."""
    for name in (Path(temporary).name for temporary in temporaries):
        if is_temporary_name(name):
            folder.discard_all(name)


def _kept(
    path: Path, content: bytes, kind: Literal["content", "metadata"] = "content"
) -> RevisionContent:
    kept = pack_revision(content, kind)
    if kept is None:
        raise ConflictError(
            f"{path} holds {len(content):,} bytes, more than the history of a file can keep.",
            hint="Rename the file first if its content may be replaced, or append to it.",
        )
    return kept

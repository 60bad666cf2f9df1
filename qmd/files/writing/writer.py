"""
The one way in which tools change files: where the policy allows it, whole or not at all, with the
old content kept and the index up to date afterwards.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
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

#: How often a change is tried again because another program saved the file meanwhile.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Written:
    """
    A file that was changed: where it is, all links followed, whether it was there before, and
    how many bytes it has now.

    ``problem``: why the index does not hold it yet, in a sentence; the file itself is right.
    """

    path: Path
    existed: bool
    bytes: int
    problem: str | None = None


@dataclass(slots=True)
class Draft:
    """
    A new version of a file: `commit` puts it in the place of ``path``. Without a commit the file
    stays as it was.

    ``original`` is a descriptor of the file, for reading. A program that needs a path works on a
    copy in a private directory, where nobody can replace it by a link.
    """

    path: Path
    original: int
    temporary: Path
    _folder: LockedFolder
    _commit: Callable[[Draft, Path | None, bytes | None], None]
    written: Written | None = field(default=None)

    def state(self) -> tuple[int, ...] | None:
        """`state_of` the file as it is now, None if it is gone."""
        return self._folder.state(self.path.name)

    def commit(self, new: Path | None = None, *, kept: bytes | None) -> None:
        """
        Args:
            new: Where the new version is, anywhere; None if it was written to ``temporary``,
                beside the file.
            kept: What goes into the revisions, as metadata; None for nothing.

        Raises:
            OSError, QmdError: The file is as it was.
        """
        self._commit(self, new, kept)


class FileWriter:
    """
    Changes files, each change atomic and one after the other in a directory, whichever
    process asks. An `OSError` passes through, and then the file is as it was.
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
        ``indexed`` brings the index in line with one file. ``confirm`` is called before each
        write but that of a `draft`, since only its caller knows what will be in it.
        """
        self._store = store
        self.policy = policy
        self._indexed = indexed
        self.confirm = confirm

    def resolve(self, path: str | Path | ResolvedPath) -> ResolvedPath:
        """
        The file that a path means, all links followed; those of a `ResolvedPath` have been.

        Raises:
            OutsideRootsError: Nothing may be written there; the hint says what allows it.
        """
        if not isinstance(path, ResolvedPath):
            return self.policy.resolve(path)
        self.policy.permitted(path.target)
        return path

    def write(self, path: str | Path | ResolvedPath, data: bytes, *, tool: str) -> Written:
        """
        Make ``data`` the whole content of a file, and make the file if there is none.

        Args:
            path: Its links are followed; those of a `ResolvedPath` have been.

        Raises:
            OutsideRootsError: Nothing may be written there.
            ConflictError: Its present content is too long to be kept.
            WriteDeclinedError: ``confirm`` did not agree.
            FileChangedError: The file has changed since ``confirm`` agreed.
            StoreError: The old content cannot be kept, so it was not replaced.
            OSError: The disk or the permissions say no.
        """
        return self._change(path, lambda old: data, tool, appending=False)

    def append(
        self, path: str | Path | ResolvedPath, added: Callable[[bytes | None], bytes], *, tool: str
    ) -> Written:
        """
        Append to a file; of several appends at once none is lost.

        Args:
            added: Returns what is appended to the present content (None: there is no file). May
                be called more than once.

        Raises:
            As `write`.
        """
        return self._change(path, lambda old: (old or b"") + added(old), tool, appending=True)

    @contextmanager
    def draft(self, path: str | Path | ResolvedPath, *, tool: str) -> Iterator[Draft]:
        """
        For programs that write files themselves: a place for a new version of an existing file.

        The directory is locked meanwhile. The temporary name is free, lies beside the file and
        has its suffix; whatever begins with it is removed in the end.

        Raises:
            FileNotFoundError: There is no such file.
            As `write`.
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
        The change, as it will be written, that ``confirm`` agreed to; no lock is held while it
        waits. Raises WriteDeclinedError.
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
        """False if another program has changed the file since it was read."""
        kept = None
        # An append loses nothing, so a content that is too long need not be kept.
        is_long = old is not None and len(old.data) > MAX_REVISION_BYTES
        if old is not None and old.data != data and not (appending and is_long):
            kept = _kept(target, old.data)
        name = temporary_name()
        self._begin(folder, name, target, kept, tool)
        try:
            folder.create(name, data, like=None if old is None else target.name)
            if folder.state(target.name) != (None if old is None else old.state):
                return False
            # The old content is kept in the database; if that is gone, the file must stay.
            self._store.require_current()
            folder.replace(name, target.name)
            return True
        finally:
            folder.discard(name)
            self._end([str(folder.path / name)])

    def _put(
        self, folder: LockedFolder, target: Path, name: str, tool: str, kept: bytes | None
    ) -> Written:
        folder.require_replaceable(target.name)
        folder.finish(name, like=target.name)
        if kept is not None:
            metadata = _kept(target, kept, "metadata")
            self._store.write(
                lambda writer: writer.revisions.keep(str(target), metadata, tool=tool)
            )
        size = folder.size(name)
        self._store.require_current()  # the earlier metadata is kept there
        folder.replace(name, target.name)
        return Written(target, True, size)

    def _finished(self, written: Written) -> Written:
        """
        Bring the index in line; the result says why, if that fails.

        The file is written: an error now would only make the client write it again.
        """
        try:
            with cancellation.uninterrupted():
                self._indexed(written.path)
        except QmdError as error:
            _log.warning("written, but not indexed: %s: %s", written.path, error)
            return replace(written, problem=error.with_hint)
        return written

    # -- what is kept ------------------------------------------------------------------

    def _begin(
        self,
        folder: LockedFolder,
        name: str,
        target: Path | None = None,
        kept: RevisionContent | None = None,
        tool: str = "",
    ) -> None:
        """
        Record the temporary file and keep the old content, in one transaction; and remove what a
        killed process left in the directory, which is locked, so that nobody else writes in it.
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
        try:
            self._store.write(lambda writer: writer.pending.end(temporaries))
        except QmdError as error:  # the record is removed when the database is opened next
            _log.warning("a finished write stays noted: %s", error)


def _unchanged(agreed: ProposedText, present: bytes | None) -> bytes:
    """The bytes that were agreed to. Raises FileChangedError: The file has changed since."""
    if present != agreed.before:
        raise FileChangedError(str(agreed.path))
    return agreed.after


def _end(writer: Writer, temporaries: list[str]) -> None:
    writer.pending.end(temporaries)


def clean_up(store: Store) -> None:
    """
    Remove the temporary files of processes that died while they wrote.

    Files that are being written now are left alone, and so are those that cannot be reached.
    """
    by_directory: dict[Path, list[str]] = {}
    with store.reading() as reader:
        for temporary in reader.pending.all():
            by_directory.setdefault(Path(temporary).parent, []).append(temporary)
    for directory, abandoned in by_directory.items():
        try:
            with locked(directory, wait_s=0) as folder:
                # The directory is locked, so whoever recorded these files before has ended.
                discard(folder, abandoned)
        except (FileNotFoundError, NotADirectoryError):
            pass  # the directory is gone, and the files with it
        except OSError as error:
            _log.info("temporary files stay for now: %s", error)
            continue
        if store.read_only:
            continue  # the next process that may write removes the records
        try:
            store.write(partial(_end, temporaries=abandoned))
        except QmdError as error:
            _log.warning("%s", error)


def discard(folder: LockedFolder, temporaries: list[str]) -> None:
    """Remove files of this directory, given by their whole paths, if their names are temporary."""
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

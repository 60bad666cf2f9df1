"""
Undoes changes: each file gets the state that it had before the change.

A change is undone as a whole or not at all. Each file must be as the change left it: its content
has the recorded hash, and it lies at the recorded path. So nothing is overwritten that was changed
since, by whomever. A file that already has its earlier state is left alone; that makes an undo
repeatable that was interrupted.
"""

from __future__ import annotations

import hashlib
import os
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.engine_text import engine_text
from qmd.errors import ConflictError, FileChangedError, NotFoundError, QmdError
from qmd.files.edits.diff import short_diff
from qmd.files.edits.text_file import shown_text
from qmd.files.writing.locked_folder import sha256_of
from qmd.files.writing.writer import ChangeWriter, FileWriter, is_other_case, one_move_at_a_time
from qmd.system.beneath import READ
from qmd.system.session import current_session
from qmd.values import writing

if TYPE_CHECKING:
    from qmd.store import Reader, Writer

TOOL = "undo"
#: The most changes of a session that are undone at once.
MAX_CHANGES = 10_000
_ALL = 2**31 - 1
#: If a change is refused, so many earlier ones are tried for one that can be undone.
MAX_TRIED = 50
#: The most bytes of all contents that are restored at once.
MAX_BYTES = 256 * 1024 * 1024


class _NotUndoneError(Exception):
    """Why a change cannot be undone; ``file`` is the first file that prevents it."""

    def __init__(self, file: str, reason: str, diff: str = "") -> None:
        super().__init__(reason)
        self.file = file
        self.reason = reason
        self.diff = diff


@dataclass(slots=True)
class _Write:
    """
    What is done to one file for all changes together; a file is written once if it can be.

    Attributes:
        path: The file, or where it lies before it is moved back.
        hash_now: SHA-256 of the content that it must have, "" if there must be no file.
        changes: The numbers of the changes that this is done for.
        target: The revision with the content to restore; None to delete or move the file.
        moved_to: The path to move the file back to.
        content: What ``target`` holds.
    """

    path: str
    hash_now: str
    changes: set[int]
    target: writing.Revision | None = None
    moved_to: str | None = None
    content: bytes = b""


class Undo:
    """Lists and undoes the changes that `FileWriter` records."""

    def __init__(self, files: FileWriter, name: Callable[[Path], str]) -> None:
        """``name`` returns how a file is called in replies."""
        self._files = files
        self._name = name

    def changes(
        self, session: str | None = None, *, limit: int | None = 20
    ) -> list[writing.FileChange]:
        """
        The latest changes, newest first; with ``session`` only those of this session.

        Args:
            limit: How many at most; None for all.
        """
        with self._files.store.reading() as reader:
            changes = reader.revisions.changes(session, limit=_ALL if limit is None else limit)
            return [
                replace(change, redone_by=_redone_by(reader, change))
                for change in changes
                if change.files
            ]

    def undo_change(self, number: int, *, session: str | None = None) -> writing.UndoReply:
        """
        Undo one change. Undoing an undo restores what it undid.

        Args:
            session: If the change is refused, only an earlier one of this session is named.

        Raises:
            NotFoundError: There is no such change.
            ConflictError: The change was undone already.
        """
        with self._files.store.reading() as reader:
            change = reader.revisions.change(number)
            if change is None:
                raise NotFoundError(
                    engine_text("There is no change {number}.", number=number),
                    hint="GET /changes lists them; in the shell 'qmd history' does.",
                )
            if not _is_in_effect(reader, change):
                raise ConflictError(
                    engine_text(
                        "Change {number} was undone already, by change {other}.",
                        number=number,
                        other=change.undone_by,
                    ),
                    hint=f"Undo change {change.undone_by} to restore it.",
                )
        return self._undo_one(change, lambda reader: _in_effect(reader, session))

    def next_change(self) -> writing.FileChange | None:
        """The change that `undo_last` undoes; None if there is none."""
        return self._files.store.read(lambda reader: _last_in_effect(reader, None))

    def undo_last(self, session: str | None = None) -> writing.UndoReply:
        """
        Undo the last change that is in effect; with ``session`` the last one of this session.

        Undos are passed over, so that calling it again goes further back, as in an editor.

        Raises:
            NotFoundError: There is none.
        """
        with self._files.store.reading() as reader:
            change = _last_in_effect(reader, session)
            if change is None:
                raise self._nothing(reader, session)
        return self._undo_one(change, lambda reader: _in_effect(reader, session))

    def redo_last(self, session: str | None = None) -> writing.UndoReply:
        """
        Undo the last undo that is in effect; with ``session`` the last one of this session.

        Calling it again goes further forward. A change after the undo ends that, as in an editor:
        then `undo_change` takes the number of the undo.

        Raises:
            NotFoundError: There is none.
        """
        undo = self._files.store.read(lambda reader: next(_undos(reader, session), None))
        if undo is None:
            raise NotFoundError(
                "There is nothing to redo: no undo is newer than the last change.",
                hint="An older undo is taken back by its number, which GET /changes has; in the"
                " shell 'qmd history' has it.",
            )
        return self._undo_one(undo, lambda reader: _undos(reader, session))

    def undo_session(self, session: str) -> writing.UndoReply:
        """
        Undo all changes of a session, newest first; those that cannot be undone are reported.

        Raises:
            NotFoundError: The session has no change that is in effect.
        """
        with self._files.store.reading() as reader:
            changes = reader.revisions.changes(session, limit=MAX_CHANGES)
            # An undo inside the session has no effect of its own: what counts is whether the
            # changes that it undid are in effect.
            undoing = {change.undone_by for change in changes}
            in_effect = [
                change
                for change in changes
                if change.files and change.number not in undoing and _is_in_effect(reader, change)
            ]
            if not in_effect:
                raise self._nothing(reader, session)
        not_kept = changes[0].number_in_session - len(changes)
        if self._files.policy.scoped_to_token:
            not_kept = 0  # it would also count the changes that the token does not open
        return self._undo(in_effect, not_kept=not_kept)

    def _nothing(self, reader: Reader, session: str | None) -> NotFoundError:
        """
        The error for a session without a change to undo.

        Its hint names the last change of any session: a client of a server that was killed and
        started again has a new session, and does not know the number of its change.
        """
        where = "" if session is None else f" of session {session}"
        hint = (
            "Changes of qmd's own tools can be undone. GET /changes lists them; in the shell"
            " 'qmd history' does."
        )
        last = None if session is None else _last_in_effect(reader, None)
        if last is not None:
            name = self._name(Path(last.files[0].path))
            more = "" if len(last.files) == 1 else f" and {len(last.files) - 1:,} more"
            hint = (
                f"The last change of another session is {last.number}"
                f" ({last.tool}, {last.created}, {name}{more}); undo it by its number."
            )
        return NotFoundError(f"There is no change{where} to undo.", hint=hint)

    def _undo_one(
        self,
        change: writing.FileChange,
        others: Callable[[Reader], Iterator[writing.FileChange]],
    ) -> writing.UndoReply:
        """
        Undo a change; if it is refused, name the next one, or nothing would lead past it.

        Args:
            others: Returns the changes of which one is named, newest first; ``change`` is among
                them, or none of them is older.
        """
        reply = self._undo([change])
        if not reply.refused:
            return reply
        plan = _Plan(self._files, self._name)
        with self._files.store.reading() as reader:
            newer_first = others(reader)
            for each in newer_first:
                if each.number == change.number:
                    break
            earlier = [*islice(newer_first, MAX_TRIED)]
        number = next((each.number for each in earlier if plan.can_undo(each)), None)
        return replace(reply, earlier=number)

    def _undo(
        self, changes: Sequence[writing.FileChange], *, not_kept: int = 0
    ) -> writing.UndoReply:
        with one_move_at_a_time(self._files.store.location):
            plan = _Plan(self._files, self._name)
            for change in changes:
                plan.add(change)
            plan.read_contents()
            with self._files.change(tool=TOOL) as writer:
                for write in plan.writes:
                    self._write(write, writer, plan)

            def record(database: Writer) -> None:
                by = writer.number or database.revisions.begin_change(
                    tool=TOOL, session=current_session()
                )
                for number in plan.undone:
                    database.revisions.set_undone(number, by)

            if plan.undone:
                self._files.whole_store.write(record)
        numbers = [change.number for change in changes]
        return writing.UndoReply(
            undone=tuple(plan.undone[number] for number in numbers if number in plan.undone),
            refused=tuple(plan.refused[number] for number in numbers if number in plan.refused),
            change=writer.number,
            not_kept=not_kept,
            problem=writer.problem,
        )

    def _write(self, write: _Write, writer: ChangeWriter, plan: _Plan) -> None:
        """Write one file, unless a change that it belongs to has failed."""
        number = next(iter(write.changes & plan.refused.keys()), None)
        if number is not None:
            refused = plan.refused[number]
            error = _NotUndoneError(refused.file, refused.reason, refused.diff)
            plan.refuse(write.changes, error)
            return
        name = self._name(Path(write.path))
        try:
            self._write_file(write, writer)
        except QmdError as error:
            plan.refuse(write.changes, _NotUndoneError(name, error.with_hint))
        except OSError as error:
            plan.refuse(write.changes, _NotUndoneError(name, f"{error.strerror or error}."))

    def _write_file(self, write: _Write, writer: ChangeWriter) -> None:
        """Raises QmdError, OSError."""

        def restored(present: bytes | None) -> bytes:
            if write.hash_now != ("" if present is None else hashlib.sha256(present).hexdigest()):
                raise FileChangedError(write.path, since="it was checked")
            return write.content

        place = self._files.policy.permitted(Path(write.path))
        if write.moved_to is not None:
            old = self._files.policy.permitted(Path(write.moved_to))
            writer.move(place, old, if_hash=write.hash_now)
        elif write.target is not None:
            writer.rewrite(place, restored)
        elif write.hash_now:
            writer.delete(place, if_hash=write.hash_now)


class _Plan:
    """
    What undoes some changes. Nothing is written.

    Attributes:
        undone: Number of a change → what is done for it, the last file first.
        refused: Number of a change → why it is not undone.
        writes: What is done to the files, in this order.
    """

    def __init__(self, files: FileWriter, name: Callable[[Path], str]) -> None:
        self._files = files
        self._name = name
        self._hashes: dict[str, str] = {}  # of the files as they are after the steps so far
        self._open: dict[str, _Write] = {}  # path → the last write of its content
        self._changes: dict[int, writing.FileChange] = {}
        self.undone: dict[int, writing.UndoneChange] = {}
        self.refused: dict[int, writing.RefusedChange] = {}
        self.writes: list[_Write] = []

    def add(self, change: writing.FileChange) -> None:
        """Plan to undo a change after those that were added before."""
        self._changes[change.number] = change
        hashes = dict[str, str]()
        try:
            steps = self._steps(change, ChainMap(hashes, self._hashes))
        except _NotUndoneError as error:
            self.refuse({change.number}, error)
            return
        self._hashes.update(hashes)
        for revision, action in steps:
            self._add_write(change.number, revision, action)
        files = tuple(self._undone_file(revision, action) for revision, action in steps)
        self.undone[change.number] = writing.UndoneChange(
            change.number, change.tool, change.created, files
        )

    def can_undo(self, change: writing.FileChange) -> bool:
        """Whether the files are as a change left them, and their earlier contents are kept."""
        try:
            self._steps(change, ChainMap(dict[str, str](), self._hashes))
        except _NotUndoneError:
            return False
        return True

    def refuse(self, numbers: Iterable[int], error: _NotUndoneError) -> None:
        """Undo none of these changes; of several reasons the first counts."""
        for change in (self._changes[number] for number in numbers):
            self.undone.pop(change.number, None)
            refused = writing.RefusedChange(
                *(change.number, change.tool, change.created),
                *(error.file, error.reason, error.diff),
            )
            self.refused.setdefault(change.number, refused)

    def _undone_file(
        self, revision: writing.Revision, action: writing.UndoAction
    ) -> writing.UndoneFile:
        name = self._name(Path(revision.path))
        if action != "moved back" or revision.moved_from is None:
            return writing.UndoneFile(name, action, revision.action)
        return writing.UndoneFile(
            self._name(Path(revision.moved_from)), action, revision.action, name
        )

    def _add_write(
        self, number: int, revision: writing.Revision, action: writing.UndoAction
    ) -> None:
        after = revision.hash_after or ""
        if action == "moved back":
            for path in (revision.path, revision.moved_from):
                self._open.pop(path or "", None)
            self.writes.append(_Write(revision.path, after, {number}, moved_to=revision.moved_from))
        elif action != "unchanged":
            write = self._open.get(revision.path)
            if write is None:
                write = self._open[revision.path] = _Write(revision.path, after, set())
                self.writes.append(write)
            write.changes.add(number)
            write.target = revision if action == "restored" else None

    def read_contents(self) -> None:
        """
        Read the contents to restore, before writes add revisions and so remove the oldest.

        Changes with contents beyond `MAX_BYTES` are refused.
        """
        total = 0
        for write in self.writes:
            if write.target is None:
                continue
            total += write.target.bytes
            content = self._content(write.target) if total <= MAX_BYTES else None
            if content is None:
                reason = "Its earlier content is not kept any more."
                if total > MAX_BYTES:
                    reason = "The others hold too much for one undo. Undo once more."
                self.refuse(write.changes, _NotUndoneError(self._name(Path(write.path)), reason))
            else:
                write.content = content

    def _steps(
        self, change: writing.FileChange, hashes: MutableMapping[str, str]
    ) -> list[tuple[writing.Revision, writing.UndoAction]]:
        """
        The steps that undo a change.

        Raises:
            _NotUndoneError: A file is not as the change left it, or is not kept.
        """
        if not change.is_kept:
            raise _NotUndoneError(
                self._name(Path(change.files[0].path)),
                "An earlier content of one of its files is not kept any more.",
            )
        steps: list[tuple[writing.Revision, writing.UndoAction]] = []
        for revision in reversed(change.files):
            place = revision.path
            present = self._hash(place, hashes)
            if revision.action == "move":
                steps.append((revision, self._plan_move(revision, present, hashes)))
            elif present == revision.hash_after:
                steps.append((revision, self._plan_content(revision)))
                hashes[place] = revision.hash
            elif present == revision.hash:
                steps.append((revision, "unchanged"))
            else:
                raise self._changed_since(revision)
        return steps

    def _plan_move(
        self, revision: writing.Revision, present: str, hashes: MutableMapping[str, str]
    ) -> writing.UndoAction:
        old = revision.moved_from
        assert old is not None  # of a move
        present_at_old = self._hash(old, hashes)
        is_free = present_at_old == "" or is_other_case(Path(old), Path(revision.path))
        if present == revision.hash_after and is_free:
            hashes[revision.path], hashes[old] = "", revision.hash_after
            return "moved back"
        if present == "" and present_at_old == revision.hash_after:
            return "unchanged"
        if present == revision.hash_after:
            raise _NotUndoneError(self._name(Path(old)), "Another file lies there now.")
        raise self._changed_since(revision)

    def _plan_content(self, revision: writing.Revision) -> writing.UndoAction:
        if revision.action == "create":
            return "deleted"
        name = self._name(Path(revision.path))
        if revision.kind == "metadata":
            raise _NotUndoneError(
                name,
                "Of a photo only the earlier metadata is kept: see it with"
                f" 'qmd history {name} --show {revision.number}'"
                " and set it with 'qmd image tag'.",
            )
        if revision.kind == "none":
            raise _NotUndoneError(name, "The earlier content was too long to be kept.")
        return "restored"

    def _hash(self, path: str, hashes: MutableMapping[str, str]) -> str:
        """The SHA-256 of a file, in hexadecimal; "" if there is none."""
        if path not in hashes:
            try:
                place = self._files.policy.permitted(Path(path))
                with os.fdopen(place.open(READ), "rb") as stream:
                    hashes[path] = sha256_of(stream)
            except (FileNotFoundError, NotADirectoryError):
                hashes[path] = ""
            except QmdError as error:
                raise _NotUndoneError(self._name(Path(path)), error.with_hint) from error
            except OSError as error:
                reason = f"{error.strerror or error}."
                raise _NotUndoneError(self._name(Path(path)), reason) from error
        return hashes[path]

    def _content(self, revision: writing.Revision) -> bytes | None:
        return self._files.store.read(lambda reader: reader.revisions.content(revision.id))

    # -- what has changed since --------------------------------------------------------

    def _changed_since(self, revision: writing.Revision) -> _NotUndoneError:
        """The error for a file that is not as the change left it, with a diff if one is known."""
        path = Path(revision.path)
        name = self._name(path)
        try:
            present = shown_text(self._files.policy.permitted(path).read())
        except OSError:
            return _NotUndoneError(name, "It is not there any more.")
        if revision.hash_after == "":
            return _NotUndoneError(name, "Another file lies there now.")
        left = self._content_with_hash(revision)
        if left is not None:
            return _NotUndoneError(
                name,
                "It was changed since, as the diff shows.",
                short_diff(shown_text(left), present),
            )
        before = self._content(revision) if revision.kind == "content" else None
        if before is None:
            return _NotUndoneError(name, "It was changed since.")
        return _NotUndoneError(
            name,
            "It was changed since; the diff shows what undoing would change now.",
            short_diff(present, shown_text(before)),
        )

    def _content_with_hash(self, revision: writing.Revision) -> bytes | None:
        """The content that a change left, if a later change of the file has kept it."""
        with self._files.store.reading() as reader:
            for later in reader.revisions.history(revision.path):
                if later.hash == revision.hash_after and later.kind == "content":
                    return reader.revisions.content(later.id)
        return None


def _last_in_effect(reader: Reader, session: str | None) -> writing.FileChange | None:
    """The last change in effect that is no undo; with ``session`` the last of this session."""
    return next(_in_effect(reader, session), None)


def _in_effect(reader: Reader, session: str | None) -> Iterator[writing.FileChange]:
    """The changes in effect that are no undos, newest first; with ``session`` those of it."""
    for change in reader.revisions.changes(session, limit=MAX_CHANGES):
        if change.tool != TOOL and change.files and _is_in_effect(reader, change):
            yield change


def _undos(reader: Reader, session: str | None) -> Iterator[writing.FileChange]:
    """The undos in effect after the last other change, newest first."""
    for change in reader.revisions.changes(session, limit=MAX_CHANGES):
        if change.tool != TOOL:
            return
        if change.files and change.undone_by is None and not _is_redo(reader, change):
            yield change


def _is_redo(reader: Reader, undo: writing.FileChange) -> bool:
    """Whether an undo took back other undos, so that what these had undone is in effect again."""
    is_redo = False
    undone = reader.revisions.undone(undo.number)
    while undone and all(change.tool == TOOL for change in undone):
        is_redo = not is_redo
        undone = reader.revisions.undone(undone[0].number)
    return is_redo


def _is_in_effect(reader: Reader, change: writing.FileChange) -> bool:
    """Whether a change was not undone, or its undo was undone in turn."""
    return change.undone_by is None or _redone_by(reader, change) is not None


def _redone_by(reader: Reader, change: writing.FileChange) -> int | None:
    """The change that undid the undo of a change; None if it was not undone, or is still."""
    undos = []
    following: writing.FileChange | None = change
    while following is not None and following.undone_by is not None:
        undos.append(following.undone_by)
        following = reader.revisions.change(following.undone_by)
    return undos[-1] if undos and len(undos) % 2 == 0 else None

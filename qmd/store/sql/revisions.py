"""Changes of files by tools, and the earlier contents of the files."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

from qmd import values
from qmd.store.sql import Capability
from qmd.system import clock
from qmd.values import Revision
from qmd.values.writing import FileAction, FileChange

if TYPE_CHECKING:
    from qmd.values.transfer import KeptChange, KeptRevision

#: The most revisions of one file; the oldest are removed first.
MAX_REVISIONS = 20
#: The most bytes of all revisions of one file together.
MAX_REVISION_BYTES = 10 * 1024 * 1024

#: A revision that a version without changes has kept has this number, and that of its row added.
FIRST_WITHOUT_CHANGE = 1_000_000

#: What `Revision.kind` calls "content" may be stored compressed, to fit.
_COMPRESSED = "content, zlib"
_MAX_COMPRESSED_FROM = 8 * MAX_REVISION_BYTES


class RevisionContent(NamedTuple):
    """
    A content in the form that a revision keeps.

    Attributes:
        hash: SHA-256 of the content, in hexadecimal; "" if there was no file.
        size: Bytes of the content.
        stored: The content, compressed if it is long; empty for the kind "none".
        kind: "content", "metadata", "none", or the kind of a compressed content.
    """

    hash: str
    size: int
    stored: bytes
    kind: str


#: The content before a file was created.
NO_FILE = RevisionContent("", 0, b"", "none")


def new_numbers() -> Iterator[int]:
    """
    Numbers for a new change; the first that is free is taken.

    They have six digits (more if most of those are taken), and are random: from the numbers of its
    own changes, a client cannot tell how much changes in collections that it may not see.
    """
    for tries in count():
        least = 10 ** (5 + tries // 20)
        yield least + secrets.randbelow(9 * least)


class FileStep(NamedTuple):
    """
    What a change does to one file; paths are absolute.

    Attributes:
        before: The content before it.
        hash_after: SHA-256 of the content after it, in hexadecimal; "" for a deleted file.
        moved_from: The earlier path, for a move.
    """

    path: str
    action: FileAction
    before: RevisionContent
    hash_after: str
    moved_from: str | None = None


def pack_revision(
    content: bytes, kind: Literal["content", "metadata"] = "content"
) -> RevisionContent | None:
    """
    Prepare a content for a revision; None if it is too long even when compressed.

    Only a content longer than `MAX_REVISION_BYTES` is compressed, so that a person can read the
    others with SQL.
    """
    stored, stored_kind = content, str(kind)
    if len(content) > MAX_REVISION_BYTES:
        if kind != "content" or len(content) > _MAX_COMPRESSED_FROM:
            return None
        stored, stored_kind = zlib.compress(content), _COMPRESSED
        if len(stored) > MAX_REVISION_BYTES:
            return None
    return RevisionContent(hashlib.sha256(content).hexdigest(), len(content), stored, stored_kind)


def unpack_revision(stored: bytes, kind: str, size: int, digest: str) -> bytes:
    """
    The content of a stored revision.

    Raises:
        ValueError, zlib.error: The content is damaged: its length or hash has changed.
    """
    if kind == "none":
        if stored:
            raise ValueError("a revision without a content has one")
        return b""
    content = zlib.decompress(stored) if kind == _COMPRESSED else stored
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("a revision does not hold what was kept")
    return content


#: The number of the change of a revision ``r``, and its kind as `Revision` has it.
_NUMBER = f"coalesce(r.change_id, {FIRST_WITHOUT_CHANGE} + r.id)"
_KIND = f"CASE WHEN r.kind = '{_COMPRESSED}' THEN 'content' ELSE r.kind END"
_REVISIONS = f"""
    SELECT r.id, {_NUMBER}, r.path, r.created_at, r.tool, {_KIND}, r.bytes, r.hash,
           r.action, r.moved_from, coalesce(c.session, ''), c.id, r.hash_after
    FROM revisions r LEFT JOIN changes c ON c.id = r.change_id
"""
_CHANGES = "SELECT id, tool, session, created_at, files, undone_by, number_in_session FROM changes "
_CHANGE_TYPES = (int, str, str, str, int, int | None, int)
_LARGEST_ID = 2**63 - 1


class Revisions(Capability):
    """Reads revisions, by the absolute path of the file, and changes."""

    def history(self, path: str) -> list[Revision]:
        """
        The revisions of a file, newest first.

        A file that was moved to the path brings along its revisions from before the move.
        """
        revisions: dict[int, Revision] = {}
        places = [(path, _LARGEST_ID)]
        while places:
            path, before = places.pop()
            rows = self._revisions(
                "WHERE (r.path = ? OR r.moved_from = ?) AND r.id < ? ORDER BY r.id DESC",
                [path, path, before],
            )
            for revision in rows:
                is_new = revision.id not in revisions
                revisions[revision.id] = revision
                if is_new and revision.moved_from is not None and revision.path == path:
                    places.append((revision.moved_from, revision.id))
        return [revisions[revision_id] for revision_id in sorted(revisions, reverse=True)]

    def content(self, revision_id: int) -> bytes | None:
        """
        The content of a revision; None if it was removed, or is of the kind "none".

        Raises:
            ValueError, TypeError, zlib.error: The content is damaged.
        """
        rows = self._sql.rows(
            (bytes, str, int, str),
            "SELECT content, kind, bytes, hash FROM revisions WHERE id = ?",
            [revision_id],
        )
        if not rows or rows[0][1] == "none":
            return None
        return unpack_revision(*rows[0])

    def changes(self, session: str | None = None, *, limit: int) -> list[FileChange]:
        """The latest changes, newest first; with ``session`` only those of this session."""
        where, parameters = "", list[object]()
        if session is not None:
            where, parameters = "WHERE session = ? ", [session]
        return self._changes(f"{where}ORDER BY position DESC LIMIT ?", [*parameters, limit])

    def kept_changes(self) -> list[KeptChange]:
        """All changes, the oldest first."""
        return self._sql.all(
            values.transfer.KeptChange,
            "SELECT id, tool, session, number_in_session, created_at, files, undone_by"
            " FROM changes ORDER BY position",
        )

    def kept_revisions(self) -> list[KeptRevision]:
        """All revisions without their contents, the oldest first."""
        return self._sql.all(
            values.transfer.KeptRevision,
            f"SELECT id, path, hash, bytes, {_KIND}, tool, created_at, {_NUMBER}, action,"
            " hash_after, moved_from FROM revisions r ORDER BY id",
        )

    def latest_change(self, tools: Sequence[str]) -> int:
        """
        The position of the latest change by one of these tools; 0 if there is none.

        Positions grow with each change; unlike numbers, they are never shown.
        """
        sql = f"SELECT coalesce(max(position), 0) FROM changes WHERE tool {self._sql.among}"
        return self._sql.number(sql, [self._sql.array(tools)])

    def undone(self, by: int) -> list[FileChange]:
        """The changes that a change undid, newest first."""
        return self._changes("WHERE undone_by = ? ORDER BY position DESC", [by])

    def change(self, number: int) -> FileChange | None:
        """A change by its number; None if it is not kept."""
        if number > _LARGEST_ID:  # which SQLite does not take
            return None
        return next(iter(self._changes("WHERE id = ?", [number])), None)

    def _changes(self, where: str, parameters: Sequence[object]) -> list[FileChange]:
        changes = []
        for row in self._sql.rows(_CHANGE_TYPES, _CHANGES + where, parameters):
            number, tool, session, created, count, undone_by, number_in_session = row
            files = self._revisions("WHERE r.change_id = ? ORDER BY r.id", [number])
            changes.append(
                FileChange(
                    number=number,
                    tool=tool,
                    session=session,
                    created=created,
                    files=tuple(files),
                    is_kept=len(files) == count,
                    undone_by=undone_by,
                    number_in_session=number_in_session,
                )
            )
        return changes

    def _revisions(self, where: str, parameters: Sequence[object]) -> list[Revision]:
        return self._sql.all(Revision, _REVISIONS + where, parameters)


class RevisionsWriter(Revisions):
    """Keeps revisions."""

    def begin_change(self, *, tool: str, session: str) -> int:
        """Add a change that has no files yet; returns its number, one of `new_numbers`."""
        row = [tool, session, clock.now(), session]
        return next(number for number in new_numbers() if self._insert_change(number, row))

    def _insert_change(self, number: int, row: Sequence[object]) -> bool:
        """Whether the number was free."""
        cursor = self._sql.run(
            "INSERT INTO changes (id, tool, session, created_at, number_in_session, position)"
            " VALUES (?, ?, ?, ?, (SELECT coalesce(max(number_in_session), 0) + 1 FROM changes"
            f" WHERE session = ?), {self._next_position}) ON CONFLICT (id) DO NOTHING",
            [number, *row],
        )
        return cursor.rowcount > 0

    @property
    def _next_position(self) -> str:
        return self._sql.dialect.next_number.format("position", "changes")

    def keep(self, change: int, step: FileStep) -> int:
        """
        Add what a change does to a file, and remove the oldest revisions that exceed the limits.

        A change that has no revision left is removed.

        Returns:
            The id of the revision.
        """
        before = step.before
        tool = self._sql.value("SELECT tool FROM changes WHERE id = ?", [change])
        revision_id = self._sql.number(
            "INSERT INTO revisions (path, hash, bytes, content, tool, created_at, kind,"
            " change_id, action, hash_after, moved_from)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            [
                *(step.path, before.hash, before.size, before.stored, tool, clock.now()),
                *(before.kind, change, step.action, step.hash_after, step.moved_from),
            ],
        )
        self._sql.run("UPDATE changes SET files = files + 1 WHERE id = ?", [change])
        self._remove_oldest(step.path)
        return revision_id

    def join(self, number: int, later: int) -> bool:
        """
        Make a change of one file a part of an earlier one, so that undo takes back both.

        The content between both is not kept. Returns False, and leaves them as they are, unless
        ``later`` went on in the same session where ``number`` had left that file.
        """
        first, second = self.change(number), self.change(later)
        if first is None or second is None or number == later:
            return False
        if len(first.files) != 1 or len(second.files) != 1 or first.undone_by is not None:
            return False
        before, after = first.files[0], second.files[0]
        if (
            (first.session, first.tool) != (second.session, second.tool)
            or (before.path, before.hash_after) != (after.path, after.hash)
            or before.action not in ("write", "create")
            or after.action != "write"
            or [each.id for each in self.history(after.path)[:2]] != [after.id, before.id]
        ):
            return False
        self._sql.run(
            "UPDATE revisions SET hash_after = ? WHERE id = ?", [after.hash_after, before.id]
        )
        self.forget(after.id)
        return True

    def put_change(self, change: KeptChange) -> None:
        """
        Add a change of another database under its number, which must be free, as the latest one.
        """
        self._sql.run(
            "INSERT INTO changes (id, tool, session, number_in_session, created_at, files,"
            f" undone_by, position) VALUES (?, ?, ?, ?, ?, ?, ?, {self._next_position})",
            [
                *(change.number, change.tool, change.session, change.number_in_session),
                *(change.created, change.files, change.undone_by),
            ],
        )

    def put_revision(self, revision: KeptRevision, content: RevisionContent) -> None:
        """Add a revision of another database under its id, which must be free."""
        self._sql.run(
            "INSERT INTO revisions (id, path, hash, bytes, content, tool, created_at, kind,"
            " change_id, action, hash_after, moved_from)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(revision.number, revision.path, revision.hash, revision.bytes),
                *(content.stored, revision.tool, revision.created, content.kind),
                *(revision.change, revision.action, revision.hash_after, revision.moved_from),
            ],
        )
        self._sql.count_on("revisions")

    def forget(self, revision_id: int) -> None:
        """Remove a revision whose change of the file did not happen after all."""
        row = self._sql.first("SELECT change_id FROM revisions WHERE id = ?", [revision_id])
        self._sql.run("DELETE FROM revisions WHERE id = ?", [revision_id])
        if row is not None and row[0] is not None:
            self._sql.run("UPDATE changes SET files = files - 1 WHERE id = ?", [row[0]])
            self._remove_if_empty(row[0])

    def set_undone(self, change: int, by: int) -> None:
        """Record that a change was undone by a later one."""
        self._sql.run("UPDATE changes SET undone_by = ? WHERE id = ?", [by, change])

    def _remove_oldest(self, path: str) -> None:
        """Remove the oldest revisions of a file that exceed the limits."""
        rows = self._sql.run(
            "SELECT id, length(content), change_id FROM revisions WHERE path = ? ORDER BY id DESC",
            [path],
        ).fetchall()
        total = 0
        for position, (revision_id, size, _) in enumerate(rows):
            total += size
            if position >= MAX_REVISIONS or total > MAX_REVISION_BYTES:
                self._sql.run(
                    "DELETE FROM revisions WHERE path = ? AND id <= ?", [path, revision_id]
                )
                for change in {row[2] for row in rows[position:]} - {None}:
                    self._remove_if_empty(change)
                return

    def _remove_if_empty(self, change: int) -> None:
        self._sql.run(
            "DELETE FROM changes WHERE id = ?"
            " AND NOT EXISTS (SELECT 1 FROM revisions WHERE change_id = ?)",
            [change, change],
        )

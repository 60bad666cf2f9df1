"""Reads and writes changes, and revisions, the earlier contents of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.store.revisions import (
    FIRST_WITHOUT_CHANGE,
    MAX_REVISION_BYTES,
    MAX_REVISIONS,
    FileStep,
    RevisionContent,
    new_numbers,
    unpack_revision,
)
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock
from qmd.values import Revision
from qmd.values.revisions import FileChange

if TYPE_CHECKING:
    from qmd.values.exports import KeptChange, KeptRevision

_REVISIONS = f"""
    SELECT r.id, coalesce(r.change_id, {FIRST_WITHOUT_CHANGE} + r.id),
           r.path, r.created_at, r.tool, r.kind, r.bytes, r.hash, r.action, r.moved_from,
           coalesce(c.session, ''), c.id, r.hash_after
    FROM revisions r LEFT JOIN changes c ON c.id = r.change_id
"""
_CHANGES = "SELECT id, tool, session, created_at, files, undone_by, number_in_session FROM changes "
_LARGEST_ID = 2**63 - 1


class SqliteRevisions:
    """`qmd.store.revisions.Revisions` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def history(self, path: str) -> list[Revision]:
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
        row = self._connection.execute(
            "SELECT content, kind, bytes, hash FROM revisions WHERE id = ?", [revision_id]
        ).fetchone()
        if row is None:
            return None
        require_types(row, bytes, str, int, str)
        return None if row[1] == "none" else unpack_revision(*row)

    def changes(self, session: str | None = None, *, limit: int) -> list[FileChange]:
        where, parameters = "", list[object]()
        if session is not None:
            where, parameters = "WHERE session = ? ", [session]
        return self._changes(f"{where}ORDER BY position DESC LIMIT ?", [*parameters, limit])

    def kept_changes(self) -> list[KeptChange]:
        from qmd.values.exports import KeptChange

        rows = self._connection.execute(
            "SELECT id, tool, session, number_in_session, created_at, files, undone_by"
            " FROM changes ORDER BY position"
        ).fetchall()
        for row in rows:
            require_types(row, int, str, str, int, str, int, int | None)
        return [KeptChange(*row) for row in rows]

    def kept_revisions(self) -> list[KeptRevision]:
        from qmd.values.exports import KeptRevision

        return [
            KeptRevision(
                each.id,
                each.path,
                each.hash,
                each.bytes,
                each.kind,
                each.tool,
                each.created,
                each.change,
                each.action,
                each.hash_after,
                each.moved_from,
            )
            for each in self._revisions("ORDER BY r.id", [])
        ]

    def latest_change(self, tools: Sequence[str]) -> int:
        places = ", ".join("?" * len(tools))
        (number,) = self._connection.execute(
            f"SELECT coalesce(max(position), 0) FROM changes WHERE tool IN ({places})", list(tools)
        ).fetchone()
        return int(number)

    def undone(self, by: int) -> list[FileChange]:
        return self._changes("WHERE undone_by = ? ORDER BY position DESC", [by])

    def change(self, number: int) -> FileChange | None:
        if number > _LARGEST_ID:  # which SQLite does not take
            return None
        return next(iter(self._changes("WHERE id = ?", [number])), None)

    def _changes(self, where: str, parameters: Sequence[object]) -> list[FileChange]:
        changes = []
        for row in self._connection.execute(_CHANGES + where, parameters).fetchall():
            require_types(row, int, str, str, str, int, int | None, int)
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
        rows = self._connection.execute(_REVISIONS + where, parameters).fetchall()
        texts = (str, str, str, str)
        for row in rows:
            require_types(
                row, int, int, *texts, int, str, str, str | None, str, int | None, str | None
            )
        return [
            Revision(
                id=row[0],
                number=row[1],
                path=row[2],
                created=row[3],
                tool=row[4],
                kind=row[5].partition(",")[0],  # without the form in which it is stored
                bytes=row[6],
                hash=row[7],
                action=row[8],
                moved_from=row[9],
                session=row[10],
                change=row[11],
                hash_after=row[12],
            )
            for row in rows
        ]


class SqliteRevisionsWriter(SqliteRevisions):
    """`qmd.store.revisions.RevisionsWriter` in SQLite."""

    def begin_change(self, *, tool: str, session: str) -> int:
        (last,) = self._connection.execute(
            "SELECT coalesce(max(number_in_session), 0) FROM changes WHERE session = ?", [session]
        ).fetchone()
        row = [tool, session, last + 1, clock.now(), self._next_position()]
        return next(number for number in new_numbers() if self._insert_change(number, row))

    def _insert_change(self, number: int, row: Sequence[object]) -> bool:
        """Whether the number was free."""
        cursor = self._connection.execute(
            "INSERT INTO changes (id, tool, session, number_in_session, created_at, position)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            [number, *row],
        )
        return cursor.rowcount > 0

    def _next_position(self) -> int:
        (position,) = self._connection.execute(
            "SELECT coalesce(max(position), 0) + 1 FROM changes"
        ).fetchone()
        return int(position)

    def keep(self, change: int, step: FileStep) -> int:
        before = step.before
        cursor = self._connection.execute(
            "INSERT INTO revisions (path, hash, bytes, content, tool, created_at, kind,"
            " change_id, action, hash_after, moved_from)"
            " SELECT ?, ?, ?, ?, tool, ?, ?, id, ?, ?, ? FROM changes WHERE id = ?",
            [
                *(step.path, before.hash, before.size, before.stored, clock.now(), before.kind),
                *(step.action, step.hash_after, step.moved_from, change),
            ],
        )
        revision_id = cursor.lastrowid
        assert revision_id is not None
        self._connection.execute("UPDATE changes SET files = files + 1 WHERE id = ?", [change])
        self._remove_oldest(step.path)
        return revision_id

    def put_change(self, change: KeptChange) -> None:
        self._connection.execute(
            "INSERT INTO changes (id, tool, session, number_in_session, created_at, files,"
            " undone_by, position) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(change.number, change.tool, change.session, change.number_in_session),
                *(change.created, change.files, change.undone_by, self._next_position()),
            ],
        )

    def put_revision(self, revision: KeptRevision, content: RevisionContent) -> None:
        self._connection.execute(
            "INSERT INTO revisions (id, path, hash, bytes, content, tool, created_at, kind,"
            " change_id, action, hash_after, moved_from)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(revision.number, revision.path, revision.hash, revision.bytes),
                *(content.stored, revision.tool, revision.created, content.kind),
                *(revision.change, revision.action, revision.hash_after, revision.moved_from),
            ],
        )

    def forget(self, revision_id: int) -> None:
        row = self._connection.execute(
            "SELECT change_id FROM revisions WHERE id = ?", [revision_id]
        ).fetchone()
        self._connection.execute("DELETE FROM revisions WHERE id = ?", [revision_id])
        if row is not None and row[0] is not None:
            self._connection.execute("UPDATE changes SET files = files - 1 WHERE id = ?", [row[0]])
            self._remove_if_empty(row[0])

    def set_undone(self, change: int, by: int) -> None:
        self._connection.execute("UPDATE changes SET undone_by = ? WHERE id = ?", [by, change])

    def _remove_oldest(self, path: str) -> None:
        """Remove the oldest revisions of a file that exceed the limits."""
        rows = self._connection.execute(
            "SELECT id, length(content), change_id FROM revisions WHERE path = ? ORDER BY id DESC",
            [path],
        ).fetchall()
        total = 0
        for position, (revision_id, size, _) in enumerate(rows):
            total += size
            if position >= MAX_REVISIONS or total > MAX_REVISION_BYTES:
                self._connection.execute(
                    "DELETE FROM revisions WHERE path = ? AND id <= ?", [path, revision_id]
                )
                for change in {row[2] for row in rows[position:]} - {None}:
                    self._remove_if_empty(change)
                return

    def _remove_if_empty(self, change: int) -> None:
        self._connection.execute(
            "DELETE FROM changes WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM revisions WHERE change_id = ?1)",
            [change],
        )

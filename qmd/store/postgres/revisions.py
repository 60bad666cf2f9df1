"""Reads and writes changes, and revisions, the earlier contents of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.store.revisions import (
    FIRST_WITHOUT_CHANGE,
    MAX_REVISION_BYTES,
    MAX_REVISIONS,
    FileStep,
    RevisionContent,
    new_numbers,
    unpack_revision,
)
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


class PostgresRevisions:
    """`qmd.store.revisions.Revisions` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def history(self, path: str) -> list[Revision]:
        revisions: dict[int, Revision] = {}
        places = [(path, _LARGEST_ID)]
        while places:
            path, before = places.pop()
            rows = self._revisions(
                "WHERE (r.path = %s OR r.moved_from = %s) AND r.id < %s ORDER BY r.id DESC",
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
            "SELECT content, kind, bytes, hash FROM revisions WHERE id = %s", [revision_id]
        ).fetchone()
        if row is None:
            return None
        return None if row[1] == "none" else unpack_revision(*row)

    def changes(self, session: str | None = None, *, limit: int) -> list[FileChange]:
        where, parameters = "", list[object]()
        if session is not None:
            where, parameters = "WHERE session = %s ", [session]
        return self._changes(f"{where}ORDER BY position DESC LIMIT %s", [*parameters, limit])

    def kept_changes(self) -> list[KeptChange]:
        from qmd.values.exports import KeptChange

        rows = self._connection.execute(
            "SELECT id, tool, session, number_in_session, created_at, files, undone_by"
            " FROM changes ORDER BY position"
        ).fetchall()
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
        sql = "SELECT coalesce(max(position), 0) FROM changes WHERE tool = ANY(%s)"
        return int(one(self._connection, sql, [list(tools)])[0])

    def undone(self, by: int) -> list[FileChange]:
        return self._changes("WHERE undone_by = %s ORDER BY position DESC", [by])

    def change(self, number: int) -> FileChange | None:
        if number > _LARGEST_ID:  # which a column cannot hold
            return None
        return next(iter(self._changes("WHERE id = %s", [number])), None)

    def _changes(self, where: str, parameters: Sequence[object]) -> list[FileChange]:
        changes = []
        for row in self._connection.execute(_CHANGES + where, parameters).fetchall():
            number, tool, session, created, count, undone_by, number_in_session = row
            files = self._revisions("WHERE r.change_id = %s ORDER BY r.id", [number])
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


class PostgresRevisionsWriter(PostgresRevisions):
    """`qmd.store.revisions.RevisionsWriter` in PostgreSQL."""

    def begin_change(self, *, tool: str, session: str) -> int:
        row = [tool, session, clock.now(), session]
        return next(number for number in new_numbers() if self._insert_change(number, row))

    def _insert_change(self, number: int, row: Sequence[object]) -> bool:
        """Whether the number was free."""
        cursor = self._connection.execute(
            "INSERT INTO changes (id, tool, session, number_in_session, created_at)"
            " SELECT %s, %s, %s, coalesce(max(number_in_session), 0) + 1, %s FROM changes"
            " WHERE session = %s ON CONFLICT (id) DO NOTHING",
            [number, *row],
        )
        return cursor.rowcount > 0

    def keep(self, change: int, step: FileStep) -> int:
        before = step.before
        (revision_id,) = one(
            self._connection,
            "INSERT INTO revisions (path, hash, bytes, content, tool, created_at, kind,"
            " change_id, action, hash_after, moved_from)"
            " SELECT %s, %s, %s::bigint, %s::bytea, tool, %s, %s, id, %s, %s, %s"
            " FROM changes WHERE id = %s RETURNING id",
            [
                *(step.path, before.hash, before.size, before.stored, clock.now(), before.kind),
                *(step.action, step.hash_after, step.moved_from, change),
            ],
        )
        self._connection.execute("UPDATE changes SET files = files + 1 WHERE id = %s", [change])
        self._remove_oldest(step.path)
        return int(revision_id)

    def put_change(self, change: KeptChange) -> None:
        self._connection.execute(
            "INSERT INTO changes (id, tool, session, number_in_session, created_at, files,"
            " undone_by) VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [
                *(change.number, change.tool, change.session, change.number_in_session),
                *(change.created, change.files, change.undone_by),
            ],
        )

    def put_revision(self, revision: KeptRevision, content: RevisionContent) -> None:
        self._connection.execute(
            "INSERT INTO revisions (id, path, hash, bytes, content, tool, created_at, kind,"
            " change_id, action, hash_after, moved_from)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(revision.number, revision.path, revision.hash, revision.bytes),
                *(content.stored, revision.tool, revision.created, content.kind),
                *(revision.change, revision.action, revision.hash_after, revision.moved_from),
            ],
        )
        # The ids of new rows must be greater than all that are there.
        self._connection.execute(
            "SELECT setval(pg_get_serial_sequence('revisions', 'id'), max(id)) FROM revisions"
        )

    def forget(self, revision_id: int) -> None:
        row = self._connection.execute(
            "SELECT change_id FROM revisions WHERE id = %s", [revision_id]
        ).fetchone()
        self._connection.execute("DELETE FROM revisions WHERE id = %s", [revision_id])
        if row is not None and row[0] is not None:
            self._connection.execute("UPDATE changes SET files = files - 1 WHERE id = %s", [row[0]])
            self._remove_if_empty(row[0])

    def set_undone(self, change: int, by: int) -> None:
        self._connection.execute("UPDATE changes SET undone_by = %s WHERE id = %s", [by, change])

    def _remove_oldest(self, path: str) -> None:
        """Remove the oldest revisions of a file that exceed the limits."""
        rows = self._connection.execute(
            "SELECT id, length(content), change_id FROM revisions WHERE path = %s ORDER BY id DESC",
            [path],
        ).fetchall()
        total = 0
        for position, (revision_id, size, _) in enumerate(rows):
            total += size
            if position >= MAX_REVISIONS or total > MAX_REVISION_BYTES:
                self._connection.execute(
                    "DELETE FROM revisions WHERE path = %s AND id <= %s", [path, revision_id]
                )
                for change in {row[2] for row in rows[position:]} - {None}:
                    self._remove_if_empty(change)
                return

    def _remove_if_empty(self, change: int) -> None:
        self._connection.execute(
            "DELETE FROM changes WHERE id = %s"
            " AND NOT EXISTS (SELECT 1 FROM revisions WHERE change_id = %s)",
            [change, change],
        )

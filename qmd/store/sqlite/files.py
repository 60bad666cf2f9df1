"""Keeps the state of each file at its last scan, and writes documents from new scans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from qmd.store.files import DocumentPlace, StoredFile
from qmd.store.sql import Sql, vector_state
from qmd.store.sqlite import document_rows
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock
from qmd.system.surrogates import whole
from qmd.values import FileState, NewDocument, SkippedFile
from qmd.values.names import name_key
from qmd.values.reports import SkipCount, WarnedDocument


def _has_surrogates(path: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in path)


class SqliteFiles:
    """`qmd.store.files.Files` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def in_collection(self, collection_id: int) -> dict[str, StoredFile]:
        return self._select("collection_id = ?", [collection_id])

    def at_or_below(self, collection_id: int, places: Iterable[str]) -> dict[str, StoredFile]:
        files: dict[str, StoredFile] = {}
        for place in places:
            if not place:
                return self.in_collection(collection_id)
            if not place.isprintable() and _has_surrogates(place):
                continue  # no document has such a path
            # "0" follows "/".
            condition = "collection_id = ? AND (path = ? OR path > ? AND path < ?)"
            files |= self._select(condition, [collection_id, place, f"{place}/", f"{place}0"])
        return files

    def state_at(self, collection_id: int, path: str) -> FileState | None:
        row = self._connection.execute(
            "SELECT bytes, mtime_ns, inode, device FROM documents"
            " WHERE collection_id = ? AND path = ?",
            [collection_id, path],
        ).fetchone()
        return None if row is None else FileState(*row)

    def with_hash(self, collection_id: int, digest: str) -> dict[str, StoredFile]:
        return self._select("collection_id = ? AND hash = ?", [collection_id, digest])

    def attachments_at_or_below(self, collection_id: int, places: Iterable[str]) -> set[str]:
        paths: set[str] = set()
        for place in places:
            if not place.isprintable() and _has_surrogates(place):
                continue  # no stored path is such
            rows = self._connection.execute(
                "SELECT path FROM attachments WHERE collection_id = ?1"
                + (" AND (path = ?2 OR path > ?3 AND path < ?4)" if place else ""),
                [collection_id, place, f"{place}/", f"{place}0"] if place else [collection_id],
            )
            paths.update(path for (path,) in rows)
        return paths

    def _select(self, condition: str, values: Sequence[object]) -> dict[str, StoredFile]:
        rows = self._connection.execute(
            "SELECT path, id, bytes, mtime_ns, inode, device, hash,"
            # One whose text was changed by hand has no full text: as if made by no parser of ours.
            " CASE WHEN id IN (SELECT document_id FROM z_searchable) THEN parser_version ELSE 0 END"
            f" FROM documents WHERE {condition}",
            values,
        )
        same: dict[int, int] = {}  # most rows have the same device and version: one object of each
        return {
            path: StoredFile(
                document_id,
                FileState(size, mtime, inode, same.setdefault(device, device)),
                digest,
                same.setdefault(version, version),
            )
            for path, document_id, size, mtime, inode, device, digest, version in rows
        }

    def skips_in_collection(
        self, collection_id: int, version: int | None = None
    ) -> dict[str, tuple[SkippedFile, FileState | None]]:
        rows = self._connection.execute(
            "SELECT c.name, s.path, s.reason, s.detail, s.bytes, s.mtime_ns, s.inode, s.device,"
            " s.parser_version FROM skipped_files s JOIN collections c ON c.id = s.collection_id"
            " WHERE s.collection_id = ?",
            [collection_id],
        )
        return {
            path: (
                SkippedFile(name, path, reason, detail),
                FileState(size, mtime, inode, device) if read_by == version and read_by else None,
            )
            for name, path, reason, detail, size, mtime, inode, device, read_by in rows
        }

    def all_skips(self) -> list[SkippedFile]:
        rows = self._connection.execute(
            "SELECT c.name, s.path, s.reason, s.detail FROM skipped_files s"
            " JOIN collections c ON c.id = s.collection_id ORDER BY c.name, s.path"
        ).fetchall()
        for row in rows:
            require_types(row, str, str, str, str)
        return [SkippedFile(*row) for row in rows]

    def skip_counts(self) -> list[SkipCount]:
        rows = self._connection.execute(
            "SELECT c.name, s.reason, count(*) FROM skipped_files s"
            " JOIN collections c ON c.id = s.collection_id"
            " GROUP BY c.name, s.reason ORDER BY c.name, s.reason"
        ).fetchall()
        for row in rows:
            require_types(row, str, str, int)
        return [SkipCount(*row) for row in rows]

    def skips(self, reason: str, *, offset: int, limit: int) -> list[SkippedFile]:
        rows = self._connection.execute(
            "SELECT c.name, s.path, s.reason, s.detail FROM skipped_files s"
            " JOIN collections c ON c.id = s.collection_id WHERE s.reason = ?"
            " ORDER BY c.name, s.path LIMIT ? OFFSET ?",
            [whole(reason), limit, offset],
        ).fetchall()
        for row in rows:
            require_types(row, str, str, str, str)
        return [SkippedFile(*row) for row in rows]

    def warned(self, *, offset: int, limit: int) -> list[WarnedDocument]:
        rows = self._connection.execute(
            "SELECT c.name || '/' || d.path, d.warnings FROM documents d"
            " JOIN collections c ON c.id = d.collection_id WHERE d.warnings <> '[]'"
            " ORDER BY 1 LIMIT ? OFFSET ?",
            [limit, offset],
        ).fetchall()
        for row in rows:
            require_types(row, str, str)
        return [WarnedDocument(file, tuple(json.loads(warnings))) for file, warnings in rows]

    def count_warned(self) -> int:
        row = self._connection.execute(
            "SELECT count(*) FROM documents WHERE warnings <> '[]'"
        ).fetchone()
        return int(row[0])

    def indexed_per_hour(self, since: str) -> list[tuple[str, int]]:
        rows = self._connection.execute(
            "SELECT substr(indexed_at, 1, 13), count(*) FROM documents WHERE indexed_at >= ?"
            " GROUP BY 1 ORDER BY 1",
            [since],
        ).fetchall()
        for row in rows:
            require_types(row, str, int)
        return [(hour, count) for hour, count in rows]


class SqliteFilesWriter(SqliteFiles):
    """`qmd.store.files.FilesWriter` in SQLite."""

    def put(
        self, collection_id: int, document: NewDocument, replace: DocumentPlace | None = None
    ) -> int:
        return self.put_all(collection_id, [(document, replace)])[0]

    def put_all(
        self,
        collection_id: int,
        documents: Iterable[tuple[NewDocument, DocumentPlace | None]],
    ) -> list[int]:
        return document_rows.put_all(self._sql, collection_id, documents)

    def set_states(self, states: Iterable[tuple[int, FileState]]) -> None:
        self._connection.executemany(
            "UPDATE documents SET modified_at = ?, bytes = ?, mtime_ns = ?, inode = ?, device = ?"
            " WHERE id = ?",
            [(clock.from_ns(state.mtime_ns), *state, document_id) for document_id, state in states],
        )

    def delete(self, collection_id: int, places: Iterable[tuple[str, StoredFile]]) -> None:
        deleted = False
        for path, file in places:
            row = self._connection.execute(
                "SELECT bytes, mtime_ns, inode, device FROM documents"
                " WHERE id = ? AND collection_id = ? AND path = ?",
                [file.id, collection_id, path],
            ).fetchone()
            if row is not None and FileState(*row) == file.state:
                self._connection.execute("DELETE FROM documents WHERE id = ?", [file.id])
                deleted = True
        if deleted:
            vector_state.advance(self._sql)

    def replace_skips(
        self,
        collection_id: int,
        skips: Iterable[tuple[SkippedFile, FileState | None]],
        version: int,
    ) -> None:
        self._connection.execute(
            "DELETE FROM skipped_files WHERE collection_id = ?", [collection_id]
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO skipped_files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    collection_id,
                    s.path,
                    s.reason,
                    s.detail,
                    *(state or [None] * 4),
                    state and version,
                )
                for s, state in skips
            ],
        )

    def change_attachments(
        self, collection_id: int, added: Iterable[str], removed: Iterable[str]
    ) -> None:
        self._connection.executemany(
            "DELETE FROM attachments WHERE collection_id = ? AND path = ?",
            [(collection_id, path) for path in removed],
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO attachments (collection_id, path, name_key) VALUES (?, ?, ?)",
            [(collection_id, path, name_key(path)) for path in added],
        )

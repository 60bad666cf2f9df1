"""Keeps the state of each file at its last scan, and writes documents from new scans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qmd.store.files import DocumentPlace, StoredFile
from qmd.store.postgres import document_rows
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import many, one, path_below
from qmd.store.sql import Sql, vector_state
from qmd.system import clock
from qmd.system.surrogates import whole
from qmd.values import FileState, NewDocument, SkippedFile
from qmd.values.names import name_key
from qmd.values.reports import SkipCount, WarnedDocument


def _has_surrogates(path: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in path)


class PostgresFiles:
    """`qmd.store.files.Files` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def in_collection(self, collection_id: int) -> dict[str, StoredFile]:
        return self._select("collection_id = %s", [collection_id])

    def at_or_below(self, collection_id: int, places: Iterable[str]) -> dict[str, StoredFile]:
        files: dict[str, StoredFile] = {}
        for place in places:
            if not place:
                return self.in_collection(collection_id)
            if not place.isprintable() and _has_surrogates(place):
                continue  # no document has such a path
            condition = f"collection_id = %s AND {path_below('path')}"
            files |= self._select(condition, [collection_id, place, f"{place}/", f"{place}0"])
        return files

    def state_at(self, collection_id: int, path: str) -> FileState | None:
        row = self._connection.execute(
            "SELECT bytes, mtime_ns, inode, device FROM documents"
            " WHERE collection_id = %s AND path = %s",
            [collection_id, path],
        ).fetchone()
        return None if row is None else FileState(*row)

    def with_hash(self, collection_id: int, digest: str) -> dict[str, StoredFile]:
        return self._select("collection_id = %s AND hash = %s", [collection_id, digest])

    def attachments_at_or_below(self, collection_id: int, places: Iterable[str]) -> set[str]:
        paths: set[str] = set()
        for place in places:
            if not place.isprintable() and _has_surrogates(place):
                continue  # no stored path is such
            rows = self._connection.execute(
                "SELECT path FROM attachments WHERE collection_id = %s"
                + (f" AND {path_below('path')}" if place else ""),
                [collection_id, place, f"{place}/", f"{place}0"] if place else [collection_id],
            )
            paths.update(path for (path,) in rows)
        return paths

    def _select(self, condition: str, values: Sequence[object]) -> dict[str, StoredFile]:
        rows = self._connection.execute(
            "SELECT path, id, bytes, mtime_ns, inode, device, hash,"
            # One whose text was changed by hand has no full text: as if made by no parser of ours.
            " CASE WHEN id IN (SELECT document_id FROM z_document_tokens)"
            " THEN parser_version ELSE 0 END"
            f" FROM documents WHERE {condition}",
            values,
        )
        return {
            path: StoredFile(document_id, FileState(size, mtime, inode, device), digest, version)
            for path, document_id, size, mtime, inode, device, digest, version in rows
        }

    def skips_in_collection(
        self, collection_id: int, version: int | None = None
    ) -> dict[str, tuple[SkippedFile, FileState | None]]:
        rows = self._connection.execute(
            "SELECT c.name, s.path, s.reason, s.detail, s.bytes, s.mtime_ns, s.inode, s.device,"
            " s.parser_version FROM skipped_files s JOIN collections c ON c.id = s.collection_id"
            " WHERE s.collection_id = %s",
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
        return [SkippedFile(*row) for row in rows]

    def skip_counts(self) -> list[SkipCount]:
        rows = self._connection.execute(
            "SELECT c.name, s.reason, count(*) FROM skipped_files s"
            " JOIN collections c ON c.id = s.collection_id"
            " GROUP BY c.name, s.reason ORDER BY c.name, s.reason"
        ).fetchall()
        return [SkipCount(*row) for row in rows]

    def skips(self, reason: str, *, offset: int, limit: int) -> list[SkippedFile]:
        rows = self._connection.execute(
            "SELECT c.name, s.path, s.reason, s.detail FROM skipped_files s"
            " JOIN collections c ON c.id = s.collection_id WHERE s.reason = %s"
            " ORDER BY c.name, s.path LIMIT %s OFFSET %s",
            [whole(reason), limit, offset],
        ).fetchall()
        return [SkippedFile(*row) for row in rows]

    def warned(self, *, offset: int, limit: int) -> list[WarnedDocument]:
        rows = self._connection.execute(
            "SELECT c.name || '/' || d.path, d.warnings FROM documents d"
            " JOIN collections c ON c.id = d.collection_id WHERE d.warnings::text <> '[]'"
            " ORDER BY 1 LIMIT %s OFFSET %s",
            [limit, offset],
        ).fetchall()
        return [WarnedDocument(file, tuple(warnings)) for file, warnings in rows]

    def count_warned(self) -> int:
        sql = "SELECT count(*) FROM documents WHERE warnings::text <> '[]'"
        return int(one(self._connection, sql)[0])

    def indexed_per_hour(self, since: str) -> list[tuple[str, int]]:
        rows = self._connection.execute(
            "SELECT substr(indexed_at, 1, 13), count(*) FROM documents WHERE indexed_at >= %s"
            " GROUP BY 1 ORDER BY 1",
            [since],
        ).fetchall()
        return [(hour, count) for hour, count in rows]


class PostgresFilesWriter(PostgresFiles):
    """`qmd.store.files.FilesWriter` in PostgreSQL."""

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
        many(
            self._connection,
            "UPDATE documents SET modified_at = %s, bytes = %s, mtime_ns = %s, inode = %s,"
            " device = %s WHERE id = %s",
            [(clock.from_ns(state.mtime_ns), *state, document_id) for document_id, state in states],
        )

    def delete(self, collection_id: int, places: Iterable[tuple[str, StoredFile]]) -> None:
        deleted = False
        for path, file in places:
            row = self._connection.execute(
                "SELECT bytes, mtime_ns, inode, device FROM documents"
                " WHERE id = %s AND collection_id = %s AND path = %s",
                [file.id, collection_id, path],
            ).fetchone()
            if row is not None and FileState(*row) == file.state:
                self._connection.execute("DELETE FROM documents WHERE id = %s", [file.id])
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
            "DELETE FROM skipped_files WHERE collection_id = %s", [collection_id]
        )
        many(
            self._connection,
            "INSERT INTO skipped_files (collection_id, path, reason, detail, bytes, mtime_ns,"
            " inode, device, parser_version) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (collection_id, path) DO UPDATE SET reason = excluded.reason,"
            " detail = excluded.detail, bytes = excluded.bytes, mtime_ns = excluded.mtime_ns,"
            " inode = excluded.inode, device = excluded.device,"
            " parser_version = excluded.parser_version",
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
        self._connection.execute(
            "DELETE FROM attachments WHERE collection_id = %s AND path = ANY(%s)",
            [collection_id, list(removed)],
        )
        many(
            self._connection,
            "INSERT INTO attachments (collection_id, path, name_key) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            [(collection_id, path, name_key(path)) for path in added],
        )

"""The store's side of the files: what the last scan saw, and documents written from new scans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from qmd.store.files import DocumentPlace, StoredFile
from qmd.store.sqlite import vector_state
from qmd.store.sqlite.documents import name_key
from qmd.store.sqlite.library import Connection
from qmd.store.sqlite.rows import require_types
from qmd.system import clock
from qmd.values import FileState, FullTextEntry, NewDocument, SkippedFile


def _has_surrogates(path: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in path)


# --- writing -------------------------------------------------------------------------

_COLUMNS = (
    "collection_id, path, name_key, title, hash, date, modified_at, bytes, mtime_ns, inode,"
    " device, encoding, parser_version, body_start, properties, warnings, indexed_at, text"
)
_INSERT = f"INSERT INTO documents ({_COLUMNS}) VALUES ({', '.join('?' * 18)})"
_UPDATE = (
    "UPDATE documents SET "
    + ", ".join(f"{column.strip()} = ?" for column in _COLUMNS.split(","))
    + " WHERE id = ?"
)


# --- skipped files -------------------------------------------------------------------


class SqliteFiles:
    """`qmd.store.files.Files` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def in_collection(self, collection_id: int) -> dict[str, StoredFile]:
        return self._select("collection_id = ?", [collection_id])

    def at_or_below(self, collection_id: int, places: Iterable[str]) -> dict[str, StoredFile]:
        found: dict[str, StoredFile] = {}
        for place in places:
            if not place:
                return self.in_collection(collection_id)
            if not place.isprintable() and _has_surrogates(place):
                continue  # no document has such a path
            # "0" follows "/".
            condition = "collection_id = ? AND (path = ? OR path > ? AND path < ?)"
            found |= self._select(condition, [collection_id, place, f"{place}/", f"{place}0"])
        return found

    def state_at(self, collection_id: int, path: str) -> FileState | None:
        row = self._connection.execute(
            "SELECT bytes, mtime_ns, inode, device FROM documents"
            " WHERE collection_id = ? AND path = ?",
            [collection_id, path],
        ).fetchone()
        return None if row is None else FileState(*row)

    def with_hash(self, collection_id: int, digest: str) -> dict[str, StoredFile]:
        return self._select("collection_id = ? AND hash = ?", [collection_id, digest])

    def _select(self, condition: str, values: Sequence[object]) -> dict[str, StoredFile]:
        rows = self._connection.execute(
            "SELECT path, id, bytes, mtime_ns, inode, device, hash,"
            # One whose text was changed by hand has no full text: as if made by no parser of ours.
            " CASE WHEN id IN (SELECT document_id FROM searchable) THEN parser_version ELSE 0 END"
            f" FROM documents WHERE {condition}",
            values,
        )
        return {
            path: StoredFile(number, FileState(size, mtime, inode, device), digest, version)
            for path, number, size, mtime, inode, device, digest, version in rows
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


class SqliteFilesWriter(SqliteFiles):
    """`qmd.store.files.FilesWriter` in SQLite."""

    def put(
        self, collection_id: int, document: NewDocument, replace: DocumentPlace | None = None
    ) -> int:
        parsed = document.parsed
        row: list[object] = [
            collection_id,
            document.path,
            name_key(document.path),
            parsed.title,
            document.hash,
            parsed.date,
            clock.from_ns(document.state.mtime_ns),
            *document.state,
            parsed.encoding,
            document.parser_version,
            parsed.body_start,
            json.dumps(parsed.properties, ensure_ascii=False) if parsed.properties else "{}",
            json.dumps(parsed.warnings, ensure_ascii=False) if parsed.warnings else "[]",
            clock.now(),
            parsed.text,
        ]
        row_id = self._row_to_replace(collection_id, document.path, replace)
        if row_id is None:
            number = self._connection.execute(_INSERT, row).lastrowid
            assert number is not None  # an INSERT has one
        else:
            number = row_id
            self._connection.execute(_UPDATE, [*row, number])
            for table in ("tags", "aliases", "links"):
                self._connection.execute(f"DELETE FROM {table} WHERE document_id = ?", [number])
        if parsed.tags:
            self._connection.executemany(
                "INSERT OR IGNORE INTO tags VALUES (?, ?)", [(number, tag) for tag in parsed.tags]
            )
        if parsed.aliases:
            self._connection.executemany(
                "INSERT OR IGNORE INTO aliases VALUES (?, ?)", [(number, a) for a in parsed.aliases]
            )
        if parsed.links:
            self._connection.executemany(
                "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        number,
                        seq,
                        link.kind,
                        link.target,
                        name_key(link.target) if "://" not in link.target else None,
                        link.text if link.kind in {"wikilink", "embed"} else None,
                        link.heading,
                        link.block,
                        link.line,
                    )
                    for seq, link in enumerate(parsed.links)
                ],
            )
        self._put_chunks(number, document, fresh=row_id is None)
        self._put_fulltext(number, document.fulltext)
        return number

    def _row_to_replace(
        self, collection_id: int, path: str, wanted: DocumentPlace | None
    ) -> int | None:
        row = self._connection.execute(
            "SELECT id FROM documents WHERE collection_id = ? AND path = ?", [collection_id, path]
        ).fetchone()
        if row is not None:
            return int(row[0])
        if wanted is not None:
            row = self._connection.execute(
                "SELECT id FROM documents WHERE id = ? AND collection_id = ? AND path = ?",
                [wanted.id, collection_id, wanted.path],
            ).fetchone()
        return None if row is None else int(row[0])

    def _put_fulltext(self, number: int, row: FullTextEntry) -> None:
        # Replacing the document has taken its old row out; triggers keep the index in step.
        self._connection.execute(
            "INSERT INTO searchable (document_id, title, headings, body, path, front, words)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [number, row.title, row.headings, row.body, row.path, row.front, row.words],
        )

    def _put_chunks(self, number: int, document: NewDocument, *, fresh: bool) -> None:
        old: dict[bytes, list[int]] = {}
        if not fresh:
            for chunk_id, digest in self._connection.execute(
                "SELECT id, hash FROM chunks WHERE document_id = ? ORDER BY seq DESC", [number]
            ):
                old.setdefault(digest, []).append(chunk_id)
        inserts: list[tuple[object, ...]] = []
        updates: list[tuple[object, ...]] = []
        for chunk, digest in zip(document.parsed.chunks, document.chunk_hashes, strict=True):
            row = (
                number,
                chunk.seq,
                chunk.start_char,
                chunk.end_char,
                chunk.start_byte,
                chunk.end_byte,
                chunk.start_line,
                chunk.end_line,
                " > ".join(chunk.heading_path),
                digest,
            )
            same = old.get(digest)
            if same:
                updates.append((*row, same.pop()))
            else:
                inserts.append(row)
        gone = [chunk_id for ids in old.values() for chunk_id in ids]
        if gone:
            self._delete_chunks(gone)
        if updates:
            self._connection.executemany(
                "UPDATE chunks SET document_id = ?, seq = ?, start_char = ?, end_char = ?,"
                " start_byte = ?, end_byte = ?, start_line = ?, end_line = ?, heading_path = ?,"
                " hash = ? WHERE id = ?",
                updates,
            )
        if inserts:
            self._connection.executemany(
                "INSERT INTO chunks (document_id, seq, start_char, end_char, start_byte, end_byte,"
                " start_line, end_line, heading_path, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                inserts,
            )

    def _delete_chunks(self, ids: Sequence[int]) -> None:
        self._connection.executemany(
            "DELETE FROM chunks WHERE id = ?", [(number,) for number in ids]
        )
        vector_state.advance(self._connection)

    def set_states(self, states: Iterable[tuple[int, FileState]]) -> None:
        self._connection.executemany(
            "UPDATE documents SET modified_at = ?, bytes = ?, mtime_ns = ?, inode = ?, device = ?"
            " WHERE id = ?",
            [(clock.from_ns(state.mtime_ns), *state, number) for number, state in states],
        )

    def delete(self, collection_id: int, places: Iterable[tuple[str, StoredFile]]) -> None:
        deleted = False
        for path, known in places:
            row = self._connection.execute(
                "SELECT bytes, mtime_ns, inode, device FROM documents"
                " WHERE id = ? AND collection_id = ? AND path = ?",
                [known.id, collection_id, path],
            ).fetchone()
            if row is not None and FileState(*row) == known.state:
                self._connection.execute("DELETE FROM documents WHERE id = ?", [known.id])
                deleted = True
        if deleted:
            vector_state.advance(self._connection)

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

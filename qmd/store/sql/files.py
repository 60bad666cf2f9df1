"""The state of the files as the indexer last saw them, and storing documents made from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from qmd.records import of_tuples
from qmd.store import sql as tables
from qmd.store.sql import Capability, path_below, path_values, shared
from qmd.system import clock
from qmd.values import FileState, NewDocument, SkippedFile
from qmd.values.reports import SkipCount, WarnedDocument
from qmd.values.text import name_key, replace_halves


class StoredFile(NamedTuple):
    """A document as the indexer compares it with the disk."""

    id: int
    state: FileState
    hash: str
    parser_version: int


_stored_file = of_tuples(StoredFile)
_file_state = of_tuples(FileState)


#: Path, id, state, hash and version of the parser.
FileRow: TypeAlias = tuple[str, int, int, int, int, int, str, int]


def stored_file(row: FileRow) -> tuple[str, StoredFile]:
    """The path and the document of a row of `Files.rows_in_collection`."""
    path, number, size, mtime, inode, device, digest, version = row
    return path, _stored_file((number, _file_state((size, mtime, inode, device)), digest, version))


class DocumentPlace(NamedTuple):
    """A document by id and path. Ids are used again, so only both together identify it."""

    id: int
    path: str


def _has_surrogates(path: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in path)


_SKIPS = (
    "SELECT c.name, s.path, s.reason, s.detail FROM skipped_files s"
    " JOIN collections c ON c.id = s.collection_id"
)


class Files(Capability):
    """
    Reads documents as files: what the indexer compares with the disk.

    Paths are relative to the root of their collection.
    """

    def in_collection(self, collection_id: int) -> dict[str, StoredFile]:
        """Path → document, for all documents of a collection."""
        return dict(map(stored_file, self.rows_in_collection(collection_id)))

    def rows_in_collection(self, collection_id: int) -> Iterator[FileRow]:
        """What `stored_file` takes, for all documents of a collection, in the order of paths."""
        return self._rows("collection_id = ? ORDER BY path", [collection_id])

    def at_or_below(self, collection_id: int, places: Iterable[str]) -> dict[str, StoredFile]:
        """As `in_collection`, for the documents at these paths or below them; "" is the root."""
        files: dict[str, StoredFile] = {}
        for place in places:
            if not place:
                return self.in_collection(collection_id)
            if not place.isprintable() and _has_surrogates(place):
                continue  # no document has such a path
            condition = f"collection_id = ? AND {path_below('path')}"
            files.update(
                map(stored_file, self._rows(condition, [collection_id, *path_values(place)]))
            )
        return files

    def states_at(self, collection_id: int, paths: Iterable[str]) -> dict[str, FileState]:
        """The states of the files that the documents at these paths were made from, by path."""
        rows = self._sql.run(
            "SELECT path, bytes, mtime_ns, inode, device FROM documents"
            f" WHERE collection_id = ? AND path {self._sql.among}",
            [collection_id, self._sql.array(paths)],
        )
        return {path: FileState(*state) for path, *state in rows}

    def with_hash(self, collection_id: int, digest: str) -> dict[str, StoredFile]:
        """As `in_collection`, for the documents whose text has this hash."""
        rows = self._rows("collection_id = ? AND hash = ?", [collection_id, digest])
        return dict(map(stored_file, rows))

    def attachments_at_or_below(self, collection_id: int, places: Iterable[str]) -> set[str]:
        """The files that are no documents, at these paths or below them; "" is the root."""
        paths: set[str] = set()
        for place in places:
            if not place.isprintable() and _has_surrogates(place):
                continue  # no stored path is such
            paths |= {
                *self._sql.column(
                    "SELECT path FROM attachments WHERE collection_id = ?"
                    + (f" AND {path_below('path')}" if place else ""),
                    [collection_id, *(path_values(place) if place else ())],
                )
            }
        return paths

    def _rows(self, condition: str, values: Sequence[object]) -> Iterator[FileRow]:
        rows = self._sql.run(
            "SELECT path, id, bytes, mtime_ns, inode, device, hash,"
            # One whose text was changed by hand has no full text: as if made by no parser of ours.
            f" CASE WHEN id IN (SELECT document_id FROM {self._sql.dialect.full_text_table})"
            " THEN parser_version ELSE 0 END"
            f" FROM documents WHERE {condition}",
            values,
        )
        return iter(rows)

    def skips_in_collection(
        self, collection_id: int, version_of: Callable[[str], int] | None = None
    ) -> dict[str, tuple[SkippedFile, FileState | None]]:
        """
        Path → the skip, and the state of the file.

        The state is None if no parser has read the file, or one of another version than
        ``version_of`` says of its path.
        """
        rows = self._sql.run(
            "SELECT c.name, s.path, s.reason, s.detail, s.bytes, s.mtime_ns, s.inode, s.device,"
            " s.parser_version FROM skipped_files s JOIN collections c ON c.id = s.collection_id"
            " WHERE s.collection_id = ?",
            [collection_id],
        )
        return {
            path: (
                SkippedFile(name, path, reason, detail),
                FileState(size, mtime, inode, device)
                if read_by and version_of is not None and read_by == version_of(path)
                else None,
            )
            for name, path, reason, detail, size, mtime, inode, device, read_by in rows
        }

    def all_skips(self) -> list[SkippedFile]:
        """All files that were skipped, by collection and path."""
        return self._sql.all(SkippedFile, f"{_SKIPS} ORDER BY c.name, s.path")

    def skip_counts(self) -> list[SkipCount]:
        """How many files were skipped, by collection and reason."""
        return self._sql.all(
            SkipCount,
            "SELECT c.name, s.reason, count(*) FROM skipped_files s"
            " JOIN collections c ON c.id = s.collection_id"
            " GROUP BY c.name, s.reason ORDER BY c.name, s.reason",
        )

    def skips(self, reason: str, *, offset: int, limit: int) -> list[SkippedFile]:
        """The files that were skipped for a reason, by collection and path."""
        return self._sql.all(
            SkippedFile,
            f"{_SKIPS} WHERE s.reason = ? ORDER BY c.name, s.path LIMIT ? OFFSET ?",
            [replace_halves(reason), limit, offset],
        )

    def warned(self, *, offset: int, limit: int) -> list[WarnedDocument]:
        """
        The documents with warnings, by collection and path. Reads a row of each document: 10 ms
        for 10,000.
        """
        rows = self._sql.rows(
            (str, str),
            "SELECT c.name || '/' || d.path, d.warnings FROM documents d"
            f" JOIN collections c ON c.id = d.collection_id WHERE {self._has_warnings}"
            " ORDER BY 1 LIMIT ? OFFSET ?",
            [limit, offset],
        )
        parsed = self._sql.dialect.parsed
        return [WarnedDocument(file, tuple(parsed(warnings))) for file, warnings in rows]

    def count_warned(self) -> int:
        """How many documents have warnings. Reads a row of each document."""
        return self._sql.number(f"SELECT count(*) FROM documents d WHERE {self._has_warnings}")

    @property
    def _has_warnings(self) -> str:
        return f"{self._sql.dialect.json_text.format('d.warnings')} <> '[]'"

    def indexed_per_hour(self, since: str) -> list[tuple[str, int]]:
        """
        How many documents the index took in, as they are now, in each hour from ``since`` on.

        Reads a row of each document: 12 ms for 10,000.

        Args:
            since: ISO 8601 UTC as the database stores it.

        Returns:
            The hours, ``2026-11-23T14`` in UTC, in order; none without documents.
        """
        return self._sql.rows(
            (str, int),
            "SELECT substr(indexed_at, 1, 13), count(*) FROM documents WHERE indexed_at >= ?"
            " GROUP BY 1 ORDER BY 1",
            [since],
        )


class FilesWriter(Files):
    """Stores documents that were read from files."""

    def put(
        self, collection_id: int, document: NewDocument, replace: DocumentPlace | None = None
    ) -> int:
        """
        Store a document; it replaces the document at ``replace`` if that still exists.

        Chunks whose text has not changed keep their ids and so their vectors. If another process
        has stored the same file meanwhile, that row is replaced.

        Returns:
            The document's id.
        """
        return self.put_all(collection_id, [(document, replace)])[0]

    def put_all(
        self,
        collection_id: int,
        documents: Iterable[tuple[NewDocument, DocumentPlace | None]],
    ) -> list[int]:
        """
        Store documents as `put` does, which takes twice as long for each; returns their ids.

        Full text has them when all are stored.
        """
        return tables.document_rows.put_all(self._sql, collection_id, documents)

    def set_states(self, states: Iterable[tuple[int, FileState]]) -> None:
        """Record the new states (document id, state) of files whose texts have not changed."""
        self._sql.many(
            "UPDATE documents SET modified_at = ?, bytes = ?, mtime_ns = ?, inode = ?, device = ?"
            " WHERE id = ?",
            [(clock.from_ns(state.mtime_ns), *state, document_id) for document_id, state in states],
        )

    def delete(self, collection_id: int, places: Iterable[tuple[str, StoredFile]]) -> None:
        """
        Delete documents by their paths, with their chunks, vectors, tags, links and full text.

        A document stays if another process has moved or replaced it since it was read as a
        `StoredFile`.
        """
        deleted = False
        same = "id = ? AND collection_id = ? AND path = ?"
        same += " AND bytes = ? AND mtime_ns = ? AND inode = ? AND device = ?"
        for path, file in places:
            values = [file.id, collection_id, path, *file.state]
            if self._sql.first(f"SELECT 1 FROM documents WHERE {same}", values):
                tables.document_rows.write_out(self._sql, [file.id])
                gone = self._sql.run(f"DELETE FROM documents WHERE {same}", values)
                deleted |= gone.rowcount > 0
        if deleted:
            shared.advance_vectors(self._sql)

    def replace_skips(
        self,
        collection_id: int,
        skips: Iterable[tuple[SkippedFile, FileState | None]],
        version_of: Callable[[str], int],
    ) -> None:
        """
        Replace the records of a collection's skipped files.

        Args:
            skips: Each with the state in which the file was parsed; None if it is tried each time.
            version_of: Path → the version of what parses it.
        """
        self._sql.run("DELETE FROM skipped_files WHERE collection_id = ?", [collection_id])
        self._sql.many(
            "INSERT INTO skipped_files (collection_id, path, reason, detail, bytes, mtime_ns,"
            " inode, device, parser_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
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
                    state and version_of(s.path),
                )
                for s, state in skips
            ],
        )

    def change_attachments(
        self, collection_id: int, added: Iterable[str], removed: Iterable[str]
    ) -> None:
        """Record the paths of files that are no documents, and forget others."""
        self._sql.many(
            "DELETE FROM attachments WHERE collection_id = ? AND path = ?",
            [(collection_id, path) for path in removed],
        )
        self._sql.many(
            "INSERT INTO attachments (collection_id, path, name_key) VALUES (?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            [(collection_id, path, name_key(path)) for path in added],
        )

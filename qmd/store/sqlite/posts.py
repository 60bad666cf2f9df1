"""Reads stored documents for the search of posts: many at once, and as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

from qmd.store.posts import StoredPost
from qmd.store.sql import Sql
from qmd.store.sqlite.filters import path_below, path_values
from qmd.store.sqlite.library import Connection


class SqlitePosts:
    """`qmd.store.posts.Posts` in SQLite."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def below(self, collection_id: int, folder: str) -> Iterator[StoredPost]:
        condition, values = "1", list[object]()
        if folder:
            condition, values = path_below("path"), path_values(folder)
        rows = self._connection.execute(
            "SELECT id, path, bytes, mtime_ns, inode, device, CAST(text AS BLOB) FROM documents"
            f" WHERE collection_id = ? AND {condition}",
            [collection_id, *values],
        )
        for document_id, path, size, mtime_ns, inode, device, text in rows:
            yield StoredPost(document_id, path, (size, mtime_ns, inode, device), text)

    def text(self, document_id: int) -> bytes:
        row = self._connection.execute(
            "SELECT CAST(text AS BLOB) FROM documents WHERE id = ?", [document_id]
        ).fetchone()
        return bytes(row[0])

"""Reads stored documents for the search of posts: many at once, and as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

from qmd.store.postgres.library import Connection, stream
from qmd.store.postgres.rows import one, path_below
from qmd.store.posts import StoredPost
from qmd.store.sql import Sql


class PostgresPosts:
    """`qmd.store.posts.Posts` in PostgreSQL."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._connection: Connection = sql.connection

    def below(self, collection_id: int, folder: str) -> Iterator[StoredPost]:
        condition, values = "true", list[object]()
        if folder:
            condition, values = path_below("path"), [folder, f"{folder}/", f"{folder}0"]
        rows = stream(
            self._connection,
            "SELECT id, path, bytes, mtime_ns, inode, device, convert_to(text, 'UTF8')"
            f" FROM documents WHERE collection_id = %s AND {condition}",
            [collection_id, *values],
            rows_at_once=100,
        )
        for document_id, path, size, mtime_ns, inode, device, text in rows:
            yield StoredPost(document_id, path, (size, mtime_ns, inode, device), text)

    def text(self, document_id: int) -> bytes:
        sql = "SELECT convert_to(text, 'UTF8') FROM documents WHERE id = %s"
        return bytes(one(self._connection, sql, [document_id])[0])

"""Counting the documents of tags."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.sql import Sql, SqlDialect

#: The index of paths has the ids of a collection's documents; their rows are not read.
_IN_COLLECTION = (
    " AND {unindexed}t.document_id IN (SELECT d.id FROM documents d"
    " JOIN collections c ON c.id = d.collection_id WHERE c.name = ?)"
)
#: SQLite allows 500 parts of a UNION.
_TAGS_AT_ONCE = 200


class Tags:
    """
    Counts documents by tag, in one collection or (None) in all.

    A tag with slashes, such as ``work/plans``, lies below ``work``.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def counts(self, prefix: str = "", *, collection: str | None = None) -> list[tuple[str, int]]:
        """
        Each tag with the number of its documents, sorted by tag.

        ASCII letters of either case are the same tag; other letters are not.

        Args:
            prefix: Only this tag and those below it; empty for all.
        """
        key = self._sql.dialect.key.format("t.tag")
        where, values = "true", list[object]()
        if prefix:
            where = tag_below(self._sql.dialect, prefix, values)
        rows = self._sql.rows(
            (str, int),
            f"SELECT min(t.tag), count(*) FROM tags t WHERE {where}{self._in(collection, values)}"
            f" GROUP BY {key} ORDER BY {key}",
            values,
        )
        return [(tag, count) for tag, count in rows]

    def count_below(self, tags: Sequence[str], *, collection: str | None = None) -> int:
        """How many documents have one of these tags, or a tag below one of them."""
        if len(tags) > _TAGS_AT_ONCE:
            raise ValueError(f"more than {_TAGS_AT_ONCE} spellings of one tag")
        values: list[object] = []
        parts = [
            "SELECT t.document_id FROM tags t"
            f" WHERE {tag_below(self._sql.dialect, tag, values)}{self._in(collection, values)}"
            for tag in tags
        ]
        sql = f"SELECT count(DISTINCT document_id) FROM ({' UNION ALL '.join(parts)}) AS tagged"
        return self._sql.number(sql, values)

    def _in(self, collection: str | None, values: list[object]) -> str:
        """A further condition, whose value is appended to ``values``."""
        if collection is None:
            return ""
        values.append(collection)
        return _IN_COLLECTION.format(unindexed=self._sql.dialect.unindexed)


def tag_below(dialect: SqlDialect, tag: str, values: list[object]) -> str:
    """
    The condition that a row ``t`` of ``tags`` has a tag or one below it, by one range of the index.

    Its values are appended to ``values``. ("0" follows "/".)
    """
    key = tag_key(tag)
    values += [key, f"{key}0", key, f"{key}/", f"{key}0"]
    column = dialect.key.format("t.tag")
    exact = dialect.unindexed + column
    return (
        f"({dialect.beginning.format(column)} AND ({exact} = ? OR ({exact} > ? AND {exact} < ?)))"
    )


def tag_key(tag: str) -> str:
    """A tag with its ASCII letters in lower case."""
    return "".join(char.lower() if char.isascii() else char for char in tag)


def tag_among(column: str, tag: str, values: list[object]) -> str:
    """
    The condition that a column of tags with blanks between has a tag, or one below it.

    Its values are appended to ``values``.
    """
    escaped = tag.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    like = f"' ' || {column} || ' ' LIKE ? ESCAPE '\\'"
    values += [f"% {escaped} %", f"% {escaped}/%"]
    return f"({like} OR {like})"

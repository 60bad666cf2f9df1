"""The tags of documents, and how many documents have each."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.store.sql import Sql
from qmd.store.sql.filters import Selection, tag_below

#: SQLite allows 500 parts of a UNION.
_TAGS_AT_ONCE = 200


class Tags:
    """
    Counts the selected documents by tag.

    A tag with slashes, such as ``work/plans``, lies below ``work``.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def counts(self, selection: Selection, prefix: str = "") -> list[tuple[str, int]]:
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
            f"SELECT min(t.tag), count(*) FROM tags t WHERE {where}{self._in(selection, values)}"
            f" GROUP BY {key} ORDER BY {key}",
            values,
        )
        return [(tag, count) for tag, count in rows]

    def count_below(self, selection: Selection, tags: Sequence[str]) -> int:
        """How many of them have one of these tags, or a tag below one of them."""
        if len(tags) > _TAGS_AT_ONCE:
            raise ValueError(f"more than {_TAGS_AT_ONCE} spellings of one tag")
        values: list[object] = []
        parts = [
            "SELECT t.document_id FROM tags t"
            f" WHERE {tag_below(self._sql.dialect, tag, values)}{self._in(selection, values)}"
            for tag in tags
        ]
        sql = f"SELECT count(DISTINCT document_id) FROM ({' UNION ALL '.join(parts)}) AS tagged"
        return self._sql.number(sql, values)

    def of_documents(self, document_ids: Sequence[int]) -> dict[int, list[str]]:
        """The tags of documents, as they are written, by document id; only of those with tags."""
        dialect = self._sql.dialect
        rows = self._sql.rows(
            (int, str),
            f"SELECT t.document_id, t.tag FROM tags t WHERE t.document_id {dialect.among}"
            " ORDER BY t.document_id, t.tag",
            [dialect.array(document_ids)],
        )
        tags: dict[int, list[str]] = {}
        for document_id, tag in rows:
            tags.setdefault(document_id, []).append(tag)
        return tags

    def _in(self, selection: Selection, values: list[object]) -> str:
        """A further condition, whose values are appended to ``values``."""
        return selection.among(f"{self._sql.dialect.unindexed}t.document_id", values)

"""The facts that documents state one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from qmd.store.sql import Sql
from qmd.store.sql.filters import Selection, tag_among
from qmd.values.memory import Observation

_COLUMNS = "line, category, text, tags, context, noted, expires"
#: The day of a fact that does not say when it was noted is that of its note.
_DAY = "coalesce(o.noted, substr(d.date, 1, 10), substr(d.modified_at, 1, 10))"


class ObservationFilter(NamedTuple):
    """
    Which facts are listed.

    Attributes:
        today: A day in ISO 8601; only facts that have not expired by then. None for all.
        category: In lower case; None for any.
        tags: Each of them, in lower case, or a tag below it.
        since: The first day when it was noted, in ISO 8601; None for any.
        documents: The ids of those that state it; None for any.
    """

    today: str | None
    category: str | None = None
    tags: Sequence[str] = ()
    since: str | None = None
    documents: Sequence[int] | None = None


class DatedObservation(NamedTuple):
    """
    A fact of a document; ``day`` is when it was noted or else the day of the document.

    ISO 8601.
    """

    document_id: int
    day: str
    observation: Observation


def put(sql: Sql, documents: Iterable[tuple[int, Sequence[Observation]]]) -> None:
    """Store the facts of documents that have none stored: pairs of id and facts."""
    sql.many(
        f"INSERT INTO observations (document_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (document_id, *each._replace(tags=" ".join(each.tags)))  # type: ignore[arg-type]
            for document_id, observations in documents
            for each in observations
        ],
    )


class Observations:
    """Lists the facts of selected documents."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def listed(
        self, selection: Selection, which: ObservationFilter, *, limit: int
    ) -> list[DatedObservation]:
        """The newest first; of one day those of the note that changed last, from below."""
        condition, values = self._condition(which)
        rows = self._sql.run(
            f"SELECT o.document_id, {_DAY}, o.{_COLUMNS.replace(', ', ', o.')}"
            f" {_joined(selection)} AND {condition}"
            f" ORDER BY {_DAY} DESC, d.modified_at DESC, c.name, d.path, o.line DESC LIMIT ?",
            [*selection.values, *values, limit],
        )
        return [
            DatedObservation(
                document_id, day, Observation(line, category, text, tuple(tags.split()), *rest)
            )
            for document_id, day, line, category, text, tags, *rest in rows
        ]

    def count(self, selection: Selection, which: ObservationFilter) -> int:
        """How many facts `listed` lists without a limit."""
        condition, values = self._condition(which)
        return self._sql.number(
            f"SELECT count(*) {_joined(selection)} AND {condition}", [*selection.values, *values]
        )

    def expired_lines(self, document_id: int, today: str) -> set[int]:
        """The lines of a document whose facts hold no more."""
        rows = self._sql.run(
            "SELECT line FROM observations WHERE document_id = ? AND expires < ?",
            [document_id, today],
        )
        return {line for (line,) in rows}

    def exist(self) -> bool:
        """Whether any document states a fact."""
        return self._sql.first("SELECT 1 FROM observations LIMIT 1", []) is not None

    def _condition(self, which: ObservationFilter) -> tuple[str, list[object]]:
        parts = ["true"]
        values: list[object] = []
        if which.today is not None:
            parts.append("(o.expires IS NULL OR o.expires >= ?)")
            values.append(which.today)
        if which.category is not None:
            parts.append("o.category = ?")
            values.append(which.category)
        if which.since is not None:
            parts.append(f"{_DAY} >= ?")
            values.append(which.since)
        if which.documents is not None:
            parts.append(f"o.document_id {self._sql.dialect.among}")
            values.append(self._sql.dialect.array(which.documents))
        parts += [tag_among("o.tags", tag, values) for tag in which.tags]
        return " AND ".join(parts), values


def _joined(selection: Selection) -> str:
    return (
        "FROM observations o JOIN documents d ON d.id = o.document_id"
        f" JOIN collections c ON c.id = d.collection_id WHERE {selection.sql}"
    )

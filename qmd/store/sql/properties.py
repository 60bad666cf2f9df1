"""What documents say of themselves: properties, tags, tasks, and facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from qmd.store.sql import Capability, Sql
from qmd.store.sql.filters import Selection, first_lines, tag_among, tag_below
from qmd.values.documents import Observation, Task, TaskStatus
from qmd.values.properties import (
    LINE_COLUMNS,
    PropertyCondition,
    PropertyRow,
    PropertySummary,
    PropertyValue,
)


def put_properties(sql: Sql, documents: Sequence[tuple[int, Sequence[PropertyRow]]]) -> None:
    """Store the values of documents that have none stored: pairs of id and rows."""
    rows = [
        (document_id, seq, *row)
        for document_id, of_document in documents
        for seq, row in enumerate(of_document)
    ]
    if not sql.dialect.text_index:
        sql.insert(
            "properties",
            "document_id, seq, key, kind, text, value, number, date",
            [
                (document_id, seq, key, kind, text, None if value == text else value, number, date)
                for document_id, seq, key, kind, text, value, number, date in rows
            ],
        )
    elif rows:
        # As the view ``properties`` reads them: each key once, and of text and value one.
        sql.many(
            "INSERT INTO z_property_keys (key) VALUES (?) ON CONFLICT DO NOTHING",
            [(key,) for key in sorted({key for _, _, key, *_ in rows})],
        )
        ids: dict[str, int] = dict(sql.run("SELECT key, id FROM z_property_keys").fetchall())
        sql.many(
            "INSERT INTO z_properties (document_id, seq, key_id, kind, text, value, number, date)"
            " VALUES (?, ?, ?, nullif(?, 'text'), ?, ?, ?, ?)",
            [
                (document_id, seq, ids[key], kind, _unless_lower(text, value), value, number, date)
                for document_id, seq, key, kind, text, value, number, date in rows
            ],
        )


def _unless_lower(text: str, value: str) -> str | None:
    """The text of a value; None where it is the value as SQLite's lower() has it."""
    return None if value.isascii() and text == value.lower() else text


class Properties(Capability):
    """Reads properties. Keys are in the form of `qmd.values.properties.fold_key`."""

    def existing_keys(self, keys: Collection[str]) -> frozenset[str]:
        """Those of ``keys`` that a document, or a task or fact of one, has."""
        stored = self._sql.column(
            f"SELECT item.value FROM {self._sql.dialect.each}"
            " WHERE EXISTS (SELECT 1 FROM properties p WHERE p.key = item.value)",
            [self._sql.array(keys)],
        )
        existing = frozenset[str](stored)
        about_lines = LINE_COLUMNS.keys() & set(keys) - existing
        about_facts = about_lines & {"fact"}
        if about_facts and Observations(self._sql).exist():
            existing |= about_facts
        about_tasks = about_lines - about_facts
        return existing | about_tasks if about_tasks and Tasks(self._sql).exist() else existing

    def first_lines(
        self, groups: Sequence[Sequence[PropertyCondition]], document_ids: Sequence[int]
    ) -> dict[int, int]:
        """As `filters.first_lines`."""
        return first_lines(self._sql, groups, document_ids)

    def summaries(self, selection: Selection) -> list[PropertySummary]:
        """The keys of the selected documents, those of most documents first, then by name."""
        values: list[object] = []
        rows = f"FROM properties WHERE true{selection.among('document_id', values)}"
        documents: dict[str, int] = dict(
            self._sql.run(
                f"SELECT key, count(DISTINCT document_id) {rows} GROUP BY key", values
            ).fetchall()
        )
        kinds: dict[str, dict[str, int]] = {}
        for key, kind, count in self._sql.run(
            f"SELECT key, kind, count(*) {rows} GROUP BY key, kind ORDER BY 1, 3 DESC, 2", values
        ):
            kinds.setdefault(key, {})[kind] = count
        ordered = sorted(documents.items(), key=lambda entry: (-entry[1], entry[0]))
        return [PropertySummary(key, count, kinds[key]) for key, count in ordered]

    def values(
        self, selection: Selection, key: str, *, limit: int | None = None
    ) -> list[PropertyValue]:
        """
        The values of a key in the selected documents, those of most documents first, then by name.

        Args:
            limit: Return at most this many; None for all.
        """
        values: list[object] = [key]
        among = selection.among("document_id", values)
        rows = self._sql.run(
            "SELECT min(coalesce(value, text)), min(kind), count(DISTINCT document_id) AS documents"
            f" FROM properties WHERE key = ?{among}"
            " GROUP BY text ORDER BY documents DESC, text LIMIT ?",
            [*values, self._sql.dialect.no_limit if limit is None else limit],
        )
        return [PropertyValue(*row) for row in rows]

    def written(self, key: str, document_ids: Sequence[int]) -> dict[int, list[str]]:
        """
        Document id → its values for a key, in their order; no entry without one.

        They are as written, but equal numbers are equal texts.
        """
        written: dict[int, list[str]] = {}
        for document_id, value in self._sql.run(
            "SELECT document_id, CASE kind WHEN 'number' THEN text ELSE coalesce(value, text) END"
            " FROM properties WHERE key = ?"
            f" AND document_id {self._sql.among} ORDER BY document_id, seq",
            [key, self._sql.array(document_ids)],
        ):
            written.setdefault(document_id, []).append(value)
        return written


#: SQLite allows 500 parts of a UNION.
_TAGS_AT_ONCE = 200


class Tags(Capability):
    """
    Counts the selected documents by tag.

    A tag with slashes, such as ``work/plans``, lies below ``work``.
    """

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
        return self._sql.rows(
            (str, int),
            f"SELECT min(t.tag), count(*) FROM tags t WHERE {where}{self._in(selection, values)}"
            f" GROUP BY {key} ORDER BY {key}",
            values,
        )

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
        rows = self._sql.rows(
            (int, str),
            f"SELECT t.document_id, t.tag FROM tags t WHERE t.document_id {self._sql.among}"
            " ORDER BY t.document_id, t.tag",
            [self._sql.array(document_ids)],
        )
        tags: dict[int, list[str]] = {}
        for document_id, tag in rows:
            tags.setdefault(document_id, []).append(tag)
        return tags

    def _in(self, selection: Selection, values: list[object]) -> str:
        """A further condition, whose values are appended to ``values``."""
        return selection.among(f"{self._sql.dialect.unindexed}t.document_id", values)


# --- tasks and facts ----------------------------------------------------------------


def put_lines(
    sql: Sql,
    table: Literal["tasks", "observations"],
    documents: Iterable[tuple[int, Sequence[Task | Observation]]],
) -> None:
    """Store the tasks or the facts of documents that have none stored: pairs of id and these."""
    sql.insert(
        table,
        f"document_id, {_TASK_COLUMNS if table == 'tasks' else _FACT_COLUMNS}",
        [
            (document_id, *line._replace(tags=" ".join(line.tags)))  # type: ignore[arg-type]
            for document_id, lines in documents
            for line in lines
        ],
    )


def _in(selection: Selection, table: str, alias: str) -> str:
    return (
        f"FROM {table} {alias} JOIN documents d ON d.id = {alias}.document_id"
        f" JOIN collections c ON c.id = d.collection_id WHERE {selection.sql}"
    )


_TASK_COLUMNS = "line, status, text, tags, priority, due, scheduled, start, finished"
#: Without a priority a task comes after those of medium priority, as in Obsidian Tasks.
_ORDER = "t.due IS NULL, t.due, coalesce(t.priority, 3.5), c.name, d.path, t.line"


class TaskFilter(NamedTuple):
    """
    Which tasks are listed.

    Attributes:
        statuses: One of these.
        tags: Each of them, in lower case, or a tag below it.
        first, last: The days, in ISO 8601, between which it is due; None for no limit.
        has_due: Whether it says when it is due; None for any.
    """

    statuses: Sequence[TaskStatus]
    tags: Sequence[str] = ()
    first: str | None = None
    last: str | None = None
    has_due: bool | None = None


class Tasks(Capability):
    """Lists the tasks of selected documents."""

    def listed(
        self, selection: Selection, which: TaskFilter, *, limit: int
    ) -> list[tuple[int, Task]]:
        """Ids of documents and tasks: by the day when they are due, priority, file and line."""
        condition, values = _condition(which)
        rows = self._sql.run(
            f"SELECT t.document_id, t.{_TASK_COLUMNS.replace(', ', ', t.')}"
            f" {_in(selection, 'tasks', 't')} AND {condition} ORDER BY {_ORDER} LIMIT ?",
            [*selection.values, *values, limit],
        )
        return [
            (document_id, Task(line, status, text, tuple(tags.split()), *days))
            for document_id, line, status, text, tags, *days in rows
        ]

    def count(self, selection: Selection, which: TaskFilter) -> int:
        """How many tasks `listed` lists without a limit."""
        condition, values = _condition(which)
        return self._sql.number(
            f"SELECT count(*) {_in(selection, 'tasks', 't')} AND {condition}",
            [*selection.values, *values],
        )

    def exist(self) -> bool:
        """Whether any document has a task."""
        return self._sql.exists("SELECT 1 FROM tasks LIMIT 1")


def _condition(which: TaskFilter) -> tuple[str, list[object]]:
    parts = [f"t.status IN ({', '.join('?' * len(which.statuses))})"]
    values: list[object] = [*which.statuses]
    for tag in which.tags:
        parts.append(tag_among("t.tags", tag, values))
    for day, sign in ((which.first, ">="), (which.last, "<=")):
        if day is not None:
            parts.append(f"t.due {sign} ?")
            values.append(day)
    if which.has_due is not None:
        parts.append(f"t.due IS {'NOT ' if which.has_due else ''}NULL")
    return " AND ".join(parts), values


_FACT_COLUMNS = "line, category, text, tags, context, noted, expires"
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


class Observations(Capability):
    """Lists the facts of selected documents."""

    def listed(
        self, selection: Selection, which: ObservationFilter, *, limit: int
    ) -> list[DatedObservation]:
        """The newest first; of one day those of the note that changed last, from below."""
        condition, values = self._condition(which)
        rows = self._sql.run(
            f"SELECT o.document_id, {_DAY}, o.{_FACT_COLUMNS.replace(', ', ', o.')}"
            f" {_in(selection, 'observations', 'o')} AND {condition}"
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
            f"SELECT count(*) {_in(selection, 'observations', 'o')} AND {condition}",
            [*selection.values, *values],
        )

    def expired_lines(self, document_id: int, today: str) -> set[int]:
        """The lines of a document whose facts hold no more."""
        sql = "SELECT line FROM observations WHERE document_id = ? AND expires < ?"
        return {*self._sql.column(sql, [document_id, today])}

    def exist(self) -> bool:
        """Whether any document states a fact."""
        return self._sql.exists("SELECT 1 FROM observations LIMIT 1")

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
            parts.append(f"o.document_id {self._sql.among}")
            values.append(self._sql.array(which.documents))
        parts += [tag_among("o.tags", tag, values) for tag in which.tags]
        return " AND ".join(parts), values

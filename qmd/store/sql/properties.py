"""The properties of documents: which keys and values there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from qmd.store.sql import Sql
from qmd.store.sql.filters import Selection, first_lines
from qmd.store.sql.observations import Observations
from qmd.store.sql.tasks import Tasks
from qmd.values.conditions import LINE_COLUMNS, PropertyCondition
from qmd.values.properties import PropertyRow, PropertySummary, PropertyValue, property_rows


def put(sql: Sql, documents: Sequence[tuple[int, Mapping[str, object]]]) -> None:
    """Store the values of documents that have none stored: pairs of id and properties."""
    rows = [
        (document_id, seq, row)
        for document_id, properties in documents
        if properties
        for seq, row in enumerate(property_rows(properties))
    ]
    if not sql.dialect.text_index:
        sql.many(
            "INSERT INTO properties (document_id, seq, key, kind, text, value, number, date)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (*place, *row[:3], None if row.value == row.text else row.value, *row[4:])
                for *place, row in rows
            ],
        )
    elif rows:
        # As the view ``properties`` reads them: each key once, and of text and value one.
        sql.many(
            "INSERT INTO z_property_keys (key) VALUES (?) ON CONFLICT DO NOTHING",
            [(key,) for key in sorted({row.key for _, _, row in rows})],
        )
        ids: dict[str, int] = dict(sql.run("SELECT key, id FROM z_property_keys").fetchall())
        sql.many(
            "INSERT INTO z_properties (document_id, seq, key_id, kind, text, value, number, date)"
            " VALUES (?, ?, ?, nullif(?, 'text'), ?, ?, ?, ?)",
            [
                (document_id, seq, ids[row[0]], row[1], _unless_lower(row), *row[3:])
                for document_id, seq, row in rows
            ],
        )


def _unless_lower(row: PropertyRow) -> str | None:
    """The text of a value; None where it is the value as SQLite's lower() has it."""
    return None if row.value.isascii() and row.text == row.value.lower() else row.text


class Properties:
    """Reads properties. Keys are in the form of `qmd.values.properties.fold_key`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def existing_keys(self, keys: Collection[str]) -> frozenset[str]:
        """Those of ``keys`` that a document, or a task or fact of one, has."""
        rows = self._sql.run(
            f"SELECT item.value FROM {self._sql.dialect.each}"
            " WHERE EXISTS (SELECT 1 FROM properties p WHERE p.key = item.value)",
            [self._sql.dialect.array(keys)],
        )
        existing = frozenset(key for (key,) in rows)
        about_lines = LINE_COLUMNS.keys() & set(keys) - existing
        about_facts = about_lines & {"fact"}
        if about_facts and Observations(self._sql).exist():
            existing |= about_facts
        about_tasks = about_lines - about_facts
        return existing | about_tasks if about_tasks and Tasks(self._sql).exist() else existing

    def first_lines(
        self, groups: Sequence[Sequence[str | PropertyCondition]], document_ids: Sequence[int]
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
        """Document id → its values for a key as written, in their order; no entry without one."""
        written: dict[int, list[str]] = {}
        for document_id, value in self._sql.run(
            "SELECT document_id, coalesce(value, text) FROM properties WHERE key = ?"
            f" AND document_id {self._sql.dialect.among} ORDER BY document_id, seq",
            [key, self._sql.dialect.array(document_ids)],
        ):
            written.setdefault(document_id, []).append(value)
        return written

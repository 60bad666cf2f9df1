"""Writes the rows of properties, reads which there are, and makes SQL of conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import many
from qmd.values.conditions import PropertyCondition, ValueRange
from qmd.values.properties import PropertySummary, PropertyValue, property_rows


def put(connection: Connection, documents: Sequence[tuple[int, Mapping[str, object]]]) -> None:
    """Store the values of documents that have none stored: pairs of id and properties."""
    many(
        connection,
        "INSERT INTO properties (document_id, seq, key, kind, text, value, number, date)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        [
            (document_id, seq, key, kind, text, None if value == text else value, number, date)
            for document_id, properties in documents
            if properties
            for seq, (key, kind, text, value, number, date) in enumerate(property_rows(properties))
        ],
    )


def having(condition: PropertyCondition, values: list[object]) -> str:
    """
    The ids of the documents that meet a condition, as a SELECT.

    Its values are appended to ``values``. Each range is one walk through an index, which knows the
    ids too.
    """
    return " UNION ALL ".join(_selects(condition, values))


def _selects(condition: PropertyCondition, values: list[object]) -> Iterator[str]:
    for value_range in condition.ranges or (None,):
        values.append(condition.key)
        limits = "" if value_range is None else _limits(value_range, values)
        yield f"SELECT document_id FROM properties WHERE key = %s{limits}"


def _limits(value_range: ValueRange, values: list[object]) -> str:
    column, low, high, open_low, open_high = value_range
    sql = ""
    for limit, sign in ((low, ">" if open_low else ">="), (high, "<" if open_high else "<=")):
        if limit is not None:
            sql += f" AND {column} {sign} %s"
            values.append(limit)
    return sql


class PostgresProperties:
    """`qmd.store.properties.Properties` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def existing_keys(self, keys: Collection[str]) -> frozenset[str]:
        rows = self._connection.execute(
            "SELECT k.key FROM unnest(%s::text[]) k (key)"
            " WHERE EXISTS (SELECT 1 FROM properties p WHERE p.key = k.key)",
            [list(keys)],
        )
        return frozenset(key for (key,) in rows)

    def summaries(self) -> list[PropertySummary]:
        documents: dict[str, int] = dict(
            self._connection.execute(
                "SELECT key, count(DISTINCT document_id) FROM properties GROUP BY key"
            ).fetchall()
        )
        kinds: dict[str, dict[str, int]] = {}
        for key, kind, count in self._connection.execute(
            "SELECT key, kind, count(*) FROM properties GROUP BY key, kind ORDER BY 1, 3 DESC, 2"
        ):
            kinds.setdefault(key, {})[kind] = count
        ordered = sorted(documents.items(), key=lambda entry: (-entry[1], entry[0]))
        return [PropertySummary(key, count, kinds[key]) for key, count in ordered]

    def values(self, key: str, *, limit: int | None = None) -> list[PropertyValue]:
        rows = self._connection.execute(
            "SELECT min(coalesce(value, text)), min(kind), count(DISTINCT document_id) AS documents"
            " FROM properties WHERE key = %s GROUP BY text ORDER BY documents DESC, text LIMIT %s",
            [key, limit],
        )
        return [PropertyValue(*row) for row in rows]

    def written(self, key: str, document_ids: Sequence[int]) -> dict[int, list[str]]:
        written: dict[int, list[str]] = {}
        for document_id, value in self._connection.execute(
            "SELECT document_id, coalesce(value, text) FROM properties WHERE key = %s"
            " AND document_id = ANY(%s) ORDER BY document_id, seq",
            [key, list(document_ids)],
        ):
            written.setdefault(document_id, []).append(value)
        return written

"""Translates filters into SQL conditions on ``documents d``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from qmd.store.postgres.rows import path_below
from qmd.store.selection import Selection, outside_inner, overlaps
from qmd.store.sql import Sql

if TYPE_CHECKING:
    from qmd.values import Filters
    from qmd.values.conditions import PropertyCondition


class PostgresSelection(NamedTuple):
    """A condition with its values; ``collection_ids`` if it asks for nothing but collections."""

    sql: str
    values: tuple[object, ...]
    collection_ids: tuple[int, ...] | None

    @property
    def is_all(self) -> bool:
        return self.sql == "true"


ALL_DOCUMENTS = PostgresSelection("true", (), ())


def select(
    sql: Sql,
    filters: Filters,
    *,
    either: Sequence[Sequence[str | PropertyCondition]] = (),
    none_of: Sequence[str | PropertyCondition] = (),
    one_per_file: bool = True,
) -> PostgresSelection:
    """As `qmd.store.reader.Reader.select`."""
    parts: list[str] = []
    values: list[object] = []
    ids = _ids(sql, [_storable(name) for name in filters.collections])
    if ids:
        parts.append("d.collection_id = ANY(%s)")
        values.append(ids)
    if filters.path and filters.path.strip("/"):
        parts.append(_below(filters.path, values))
    properties, no_properties = _property_filters(filters)
    each_alone: list[list[str | PropertyCondition]] = [[tag] for tag in filters.tags]
    each_alone += [[condition] for condition in properties]
    parts += [_meets(group, values) for group in (*each_alone, *either)]
    if none_of or no_properties:
        parts.append(f"NOT {_meets((*none_of, *no_properties), values)}")
    parts += _dated(filters, values)
    parts += _outside_inner(sql, ids, filters.path, values, one_per_file=one_per_file)
    only_collections = len(parts) == (1 if ids else 0)
    return PostgresSelection(
        " AND ".join(parts) or "true", tuple(values), tuple(ids) if only_collections else None
    )


def _outside_inner(
    sql: Sql,
    ids: Sequence[int],
    path: str | None,
    values: list[object],
    *,
    one_per_file: bool,
) -> Iterator[str]:
    """As in `qmd.store.sqlite.filters`."""
    if not one_per_file:
        return
    folders = sql.connection.execute("SELECT id, path FROM collections WHERE owner = ''").fetchall()
    for overlap in overlaps(folder for folder in folders if not ids or folder[0] in ids):
        below: list[object] = []
        also = _below(path, below).replace("d.", "i.") if path and path.strip("/") else ""
        yield outside_inner(overlap, values, mark="%s", also=also)
        values += below


def _below(path: str, values: list[object]) -> str:
    """
    The condition for a path in any collection, or one that begins with a collection's name; its
    values are appended to ``values``.
    """
    prefix = _storable(path).removeprefix("qmd://").strip("/")
    collection, _, rest = prefix.partition("/")
    values += [prefix, prefix + "/", prefix + "0", collection]
    named = "d.collection_id = (SELECT id FROM collections WHERE name = %s)"
    if rest:
        named += f" AND {path_below('d.path')}"
        values += [rest, rest + "/", rest + "0"]
    return f"({path_below('d.path')} OR ({named}))"


def _dated(filters: Filters, values: list[object]) -> Iterator[str]:
    """The conditions for the dates; their values are appended to ``values``."""
    for date, sign in ((filters.after, ">="), (filters.before, "<")):
        if date is None:
            continue
        if len(date) == len("2025-03-01"):
            # A day is the day that is written in the note, or the one on the wall when it was
            # saved: here, not where the server is.
            values += [date, _midnight(date)]
            yield (
                f"CASE WHEN d.date IS NOT NULL THEN left(d.date, 10) {sign} %s"
                f" ELSE d.moment {sign} %s END"
            )
        else:  # A time of day is a moment, whatever offset from UTC it is written in.
            values.append(date)
            yield f"d.moment {sign} qmd_moment(%s)"


def _midnight(day: str) -> datetime:
    """When a day (``2025-03-01``) begins on this machine."""
    start = datetime.fromisoformat(day)
    try:
        return start.astimezone()
    except (OverflowError, OSError, ValueError):  # the first and last days that Python knows
        return start.replace(tzinfo=timezone.utc)


def _property_filters(
    filters: Filters,
) -> tuple[list[PropertyCondition], list[PropertyCondition]]:
    """The conditions that documents must meet, and those that they must not meet."""
    if not filters.properties:
        return [], []
    from qmd.values.conditions import parse_filter

    parsed = list(map(parse_filter, filters.properties))
    return [each for each, negated in parsed if not negated], [
        each for each, negated in parsed if negated
    ]


def _meets(group: Sequence[str | PropertyCondition], values: list[object]) -> str:
    """The condition for one of these tags and conditions; its values are appended to ``values``."""
    tags = [each for each in group if isinstance(each, str)]
    alternatives = [_tagged(tags, values)] if tags else []
    conditions = [each for each in group if not isinstance(each, str)]
    if conditions:
        from qmd.store.sql.properties import having

        selects = [having(each, values).replace("?", "%s") for each in conditions]
        alternatives.append(f"d.id IN ({' UNION ALL '.join(selects)})")
    return f"({' OR '.join(alternatives)})"


def _tagged(tags: Sequence[str], values: list[object]) -> str:
    """The condition for one of these tags; its values are appended to ``values``."""
    from qmd.store.postgres.tags import tag_key

    for tag in tags:
        key = tag_key(_storable(tag).lstrip("#"))
        values += [key, key + "/", key + "0"]
    one = " OR ".join([path_below("t.tag_key")] * len(tags))
    return f"EXISTS (SELECT 1 FROM tags t WHERE t.document_id = d.id AND ({one}))"


def _ids(sql: Sql, names: Sequence[str]) -> list[int]:
    if not names:
        return []
    from qmd.store.postgres.collections import PostgresCollections

    return PostgresCollections(sql).ids(names)


def _storable(text: str) -> str:
    """Lone surrogates, which no stored text holds and PostgreSQL refuses, as ``?``."""
    return text.encode("utf-8", "replace").decode()


def require_sql(selection: Selection) -> PostgresSelection:
    """The SQL of a selection. Raises TypeError: Another kind of store made it."""
    if not isinstance(selection, PostgresSelection):
        raise TypeError(f"not a selection of this store: {selection!r}")
    return selection

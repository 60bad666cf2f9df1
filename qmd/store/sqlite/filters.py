"""Translates filters into SQL conditions on ``documents d``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qmd.store.selection import Selection
from qmd.store.sqlite.library import Connection
from qmd.values import Filters

#: A day is the day that is written in the note, or the one on the wall when it was saved.
_DAY = "coalesce(substr(d.date, 1, 10), date(d.modified_at, 'localtime'))"
#: A time of day is a moment, whatever offset from UTC it is written in.
_MOMENT = "julianday(coalesce(d.date, d.modified_at))"


def path_below(column: str) -> str:
    """SQL for "this path or below it"; bind path, path + "/", path + "0" ("0" follows "/")."""
    return f"({column} = ? OR ({column} > ? AND {column} < ?))"


class SqlSelection(NamedTuple):
    """A condition with its values; ``collection_ids`` if it asks for nothing but collections."""

    sql: str
    values: tuple[object, ...]
    collection_ids: tuple[int, ...] | None

    @property
    def is_all(self) -> bool:
        return self.sql == "1"


ALL_DOCUMENTS = SqlSelection("1", (), ())


def select(
    connection: Connection,
    filters: Filters,
    *,
    either_tags: Sequence[Sequence[str]] = (),
    no_tags: Sequence[str] = (),
) -> SqlSelection:
    """
    The condition that a document must satisfy.

    Args:
        either_tags: Of each of these, one tag at least.
        no_tags: None of these. (A tag stands for those below it, too.)

    Raises:
        CollectionNotFoundError: With suggestions.
    """
    parts: list[str] = []
    values: list[object] = []
    ids = _ids(connection, [_storable(name) for name in filters.collections])
    if ids:
        parts.append(f"d.collection_id IN ({', '.join('?' * len(ids))})")
        values += ids
    if filters.path and filters.path.strip("/"):
        parts.append(_below(filters.path, values))
    for tags in (*((tag,) for tag in filters.tags), *either_tags):
        parts.append(_tagged(tags, values))
    if no_tags:
        parts.append(f"NOT {_tagged(no_tags, values)}")
    for date, sign in ((filters.after, ">="), (filters.before, "<")):
        if date is not None:
            is_day = len(date) == len("2025-03-01")
            parts.append(f"{_DAY} {sign} ?" if is_day else f"{_MOMENT} {sign} julianday(?)")
            values.append(date)
    only_collections = len(parts) == (1 if ids else 0)
    return SqlSelection(
        " AND ".join(parts) or "1",
        tuple(values),
        tuple(ids) if only_collections else None,
    )


def _below(path: str, values: list[object]) -> str:
    """
    The condition for a path in any collection, or one that begins with a collection's name; its
    values are appended to ``values``.
    """
    prefix = _storable(path).removeprefix("qmd://").strip("/")
    collection, _, rest = prefix.partition("/")
    values += [prefix, prefix + "/", prefix + "0", collection]
    named = "d.collection_id = (SELECT id FROM collections WHERE name = ?)"
    if rest:
        named += f" AND {path_below('d.path')}"
        values += [rest, rest + "/", rest + "0"]
    return f"({path_below('d.path')} OR ({named}))"


def _tagged(tags: Sequence[str], values: list[object]) -> str:
    """The condition for one of these tags; its values are appended to ``values``."""
    for tag in tags:
        name = _storable(tag).lstrip("#")
        values += [name, name + "/", name + "0"]
    one = " OR ".join(["t.tag = ? OR (t.tag > ? AND t.tag < ?)"] * len(tags))
    return f"EXISTS (SELECT 1 FROM tags t WHERE t.document_id = d.id AND ({one}))"


def _ids(connection: Connection, names: Sequence[str]) -> list[int]:
    if not names:
        return []
    from qmd.store.sqlite.collections import SqliteCollections

    return SqliteCollections(connection).ids(names)


def _storable(text: str) -> str:
    """Lone surrogates, which no stored text holds and SQLite refuses, as ``?``."""
    return text.encode("utf-8", "replace").decode()


def require_sql(selection: Selection) -> SqlSelection:
    """The SQL of a selection. Raises TypeError: Another kind of store made it."""
    if not isinstance(selection, SqlSelection):
        raise TypeError(f"not a selection of this store: {selection!r}")
    return selection

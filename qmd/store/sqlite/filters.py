"""Translates filters into SQL conditions on ``documents d``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmd.store.selection import Selection, outside_inner, overlaps
from qmd.store.sql import Sql
from qmd.values import Filters

if TYPE_CHECKING:
    from qmd.values.conditions import PropertyCondition

#: A day is the day that is written in the note, or the one on the wall when it was saved. The
#: beginning of the day is computed once, the day on the wall would be for each row.
_DAY = (
    "CASE WHEN d.date IS NULL THEN d.modified_at {sign} strftime('%Y-%m-%dT%H:%M:%S', ?, 'utc')"
    " ELSE substr(d.date, 1, 10) {sign} ? END"
)
#: A time of day is a moment, whatever offset from UTC it is written in.
_MOMENT = "julianday(coalesce(d.date, d.modified_at))"


def path_below(column: str) -> str:
    """
    SQL for "this path or below it", for which an index is read in one range.

    It takes `path_values`. ("0" follows "/"; between both are the names that only begin like it.)
    """
    return f"({column} >= ? AND {column} < ? AND ({column} = ? OR {column} > ?))"


def path_values(path: str) -> list[object]:
    """The values of `path_below`."""
    return [path, f"{path}0", path, f"{path}/"]


class SqlSelection(NamedTuple):
    """A condition with its values; ``collection_ids`` if it asks for nothing but collections."""

    sql: str
    values: tuple[object, ...]
    collection_ids: tuple[int, ...] | None
    #: A SELECT of the ids that does not read ``documents``, if there is one; it takes ``values``.
    short_ids: str = ""
    #: The same by the index of tags or of paths: faster than testing all documents, not than
    #: testing a few.
    indexed_ids: str = ""

    @property
    def ids(self) -> str:
        """A SELECT of the ids of these documents, some perhaps twice; it takes ``values``."""
        every = f"SELECT d.id FROM documents d WHERE {self.sql}"
        return self.short_ids or self.indexed_ids or every

    @property
    def is_all(self) -> bool:
        return self.sql == "1"


#: The beginning of the condition that `_meets` makes of properties without tags.
_ONLY_PROPERTIES = "(d.id IN ("
#: The beginning of the condition that it makes of tags, and what follows if properties do.
_TAGS = "(EXISTS (SELECT 1 FROM tags t WHERE t.document_id = d.id AND ("
_OR_PROPERTIES = " OR d.id IN"

ALL_DOCUMENTS = SqlSelection("1", (), ())


def select(
    sql: Sql,
    filters: Filters,
    *,
    either: Sequence[Sequence[str | PropertyCondition]] = (),
    none_of: Sequence[str | PropertyCondition] = (),
    one_per_file: bool = True,
) -> SqlSelection:
    """
    The condition that a document must satisfy.

    Args:
        either: Of each of these groups, one tag or condition at least.
        none_of: None of these. (A tag stands for those below it, too.)
        one_per_file: As for `qmd.store.reader.Reader.select`.

    Raises:
        CollectionNotFoundError: With suggestions.
        InputError: A filter by a property is no condition.
    """
    parts: list[str] = []
    values: list[object] = []
    path_ids = ""
    ids = _ids(sql, [_storable(name) for name in filters.collections])
    if ids:
        parts.append(f"d.collection_id IN ({', '.join('?' * len(ids))})")
        values += ids
    if filters.path and filters.path.strip("/"):
        condition, path_ids = _below(filters.path, values)
        parts.append(condition)
    properties, no_properties = _property_filters(filters)
    each_alone: list[list[str | PropertyCondition]] = [[tag] for tag in filters.tags]
    each_alone += [[condition] for condition in properties]
    parts += [_meets(group, values) for group in (*each_alone, *either)]
    if none_of or no_properties:
        parts.append(f"NOT {_meets((*none_of, *no_properties), values)}")
    parts += _dated(filters, values)
    parts += _outside_inner(sql, ids, filters.path, values, one_per_file=one_per_file)
    only_collections = len(parts) == (1 if ids else 0)
    only_properties = len(parts) == 1 and parts[0].startswith(_ONLY_PROPERTIES)
    return SqlSelection(
        " AND ".join(parts) or "1",
        tuple(values),
        tuple(ids) if only_collections else None,
        parts[0].removeprefix(_ONLY_PROPERTIES)[:-2] if only_properties else "",
        _indexed_ids(parts, path_ids),
    )


def _indexed_ids(parts: Sequence[str], path_ids: str) -> str:
    """As `SqlSelection.indexed_ids`, for these conditions; ``path_ids``: as `_below` returns."""
    if len(parts) != 1:
        return ""
    if path_ids or not parts[0].startswith(_TAGS) or _OR_PROPERTIES in parts[0]:
        return path_ids
    return f"SELECT t.document_id FROM tags t WHERE ({parts[0].removeprefix(_TAGS)[:-2]}"


def _below(path: str, values: list[object]) -> tuple[str, str]:
    """
    The condition for a path in any collection, or one that begins with a collection's name.

    Returns:
        The condition, and a SELECT of the ids by the index of paths. Either takes the values that
        are appended to ``values``.
    """
    prefix = _storable(path).removeprefix("qmd://").strip("/")
    collection, _, rest = prefix.partition("/")
    values += [*path_values(prefix), collection]
    named = "d.collection_id = (SELECT id FROM collections WHERE name = ?)"
    if rest:
        named += f" AND {path_below('d.path')}"
        values += path_values(rest)
    in_any = path_below("d.path")
    return f"({in_any} OR ({named}))", (
        "SELECT d.id FROM collections c CROSS JOIN documents d"
        f" WHERE d.collection_id = c.id AND {in_any}"
        f" UNION ALL SELECT d.id FROM documents d WHERE {named}"
    )


def _outside_inner(
    sql: Sql,
    ids: Sequence[int],
    path: str | None,
    values: list[object],
    *,
    one_per_file: bool,
) -> Iterator[str]:
    """
    The conditions that leave out documents of files that a collection further inside selects.

    Their values are appended to ``values``; ``ids``: the selected collections, empty for all.
    """
    if not one_per_file:
        return
    folders = sql.connection.execute("SELECT id, path FROM collections WHERE owner = ''").fetchall()
    for overlap in overlaps(folder for folder in folders if not ids or folder[0] in ids):
        below: list[object] = []
        also = _below(path, below)[0].replace("d.", "i.") if path and path.strip("/") else ""
        yield outside_inner(overlap, values, mark="?", also=also)
        values += below


def _dated(filters: Filters, values: list[object]) -> Iterator[str]:
    """The conditions for the dates; their values are appended to ``values``."""
    for date, sign in ((filters.after, ">="), (filters.before, "<")):
        if date is not None:
            is_day = len(date) == len("2025-03-01")
            if is_day:
                values += [date, date]
                yield _DAY.format(sign=sign)
            else:
                values.append(date)
                yield f"{_MOMENT} {sign} julianday(?)"


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

        selects = [having(each, values) for each in conditions]
        alternatives.append(f"d.id IN ({' UNION ALL '.join(selects)})")
    return f"({' OR '.join(alternatives)})"


def _tagged(tags: Sequence[str], values: list[object]) -> str:
    """The condition for one of these tags; its values are appended to ``values``."""
    for tag in tags:
        name = _storable(tag).lstrip("#")
        values += [name, name + "/", name + "0"]
    one = " OR ".join(["t.tag = ? OR (t.tag > ? AND t.tag < ?)"] * len(tags))
    return f"EXISTS (SELECT 1 FROM tags t WHERE t.document_id = d.id AND ({one}))"


def _ids(sql: Sql, names: Sequence[str]) -> list[int]:
    if not names:
        return []
    from qmd.store.sqlite.collections import SqliteCollections

    return SqliteCollections(sql).ids(names)


def _storable(text: str) -> str:
    """Lone surrogates, which no stored text holds and SQLite refuses, as ``?``."""
    return text.encode("utf-8", "replace").decode()


def require_sql(selection: Selection) -> SqlSelection:
    """The SQL of a selection. Raises TypeError: Another kind of store made it."""
    if not isinstance(selection, SqlSelection):
        raise TypeError(f"not a selection of this store: {selection!r}")
    return selection

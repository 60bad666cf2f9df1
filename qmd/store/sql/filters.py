"""Translates filters into SQL conditions on ``documents d``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import PurePath
from typing import TYPE_CHECKING

from qmd import values as qmd_values
from qmd.records import NamedTuple
from qmd.store.sql import Sql, SqlDialect, path_below, path_values
from qmd.store.sql.collections import Collections
from qmd.values.text import replace_halves

if TYPE_CHECKING:
    from qmd.values import Filters
    from qmd.values.properties import PropertyCondition, ValueRange

#: The columns of tasks and facts that are compared as texts; the others are days of tasks.
_TEXTS = ("tasks.status", "observations.category")
#: A day is the day that is written in the note, or the one on the wall when it was saved: on this
#: machine, not where a server is.
_DAY = "CASE WHEN d.date IS NULL THEN d.modified_at {0} ? ELSE substr(d.date, 1, 10) {0} ? END"


class Selection(NamedTuple):
    """
    The documents that pass some filters, made by `Reader.select`.

    It is valid in the snapshot that made it only: collections may be removed meanwhile.

    Attributes:
        sql: A condition on ``documents d``; it takes ``values``.
        collection_ids: The collections that are selected, if only collections are filtered; empty
            for all. None if there are other filters.
        short_ids: A SELECT of the ids that does not read ``documents``, if there is one; it takes
            ``values``.
        indexed_ids: The same by the index of tags or of paths: faster than testing all documents,
            not than testing a few.
    """

    sql: str
    values: tuple[object, ...]
    collection_ids: tuple[int, ...] | None
    short_ids: str = ""
    indexed_ids: str = ""

    @property
    def ids(self) -> str:
        """A SELECT of the ids of these documents, some perhaps twice; it takes ``values``."""
        every = f"SELECT d.id FROM documents d WHERE {self.sql}"
        return self.short_ids or self.indexed_ids or every

    def among(self, column: str, values: list[object]) -> str:
        """
        The further condition that a column has the id of one of these documents; "" for all.

        Its values are appended to ``values``.
        """
        if self.is_all:
            return ""
        values += self.values
        return f" AND {column} IN ({self.ids})"

    @property
    def is_all(self) -> bool:
        """Whether it leaves out no document."""
        return self.sql == "true"


class _Condition(NamedTuple):
    """A part of a `Selection`; each of its forms takes the same values."""

    sql: str
    short_ids: str = ""
    indexed_ids: str = ""


#: More tags of one group are one value. The values of a statement take SQLite time by the square of
#: their number: 4,000 tags took five seconds.
_FEW_TAGS = 16

ALL_DOCUMENTS = Selection("true", (), ())


def select(
    sql: Sql,
    filters: Filters,
    *,
    either: Sequence[Sequence[str | PropertyCondition]] = (),
    none_of: Sequence[str | PropertyCondition] = (),
    one_per_file: bool = True,
) -> Selection:
    """As `qmd.store.reader.Reader.select`."""
    parts: list[_Condition] = []
    values: list[object] = []
    ids = Collections(sql).ids([replace_halves(name) for name in filters.collections])
    if ids:
        parts.append(_Condition(f"d.collection_id IN ({', '.join(map(str, ids))})"))
    if filters.path and filters.path.strip("/"):
        parts.append(_below(sql, filters.path, values))
    properties, no_properties = _property_filters(filters)
    each_alone: list[list[str | PropertyCondition]] = [[tag] for tag in filters.tags]
    each_alone += [[condition] for condition in properties]
    parts += [_meets(sql, group, values) for group in (*each_alone, *either)]
    if none_of or no_properties:
        unwanted = _meets(sql, (*none_of, *no_properties), values)
        parts.append(_Condition(f"NOT {unwanted.sql}"))
    parts += map(_Condition, _dated(sql, filters, values))
    parts += map(
        _Condition, _outside_inner(sql, ids, filters.path, values, one_per_file=one_per_file)
    )
    alone = parts[0] if len(parts) == 1 else _Condition("")
    return Selection(
        " AND ".join(part.sql for part in parts) or "true",
        tuple(values),
        tuple(ids) if len(parts) == (1 if ids else 0) else None,
        alone.short_ids,
        alone.indexed_ids,
    )


def _below(sql: Sql, path: str, values: list[object]) -> _Condition:
    """
    The condition for a path in any collection, or one that begins with a collection's name.

    Its values are appended to ``values``.
    """
    prefix = replace_halves(path).removeprefix("qmd://").strip("/")
    collection, _, rest = prefix.partition("/")
    values += [*path_values(prefix), collection]
    named = "d.collection_id = (SELECT id FROM collections WHERE name = ?)"
    if rest:
        named += f" AND {path_below('d.path')}"
        values += path_values(rest)
    in_any = path_below("d.path")
    return _Condition(
        f"({in_any} OR ({named}))",
        indexed_ids=(
            f"SELECT d.id FROM collections c {sql.dialect.first} documents d"
            f" ON d.collection_id = c.id WHERE {in_any}"
            f" UNION ALL SELECT d.id FROM documents d WHERE {named}"
        ),
    )


def _outside_inner(
    sql: Sql, ids: Sequence[int], path: str | None, values: list[object], *, one_per_file: bool
) -> Iterator[str]:
    """
    The conditions that leave out documents of files that a collection further inside selects.

    Their values are appended to ``values``; ``ids``: the selected collections, empty for all.
    """
    if not one_per_file:
        return
    folders = sql.run("SELECT id, path FROM collections WHERE owner = ''").fetchall()
    for overlap in overlaps((row[0], row[1]) for row in folders if not ids or row[0] in ids):
        below: list[object] = []
        also = _below(sql, path, below).sql.replace("d.", "i.") if path and path.strip("/") else ""
        yield outside_inner(overlap, values, also=also)
        values += below


def _dated(sql: Sql, filters: Filters, values: list[object]) -> Iterator[str]:
    """The conditions for the dates; their values are appended to ``values``."""
    for date, sign in ((filters.after, ">="), (filters.before, "<")):
        if date is None:
            continue
        if len(date) == len("2025-03-01"):
            values += [_midnight(date), date]
            yield _DAY.format(sign)
        else:  # A time of day is a moment, whatever offset from UTC it is written in.
            values.append(date)
            yield f"{sql.dialect.moment} {sign} {sql.dialect.moment_of}"


def _midnight(day: str) -> str:
    """When a day (``2025-03-01``) begins on this machine, in UTC as the database stores it."""
    start = datetime.fromisoformat(day)
    with suppress(OverflowError, OSError, ValueError):  # for the first and last days of Python
        start = start.astimezone(timezone.utc)
    return start.replace(tzinfo=None).isoformat(timespec="seconds")


def _property_filters(
    filters: Filters,
) -> tuple[list[PropertyCondition], list[PropertyCondition]]:
    """The conditions that documents must meet, and those that they must not meet."""
    if not filters.properties:
        return [], []
    parsed = list(map(qmd_values.properties.parse_filter, filters.properties))
    return [each for each, negated in parsed if not negated], [
        each for each, negated in parsed if negated
    ]


def _meets(sql: Sql, group: Sequence[str | PropertyCondition], values: list[object]) -> _Condition:
    """The condition for one of these tags and conditions; its values are appended to ``values``."""
    tags = [replace_halves(each).lstrip("#") for each in group if isinstance(each, str)]
    conditions = [each for each in group if not isinstance(each, str)]
    alternatives, short_ids, indexed_ids = [], "", ""
    if len(tags) > _FEW_TAGS:
        indexed_ids = _tagged_with_any(sql.dialect, tags, values)
        alternatives.append(f"d.id IN ({indexed_ids})")
    elif tags:
        tagged = " OR ".join(tag_below(sql.dialect, tag, values) for tag in tags)
        alternatives.append(
            f"EXISTS (SELECT 1 FROM tags t WHERE t.document_id = d.id AND ({tagged}))"
        )
        indexed_ids = f"SELECT t.document_id FROM tags t WHERE {tagged}"
    if conditions:
        short_ids = " UNION ALL ".join([_having(sql, each, values) for each in conditions])
        alternatives.append(f"d.id IN ({short_ids})")
    condition = _Condition(f"({' OR '.join(alternatives)})")
    if len(alternatives) == 1:
        return condition._replace(short_ids=short_ids, indexed_ids=indexed_ids)
    return condition


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


def _tagged_with_any(dialect: SqlDialect, tags: Sequence[str], values: list[object]) -> str:
    """
    The ids of the documents that have one of many tags or one below it, as a SELECT.

    Its value is appended to ``values``: one for all tags.
    """
    values.append(dialect.array(map(tag_key, tags)))
    column = dialect.key.format("t.tag")
    exact = dialect.unindexed + column
    first, after = "item.value", "item.value || '0'"
    beginning = dialect.beginning.format(column).replace("?", first, 1).replace("?", after, 1)
    return (
        f"SELECT t.document_id FROM {dialect.each} {dialect.first} tags t ON {beginning}"
        f" AND ({exact} = item.value OR ({exact} > item.value || '/' AND {exact} < {after}))"
    )


def tag_among(column: str, tag: str, values: list[object]) -> str:
    """
    The condition that a column of tags with blanks between has a tag, or one below it.

    Its values are appended to ``values``.
    """
    escaped = tag.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    like = f"' ' || {column} || ' ' LIKE ? ESCAPE '\\'"
    values += [f"% {escaped} %", f"% {escaped}/%"]
    return f"({like} OR {like})"


def tag_key(tag: str) -> str:
    """A tag with its ASCII letters in lower case."""
    return "".join(char.lower() if char.isascii() else char for char in tag)


def _having(sql: Sql, condition: PropertyCondition, values: list[object]) -> str:
    """
    The ids of the documents that meet a condition, as a SELECT.

    Its values are appended to ``values``. Each range is one walk through an index, which knows the
    ids too.
    """
    selects = []
    column = qmd_values.properties.LINE_COLUMNS.get(condition.key)
    for value_range in condition.ranges or (None,):
        if column is not None and (value_range is None or _is_about(value_range, column)):
            table = column.partition(".")[0]
            meets = _line_meets(column, value_range, values)
            selects.append(f"SELECT document_id FROM {table} WHERE {meets}")
        values.append(condition.key)
        limits = "" if value_range is None else _limits(sql, value_range, values)
        selects.append(f"SELECT document_id FROM properties WHERE key = ?{limits}")
    return " UNION ALL ".join(selects)


def _is_about(value_range: ValueRange, column: str) -> bool:
    return value_range.column == ("text" if column in _TEXTS else "date")


def _line_meets(column: str, value_range: ValueRange | None, values: list[object]) -> str:
    """
    The condition on a row of a task or fact; days are those of open tasks.

    Its values are appended to ``values``.
    """
    condition = f"{column} IS NOT NULL"
    if column not in _TEXTS:
        condition += " AND status IN ('open', 'doing')"
    if value_range is None:
        return condition
    for limit, sign in _bounds(value_range):
        condition += f" AND {column} {sign} ?"
        values.append(limit)
    return condition


def _bounds(value_range: ValueRange) -> Iterator[tuple[object, str]]:
    """The limits that a range has, each with the sign of its comparison."""
    _, low, high, open_low, open_high = value_range
    if low is not None:
        yield low, ">" if open_low else ">="
    if high is not None:
        yield high, "<" if open_high else "<="


def first_lines(
    sql: Sql, groups: Sequence[Sequence[PropertyCondition]], document_ids: Sequence[int]
) -> dict[int, int]:
    """
    Document id → its first line with a task, or else a fact, that meets the conditions about these.

    Args:
        groups: Of each group a row must meet at least one condition; those about other things do
            not count.
    """
    lines: dict[int, int] = {}
    for table in ("tasks", "observations"):
        values: list[object] = []
        conditions = [
            f"({' OR '.join(alternatives)})"
            for group in groups
            if (alternatives := _line_alternatives(group, table, values))
        ]
        if not conditions:
            continue
        for document_id, line in sql.run(
            f"SELECT document_id, min(line) FROM {table} WHERE {' AND '.join(conditions)}"
            f" AND document_id {sql.among} GROUP BY document_id",
            [*values, sql.array(document_ids)],
        ):
            lines.setdefault(document_id, line)
    return lines


def _line_alternatives(
    group: Sequence[PropertyCondition], table: str, values: list[object]
) -> list[str]:
    """The conditions of a group on a row of a table; their values are appended to ``values``."""
    columns = qmd_values.properties.LINE_COLUMNS
    return [
        _line_meets(columns[each.key], value_range, values)
        for each in group
        if columns.get(each.key, "").startswith(f"{table}.")
        for value_range in each.ranges or (None,)
        if value_range is None or _is_about(value_range, columns[each.key])
    ]


def _limits(sql: Sql, value_range: ValueRange, values: list[object]) -> str:
    column, low, high, *_ = value_range
    indexed = sql.dialect.text_index if column == "text" else None
    if indexed and low == high and len(str(low)) < indexed and _beginning(low, indexed) == low:
        values.append(low)
        return " AND beginning = ?"
    conditions = ""
    for limit, sign in _bounds(value_range):
        if indexed:
            conditions += f" AND beginning {sign[0]}= ?"
            values.append(_beginning(limit, indexed))
        conditions += f" AND {column} {sign} ?"
        values.append(limit)
    return conditions


def _beginning(text: object, length: int) -> str:
    """As SQLite's substr: a text ends before U+0000."""
    return str(text)[:length].partition("\0")[0]


class Overlap(NamedTuple):
    """
    Two collections of which one holds files of the other, by their ids.

    Attributes:
        outer: The collection whose documents are left out where ``inner`` has them.
        inner: The collection whose folder lies deeper; of equal folders the one added first.
        prefix: Where the folder of ``inner`` lies in that of ``outer``: "" or ``folder/``.
    """

    outer: int
    inner: int
    prefix: str


def overlaps(folders: Iterable[tuple[int, str]]) -> list[Overlap]:
    """The overlaps of collections of this machine, of which ids and folders are given."""
    in_order = sorted(folders)
    if len(in_order) < 2:
        return []
    by_path: dict[str, list[int]] = {}
    for collection_id, path in in_order:
        by_path.setdefault(path.rstrip(os.sep) or os.sep, []).append(collection_id)
    pairs = [
        Overlap(outer, inner, "")
        for ids in by_path.values()
        for number, outer in enumerate(ids)
        for inner in ids[:number]
    ]
    for path, ids in by_path.items():
        for parent in map(str, PurePath(path).parents):
            prefix = PurePath(path).relative_to(parent).as_posix() + "/"
            pairs += [
                Overlap(outer, inner, prefix) for outer in by_path.get(parent, ()) for inner in ids
            ]
    return pairs


def outside_inner(overlap: Overlap, values: list[object], *, also: str = "") -> str:
    """
    The SQL condition that the inner collection of an overlap has no document of the file of ``d``.

    Args:
        values: Its values are appended; those of ``also`` must follow.
        also: A condition that the inner document ``i`` must meet.
    """
    length = len(overlap.prefix)
    values += [overlap.outer, length, overlap.prefix, overlap.inner, length + 1]
    return (
        f"NOT (d.collection_id = ? AND substr(d.path, 1, ?) = ? AND EXISTS"
        f" (SELECT 1 FROM documents i WHERE i.collection_id = ?"
        f" AND i.path = substr(d.path, ?){f' AND {also}' if also else ''}))"
    )

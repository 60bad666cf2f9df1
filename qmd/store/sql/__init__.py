"""
One SQL for both engines: each capability is one class, whose statements are written for SQLite.

What the engines spell differently, and more than one capability needs, has a name in `SqlDialect`.
What they do differently (full text, vectors, opening, migrations, locks) is in `qmd.store.sqlite`
and `qmd.store.postgres`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from types import ModuleType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from qmd import lazy, libraries, store
from qmd.records import NamedTuple

if TYPE_CHECKING:
    from qmd.store.sql import access as access
    from qmd.store.sql import conversations as conversations
    from qmd.store.sql import document_rows as document_rows
    from qmd.store.sql import filters as filters
    from qmd.store.sql import shared as shared
    from qmd.store.sql import vectors as vectors

__getattr__ = lazy.load(__name__)

#: A connection of sqlite3 or of psycopg: their methods are alike, without a common type.
Connection: TypeAlias = Any
Value: TypeAlias = Any
Row: TypeAlias = tuple[Any, ...]
#: What `isinstance` takes, for each column.
Types: TypeAlias = Sequence["type | UnionType | tuple[type, ...]"]
Rows: TypeAlias = Iterable[Sequence[object]]
T = TypeVar("T")


class Cursor(Protocol):
    """What a statement returns."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Value: ...

    def fetchall(self) -> list[Row]: ...

    def __iter__(self) -> Iterator[Row]: ...


class SqlDialect:
    """
    What SQLite says, and in which words.

    Attributes:
        package: The package in `qmd.store` of what only this engine has.
        among: The condition that a column has one of the values of an `array`.
        each: The table ``item`` of one column ``value``: the texts of an `array`.
        listed: A subquery of one column as one value, for `parsed`: the column, then the rest.
        json_text: A column with JSON as text.
        full_text_table: The table that has a row for each document with full text.
        as_bytes: A text as UTF-8.
        no_case: A text without the case of its ASCII letters, for LIKE.
        no_limit: What stands for no limit.
        first: Joins what follows to what stands before it, which is read first.
        unindexed: Keeps a column's index from being used where another leads to fewer rows.
        beginning: A range of the values of a column, for which its index is read.
        key: A column of names without the case of ASCII letters, for a column of names.
        folded: A text without the case of its ASCII letters, for sorting.
        moment: When a document ``d`` was written, its own date if it has one; for comparison.
        moment_of: A given time as a `moment`.
        repeats_tags: Whether ``documents`` has a column with the tags of a document as JSON.
        next_number: The next value of a numbered column, given as column and table.
        text_index: How many characters of the text of a property its index has; None for all. A
            column ``beginning`` has them.
        parsed_tables: The tables with what was parsed of a document, besides its text and chunks.
        has_link_targets: Whether ``links`` is a view of links and of what they lead to.
        is_shared: Whether processes on several machines use a database.
        is_typed: Whether a value has the type of its column, also in a damaged database.
    """

    package = "sqlite"
    among = "IN (SELECT value FROM json_each(?))"
    each = "json_each(?) AS item"
    listed = "(SELECT json_group_array({0}) FROM (SELECT {0} {1}))"
    json_text = "{}"
    full_text_table = "z_searchable"
    as_bytes = "CAST({} AS BLOB)"
    no_case = "{}"
    no_limit: int | None = -1
    first = "CROSS JOIN"
    unindexed = "+"
    beginning = "{0} >= ? AND {0} < ?"
    folded = "{} COLLATE NOCASE"
    moment = "coalesce(julianday(d.date), julianday(d.modified_at))"
    moment_of = "julianday(?)"
    key = "{}"  # its collation ignores the case
    next_number = "(SELECT coalesce(max({0}), 0) + 1 FROM {1})"
    repeats_tags = True
    text_index: int | None = 16
    parsed_tables: tuple[str, ...] = (
        *(
            "tags",
            "aliases",
            "anchors",
            "tasks",
            "observations",
            "z_names",
            "z_links",
            "z_properties",
            "z_pictures",
        ),
    )
    has_link_targets = True
    is_shared = False
    is_typed = False

    def array(self, values: Iterable[object]) -> object:
        """Numbers or texts as the value of `among` and `each`."""
        listed = list(values)
        if all(type(value) is int for value in listed):
            return str(listed)  # as JSON has it
        return libraries.json.dumps(listed)

    def parsed(self, stored: Value) -> Value:
        """The value of a column with JSON; the values of a `listed` subquery."""
        return libraries.json.loads(stored) if stored != "[]" else []

    def any_of(self, keys: Sequence[bytes]) -> Iterator[tuple[str, list[object]]]:
        """The condition that a column is one of the keys, and its values; of some keys each."""
        for start in range(0, len(keys), 500):
            some = list(keys[start : start + 500])
            yield f"IN ({', '.join('?' * len(some))})", list[object](some)

    def statement(self, sql: str) -> str:
        return sql

    def execute(
        self, connection: Connection, sql: str, values: Sequence[object], *, as_binary: bool
    ) -> Cursor:
        cursor: Cursor = connection.execute(sql, values)
        return cursor

    def many(self, connection: Connection, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """Execute a statement once for each row of values; how many rows it has changed."""
        return int(connection.executemany(sql, rows).rowcount)

    def insert(
        self, connection: Connection, table: str, columns: str, rows: Sequence[Sequence[object]]
    ) -> None:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)

    def insert_numbered(
        self, connection: Connection, table: str, columns: str, rows: Sequence[Sequence[object]]
    ) -> list[int]:
        """As `insert`; the id of each row, in their order."""
        marks = ", ".join("?" * len(rows[0]))
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks}) RETURNING id"
        return [
            number
            for values in rows
            for (number,) in connection.execute(statement, values).fetchall()
        ]

    def count_on(self, connection: Connection, table: str) -> None:
        """Let new rows have ids greater than all that are there, after one was given."""

    def stream(
        self, connection: Connection, sql: str, values: Sequence[object], rows_at_once: int
    ) -> Iterator[Row]:
        """The rows of a result that is longer than memory may hold."""
        return iter(connection.execute(sql, values))


class _PostgresDialect(SqlDialect):
    package = "postgres"
    among = "= ANY(?)"
    each = "unnest(?::text[]) AS item (value)"
    listed = "ARRAY(SELECT {0} {1})"
    json_text = "{}::text"
    full_text_table = "z_document_tokens"
    as_bytes = "convert_to({}, 'UTF8')"
    no_case = 'lower({} COLLATE "C")'
    no_limit = None
    first = "JOIN"
    unindexed = ""
    beginning = "left({0}, 500) >= left(?, 500) AND left({0}, 500) < ?"  # more do not fit
    folded = "lower({})"
    moment = "d.moment"
    moment_of = "qmd_moment(?)"
    key = "{}_key"
    next_number = "DEFAULT"  # of an identity column
    repeats_tags = False
    text_index = None
    parsed_tables = (
        *("tags", "aliases", "anchors", "tasks", "observations"),
        *("z_names", "links", "properties", "z_pictures"),
    )
    has_link_targets = False
    is_shared = True
    is_typed = True

    def array(self, values: Iterable[object]) -> object:
        return list(values)

    def parsed(self, stored: Value) -> Value:
        return stored

    def any_of(self, keys: Sequence[bytes]) -> Iterator[tuple[str, list[object]]]:
        yield "= ANY(?)", [list(keys)]

    @lru_cache(1024)  # noqa: B019 - there is one dialect, which lives as long as the program
    def statement(self, sql: str) -> str:
        return sql.replace("%", "%%").replace("?", "%s")

    def execute(
        self, connection: Connection, sql: str, values: Sequence[object], *, as_binary: bool
    ) -> Cursor:
        cursor: Cursor = connection.execute(sql, values, binary=as_binary)
        return cursor

    def many(self, connection: Connection, sql: str, rows: Sequence[Sequence[object]]) -> int:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)
            return int(cursor.rowcount)

    def insert(
        self, connection: Connection, table: str, columns: str, rows: Sequence[Sequence[object]]
    ) -> None:
        from qmd.store.postgres.library import copied, copy  # which needs psycopg

        copy(connection, f"{table} ({columns})", list(map(copied, rows)))

    def insert_numbered(
        self, connection: Connection, table: str, columns: str, rows: Sequence[Sequence[object]]
    ) -> list[int]:
        numbers = connection.execute(
            f"SELECT nextval(pg_get_serial_sequence('{table}', 'id')) FROM generate_series(1, %s)",
            [len(rows)],
        )
        ids = [number for (number,) in numbers]
        numbered = [(number, *values) for number, values in zip(ids, rows, strict=True)]
        self.insert(connection, table, f"id, {columns}", numbered)
        return ids

    def count_on(self, connection: Connection, table: str) -> None:
        connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
        )

    def stream(
        self, connection: Connection, sql: str, values: Sequence[object], rows_at_once: int
    ) -> Iterator[Row]:
        from qmd.store.postgres.library import stream  # which needs psycopg

        return stream(connection, sql, values, rows_at_once=rows_at_once)


SQLITE = SqlDialect()
POSTGRES: SqlDialect = _PostgresDialect()


class Sql(NamedTuple):
    """
    A connection with its dialect: what each capability reads and writes through.

    Statements have ``?`` for each value.

    Attributes:
        is_scoped: Whether only the rows of some collections exist in it.
    """

    connection: Connection
    dialect: SqlDialect
    is_scoped: bool = False

    @property
    def among(self) -> str:
        """As `SqlDialect.among`."""
        return self.dialect.among

    def array(self, values: Iterable[object]) -> object:
        """As `SqlDialect.array`."""
        return self.dialect.array(values)

    def in_collections(self, collection_ids: Sequence[int]) -> tuple[str, list[object]]:
        """A condition on ``documents d``, empty for all collections, and the values to bind."""
        if not collection_ids:
            return "", []
        return f" AND d.collection_id {self.among}", [self.array(collection_ids)]

    def run(self, sql: str, values: Sequence[object] = (), *, as_binary: bool = False) -> Cursor:
        """``as_binary``: long byte strings take half of the room on their way from a server."""
        statement = self.dialect.statement(sql)
        return self.dialect.execute(self.connection, statement, values, as_binary=as_binary)

    def many(self, sql: str, rows: Rows) -> int:
        """Run a statement once for each row of values; how many rows it has changed."""
        if not (every := list(rows)):
            return 0
        return self.dialect.many(self.connection, self.dialect.statement(sql), every)

    def count_on(self, table: str) -> None:
        """Let new rows have ids greater than all that are there, after one was given."""
        self.dialect.count_on(self.connection, table)

    def stream(
        self, sql: str, values: Sequence[object] = (), *, rows_at_once: int = 500
    ) -> Iterator[Row]:
        """The rows of a result that is longer than memory may hold."""
        statement = self.dialect.statement(sql)
        return self.dialect.stream(self.connection, statement, values, rows_at_once)

    def with_keys(
        self, sql: str, keys: Iterable[bytes], values: Sequence[object] = ()
    ) -> Iterator[Row]:
        """
        The rows of a statement in which ``{}`` stands for the condition that a column is one of the
        keys; the other values stand after it.
        """
        for condition, some in self.dialect.any_of(list(set(keys))):
            yield from self.run(sql.format(condition), [*some, *values], as_binary=True)

    def insert(self, table: str, columns: str, rows: Rows) -> None:
        """Store new rows; in PostgreSQL that takes a third of the time of `many`."""
        if every := list(rows):
            self.dialect.insert(self.connection, table, columns, every)

    def insert_numbered(self, table: str, columns: str, rows: Rows) -> list[int]:
        """As `insert`; the id of each row, in their order."""
        every = list(rows)
        return self.dialect.insert_numbered(self.connection, table, columns, every) if every else []

    def engine(self, name: str) -> ModuleType:
        """The module of this name in the package of what only this engine has."""
        module: ModuleType = getattr(getattr(store, self.dialect.package), name)
        return module

    def first(self, sql: str, values: Sequence[object] = ()) -> Value:
        """The first row; None without one."""
        return self.run(sql, values).fetchone()

    def value(self, sql: str, values: Sequence[object] = ()) -> Value:
        """The first value of the first row. Raises LookupError: There is no row."""
        if (row := self.first(sql, values)) is None:
            raise LookupError("a row that must exist does not")
        return row[0]

    def number(self, sql: str, values: Sequence[object] = ()) -> int:
        """As `value`, for a number."""
        return int(self.value(sql, values))

    def exists(self, sql: str, values: Sequence[object] = ()) -> bool:
        """Whether there is a row."""
        return self.first(sql, values) is not None

    def column(
        self, sql: str, values: Sequence[object] = (), *, as_binary: bool = False
    ) -> list[Value]:
        """The first value of each row; ``as_binary`` as of `run`."""
        return [row[0] for row in self.run(sql, values, as_binary=as_binary)]

    def rows(self, types: Types, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """
        All rows; ``types`` are those of the columns.

        Raises:
            TypeError: A value has another type; `Store` looks for damage then.
        """
        rows = self.run(sql, values).fetchall()
        if not self.dialect.is_typed:
            for row in rows:
                require_types(row, types)
        return rows

    def all(self, kind: Callable[..., T], sql: str, values: Sequence[object] = ()) -> list[T]:
        """All rows as instances of a class, whose fields are the columns. Raises as `rows`."""
        return list(self.records(kind, self.run(sql, values).fetchall()))

    def records(self, kind: Callable[..., T], rows: Iterable[Row]) -> Iterator[T]:
        """As `all`, of rows that are read already, or are yet to be."""
        types = None if self.dialect.is_typed else _types(kind)
        for row in rows:
            if types is not None:
                require_types(row, types)
            yield kind(*row)


class Capability:
    """What a `Reader` or a `Writer` has under one name: statements about one subject."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql


def require_types(row: Sequence[object], types: Types) -> None:
    """
    SQLite keeps a value of any type in any column, and damage makes use of that.

    Raises:
        TypeError: A value has another type; `Store` looks for damage then.
    """
    for value, expected in zip(row, types, strict=True):
        if not isinstance(value, expected):
            raise TypeError(f"{type(value).__name__} where {expected} is stored")


@cache
def _types(kind: Any) -> Types:
    """The types of the fields of a record."""
    hints = get_type_hints(kind)
    return [_plain(hints[name]) for name in kind.__match_args__]


def _plain(hint: Any) -> Any:
    """What `isinstance` takes."""
    origin = get_origin(hint)
    if origin is Literal:
        return str
    if origin in (Union, UnionType):
        return tuple(NoneType if each is NoneType else _plain(each) for each in get_args(hint))
    return hint if isinstance(hint, type) else object


def path_below(column: str) -> str:
    """
    SQL for "this path or below it", for which an index is read in one range.

    It takes `path_values`. ("0" follows "/"; between both are the names that only begin like it.)
    """
    return f"({column} >= ? AND {column} < ? AND ({column} = ? OR {column} > ?))"


def path_values(path: str) -> list[object]:
    """The values of `path_below`."""
    return [path, f"{path}0", path, f"{path}/"]

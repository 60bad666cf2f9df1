"""What the engines of the store share."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

#: A connection of sqlite3 or of psycopg: their methods are alike, without a common type.
Connection: TypeAlias = Any


class Engine(NamedTuple):
    """
    Attributes:
        package: The package in `qmd.store` of what only this engine has.
        prefix: What the names of its classes begin with.
    """

    package: str
    prefix: str


SQLITE = Engine("sqlite", "Sqlite")
POSTGRES = Engine("postgres", "Postgres")


class Sql(NamedTuple):
    """
    A connection with its engine: what each capability reads and writes through.

    Attributes:
        is_scoped: Whether only the rows of some collections exist in it.
    """

    connection: Connection
    engine: Engine
    is_scoped: bool = False

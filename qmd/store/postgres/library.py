"""Connects to PostgreSQL with psycopg 3, and translates its errors; no other module does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg import errors, types

from qmd.errors import (
    CorruptDatabaseError,
    DatabaseBusyError,
    DatabaseMissingError,
    DatabaseUnreachableError,
    DiskFullError,
    ReadOnlyError,
    StoreError,
)
from qmd.system import cancellation
from qmd.values.location import ServerDatabase

if TYPE_CHECKING:
    from psycopg.abc import Buffer

    #: The values of a row, as psycopg reads them.
    Row: TypeAlias = tuple[Any, ...]
    Connection: TypeAlias = psycopg.Connection[Row]
else:
    Connection = psycopg.Connection

#: What a statement may raise. Unlike SQLite's, a connection knows of no damage.
Error = psycopg.Error
#: A server whose machine is gone, or cut off, is noticed after a minute; by default, after hours.
_TIMEOUTS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds
}
#: What stands for the character U+0000, which no text in PostgreSQL can hold: the ASCII character
#: SUBSTITUTE, whose place in a text takes one character and one byte, too.
SUBSTITUTE = "\x1a"
#: The first number of all our advisory locks: "qmd" in ASCII.
LOCKS = 0x716D64
#: The first number of the locks of texts that a process embeds.
CLAIMS = LOCKS + 1
_stream_numbers = itertools.count(1)
#: So many lines are sent at once; those of postings have some 100 KB.
_LINES = 2_000
#: What the format of COPY escapes; the backslash, with which it does so, comes first.
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), ("\0", SUBSTITUTE))


class _TextDumper(types.string.StrDumperUnknown):
    """Stores U+0000 as `SUBSTITUTE`, so that places in texts stay the same."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", SUBSTITUTE) if "\0" in obj else obj)


def connect(location: ServerDatabase, *, read_only: bool = False) -> Connection:
    """
    A new connection in autocommit mode.

    Raises:
        StoreError: The server cannot be reached, or refuses; the message has no password.
    """
    try:
        connection: Connection = psycopg.connect(location.url, **_options(location))
    except Error as error:
        raise translate(error, location, is_connecting=True) from None  # it may quote the URL
    try:
        connection.adapters.register_dumper(str, _TextDumper)
        if read_only:
            connection.execute("SET default_transaction_read_only = on")
        # Dates in texts without a time zone are UTC, on every server.
        connection.execute("SET TimeZone = 'UTC'")
        # No statement takes so long that compiling it would pay.
        connection.execute("SET jit = off")
        # A search keeps the rows of its words, 50 bytes each; beyond this they go to the disk. (The
        # default is 4 MB.)
        connection.execute(
            "SELECT set_config('work_mem', '32MB', false)"
            f" WHERE pg_size_bytes(current_setting('work_mem')) < {32 << 20}"
        )
    except BaseException:
        connection.close()
        raise
    return connection


def _options(location: ServerDatabase) -> dict[str, Any]:
    """What the URL leaves open."""
    options: dict[str, Any] = {"autocommit": True, "client_encoding": "UTF8"}
    stated = psycopg.conninfo.conninfo_to_dict(location.url)
    if "application_name" not in stated:
        options["application_name"] = "qmd"
    options |= {name: value for name, value in _TIMEOUTS.items() if name not in stated}
    return options


def server_version(connection: Connection) -> str:
    """Such as ``18.1``."""
    number = connection.info.server_version
    return f"{number // 10_000}.{number % 10_000}"


def one(connection: Connection, sql: str, values: Sequence[object] = ()) -> Row:
    """
    The one row of a result that always has one.

    Raises:
        LookupError: It has none.
    """
    row = connection.execute(sql, values).fetchone()
    if row is None:
        raise LookupError("a row that must exist does not")
    return row


def stream(
    connection: Connection,
    sql: str,
    values: Sequence[object] = (),
    *,
    rows_at_once: int = 500,
) -> Iterator[Row]:
    """
    The rows of a long result, which memory may not hold, by a cursor on the server.

    Other statements may be executed meanwhile. It needs an open transaction. The server sends
    values as bytes, not as text: bytea takes half of the room then.
    """
    name = f"qmd_{next(_stream_numbers)}"
    with connection.cursor(name) as cursor:
        cursor.itersize = rows_at_once
        cursor.execute(sql, values, binary=True)
        for row in cursor:
            cancellation.check()
            yield row


def copy(connection: Connection, target: str, lines: Sequence[str]) -> None:
    """
    Store rows in the format of COPY; ``target`` is the table, with its columns in brackets.

    psycopg itself writes this format in eight times the time.
    """
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN".encode()) as rows:
        for start in range(0, len(lines), _LINES):
            rows.write("".join(lines[start : start + _LINES]))


def copied(row: Sequence[object]) -> str:
    """A row in the format of COPY."""
    return "\t".join(map(_copied_value, row)) + "\n"


def _copied_value(value: object) -> str:
    if isinstance(value, str):
        return value if value.isalnum() else _escaped(value)
    if value is None:
        return "\\N"
    return f"\\\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _escaped(text: str) -> str:
    # Each search takes a hundredth of the time of a translation of all characters.
    for character, written in _ESCAPES:
        if character in text:
            text = text.replace(character, written)
    return text


def missing_database(location: ServerDatabase) -> DatabaseMissingError:
    return DatabaseMissingError(
        f"There is no knowledge base in {location}.",
        hint=f"Run 'qmd up FOLDER' with --db or QMD_DB set to {location} to make one.",
    )


_BUSY = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.TooManyConnections,
    errors.QueryCanceled,
)


def is_lost(connection: Connection) -> bool:
    """Whether the server or the network has ended a connection."""
    return connection.closed or connection.broken


def translate(
    error: Exception, location: ServerDatabase, *, is_connecting: bool = False
) -> StoreError:
    """The QmdError for what PostgreSQL or psycopg said, without a password."""
    reason = _reason(error, location)
    if isinstance(error, _BUSY):
        return DatabaseBusyError(
            f"The database {location} is busy: {reason}",
            hint="Try again in a moment; if it stays, look at pg_stat_activity on the server.",
        )
    if isinstance(error, errors.DiskFull):
        return DiskFullError(
            f"The disk of the server of {location} is full; nothing was written.",
            hint="Free some space on the server and run the command again.",
        )
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return ReadOnlyError(
            f"The database {location} can only be read.",
            hint="It is a replica, or was set to read only. Give the URL of the primary server.",
        )
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(
            f"The user of {location} may not do that: {reason}",
            hint="Ask the administrator of the server for the right (GRANT), or use another user.",
        )
    if isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
        return CorruptDatabaseError(f"The database {location} is damaged: {reason}", hint=DAMAGED)
    if is_connecting:
        return _not_connected(error, location, reason)
    if isinstance(error, psycopg.OperationalError):
        return DatabaseUnreachableError(
            f"The connection to {location} was lost: {reason}",
            hint="Try again: the next use connects anew. A change that failed may be missing.",
        )
    return StoreError(f"The database {location} failed: {reason}", hint="Run 'qmd doctor'.")


#: What a server that answers, but gives no connection, says; and what to do. libpq has no code.
_REFUSALS = (
    (
        ("no password supplied", "password authentication failed"),
        "Write the user's password into ~/.pgpass, which only you may read (chmod 600), as a line"
        " HOST:PORT:DATABASE:USER:PASSWORD; or into the URL in QMD_DB or config.toml.",
    ),
    (
        ("pg_hba.conf",),
        "Ask the administrator of the server to let this user and machine in (pg_hba.conf).",
    ),
    (
        ("too many clients", "too many connections", "remaining connection slots"),
        "Wait until others end, or raise max_connections on the server: each process of qmd needs"
        " up to twelve connections.",
    ),
    (
        ("SSL", "certificate"),
        "Correct sslmode and sslrootcert in the URL, or the certificate of the server.",
    ),
    (("FATAL:",), "Correct the URL, or ask the administrator of the server."),
)


def _not_connected(error: Exception, location: ServerDatabase, reason: str) -> StoreError:
    """The error for a connection that was not made."""
    if isinstance(error, psycopg.ProgrammingError):  # of the library, which has sent nothing yet
        return StoreError(
            f"The URL {location} is not understood: {reason}",
            hint="Its options are those of PostgreSQL's own programs: docs/postgresql.md.",
        )
    if "does not exist" in reason and "certificate" not in reason:
        return DatabaseMissingError(
            f"The server has no such database or user: {reason}",
            hint="Create them there (createuser, createdb), or correct the URL.",
        )
    if "the database system is" not in reason:  # … starting up, or shutting down
        for words, hint in _REFUSALS:
            if any(word in reason for word in words):
                problem = reason.rpartition("failed: ")[2].removeprefix("FATAL:").strip()
                return DatabaseUnreachableError(
                    f"No connection to {location}: {problem}", hint=hint
                )
    return DatabaseUnreachableError(
        f"The server of {location} cannot be reached: {reason}",
        hint="Check that the server runs and the URL is right, then try again.",
    )


DAMAGED = (
    "Your files are not affected. Restore a backup of the server (pg_restore), or use a new"
    " database: 'qmd index' and 'qmd embed' fill it from the files."
)


def _reason(error: Exception, location: ServerDatabase) -> str:
    """The first line of what the server said, without passwords."""
    diagnosis = getattr(error, "diag", None)
    text = (diagnosis and diagnosis.message_primary) or str(error)
    for secret in location.secrets:
        text = text.replace(secret, "***")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def lock_in_transaction(connection: Connection, purpose: str) -> None:
    """
    Wait for an advisory lock that the end of the transaction releases.

    Knowledge bases in different schemas of one database do not wait for each other.
    """
    connection.execute(
        "SELECT pg_advisory_xact_lock(%s, hashtext(current_schema() || %s))", [LOCKS, f":{purpose}"]
    )

"""
Chooses a SQLite library and opens files with it; no other module does.

Many Pythons (pyenv, macOS) build ``sqlite3`` without extension loading, so sqlite-vec cannot
be loaded there. We take the first of pysqlite3, sqlean and the standard library that can.

Never open one file with two SQLite libraries in one process: POSIX locks belong to the
process, and closing the one library's file releases the other's lock. So the choice is
made once, here, and sqlite_utils is made to see the same module.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import quote

from qmd import errors, libraries, system
from qmd.system import cancellation

if TYPE_CHECKING:
    import sqlite3 as dbapi
    from sqlite3 import Connection, Cursor, Error, OperationalError, _Parameters

__all__ = [
    "FAILURES",
    "Connection",
    "Error",
    "FrozenConnection",
    "OperationalError",
    "ReadingConnection",
    "connect",
    "damaged",
    "dbapi",
    "extensions_loadable",
    "is_damage",
    "library",
    "missing_database",
    "translate",
]

BUSY_TIMEOUT_S = 15.0
#: The first version that knows RETURNING (3.35) and IS NOT DISTINCT FROM.
OLDEST = (3, 39, 0)
#: SQLite takes such files for empty databases, and would write over a short note.
_TOO_SHORT = range(1, 512)


def _can_load_extensions(module: ModuleType) -> bool:
    return hasattr(module.Connection, "enable_load_extension")


def _choose() -> ModuleType:
    for name in ("pysqlite3.dbapi2", "sqlean.dbapi2", "sqlite3"):
        try:
            __import__(name)  # importlib does the same, and costs a start two modules
        except ImportError:
            continue
        module = sys.modules[name]
        if name == "sqlite3" or _can_load_extensions(module):
            # sqlite_utils asks for pysqlite3 first. With only the package registered it
            # would fall back to the standard library without a word.
            if name != "sqlite3":
                sys.modules["pysqlite3"] = sys.modules[name.partition(".")[0]]
                sys.modules["pysqlite3.dbapi2"] = module
            return module
    raise errors.StoreError(
        "This Python has no usable SQLite library.",
        hint=f"{system.installation.current().install('pysqlite3')}, or use a Python that was built"
        " with sqlite3.",
    )


if not TYPE_CHECKING:
    dbapi = _choose()
    Connection = dbapi.Connection
    Error = dbapi.Error
    OperationalError = dbapi.OperationalError

# Before a library passes None or bytes on as they are, it looks in vain for what would adapt them:
# 1.2 us for each in pysqlite3, several times what a row takes. So both have adapters, which give
# them back: ``get`` of an empty dict, and ``bytes``.
dbapi.register_adapter(type(None), dict[None, None]().get)
dbapi.register_adapter(bytes, bytes)

#: What a statement may raise: an error message that quotes a damaged schema is no UTF-8.
FAILURES = (Error, UnicodeDecodeError)


class ReadingConnection(Connection):
    """
    Read-only, and reads nothing for a request that was ended.

    Attributes:
        lengths: A build of the common words, and the lengths of documents that belong to it.
        counted: A `state`, and how many documents match expressions then, up to a number.
    """

    lengths: tuple[int, bytes] | None = None
    counted: tuple[object, dict[tuple[str, int], int]] | None = None

    def execute(self, sql: str, parameters: _Parameters = (), /) -> Cursor:
        """Raises RequestEndedError."""
        cancellation.check()
        return super().execute(sql, parameters)

    def state(self) -> object:
        """A value that differs after anything was written."""
        # The first number moves with what others commit, the second with what is done here.
        return self.execute("PRAGMA data_version").fetchone()[0], self.total_changes


class FrozenConnection(ReadingConnection):
    """
    Reads the file without locks, as if it never changed, because none can be taken there.

    What another process writes meanwhile is not seen, or seen by halves: keep it short.
    """


def library() -> str:
    """The chosen library and its SQLite version, for `qmd doctor`."""
    return f"{dbapi.__name__.partition('.')[0]} (SQLite {dbapi.sqlite_version})"


def extensions_loadable() -> bool:
    """Whether the chosen library can load sqlite-vec at all."""
    return _can_load_extensions(sys.modules[dbapi.__name__])


def connect(
    path: Path,
    *,
    read_only: bool,
    create: bool = True,
    timeout: float = BUSY_TIMEOUT_S,
    tolerant: bool = False,
) -> Connection:
    """
    Open a database in autocommit mode, with the pragmas all connections share.

    ``create``: make the file if there is none. ``timeout``: seconds to wait for a lock that
    another process holds. ``tolerant``: see of a damaged schema what can be read, if read-only.

    A read-only connection sees a WAL database; where the directory cannot be written, or the disk
    is full, and no process has it open, it is read as an immutable file. On a full disk a log that
    is not empty is read by one process at a time.

    Raises:
        DatabaseMissingError: There is no such file, and none is to be made.
        StoreError: The library is too old; or whatever SQLite says, translated.
    """
    if dbapi.sqlite_version_info < OLDEST:
        raise _too_old()
    try:
        size = path.stat().st_size
    except OSError:
        size = None
    if size is None and (read_only or not create):
        raise missing_database(path)
    if size in _TOO_SHORT:
        raise translate(Error("not a database"), path)
    if read_only:
        return _open_to_read(path, timeout, tolerant=tolerant)
    if size is None:
        # SQLite would let everybody read it, as the umask says. Its log gets the mode of the file.
        with suppress(OSError):  # SQLite says it, or another process was faster
            Path(os.path.realpath(path)).touch(0o600, exist_ok=False)
    try:
        mode = "rwc" if create else "rw"
        connection = _open(f"file:{quote(os.fsencode(path))}?mode={mode}", timeout)
    except FAILURES as error:
        raise translate(error, path) from error
    try:
        if not size:
            # So free pages can be given back without writing the whole file anew.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_wal(connection, timeout)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {64 << 20}")
    except FAILURES as error:
        connection.close()
        raise translate(error, path) from error
    return connection


def _too_old() -> errors.StoreError:
    oldest = ".".join(map(str, OLDEST))
    return errors.StoreError(
        f"SQLite {dbapi.sqlite_version} is too old: qmd needs {oldest} or newer.",
        hint=f"{system.installation.current().install('pysqlite3')}, which brings its own.",
    )


def _open_to_read(path: Path, timeout: float, *, tolerant: bool) -> Connection:
    uri = f"file:{quote(os.fsencode(path))}?mode=ro"
    try:
        return _open(uri, timeout, ReadingConnection, tolerant=tolerant)
    except FAILURES as error:
        # SQLite needs to create -shm to read a WAL database. On a read-only disk and on a full one
        # it cannot; without a -wal file beside it nothing is lost by reading it as it is.
        message = str(error) if isinstance(error, OperationalError) else ""
        is_full = "disk I/O error" in message
        if not is_full and not any(each in message for each in ("unable to open", "readonly")):
            raise translate(error, path) from error
        wal = Path(f"{path}-wal")
        has_wal = wal.exists() and wal.stat().st_size > 0
        if has_wal and not is_full:
            raise translate(error, path) from error
    try:
        if has_wal:
            return _open(uri.replace("=ro", "=rw"), timeout, ReadingConnection, alone=True)
        return _open(uri + "&immutable=1", timeout, FrozenConnection, tolerant=tolerant)
    except FAILURES as error:
        raise translate(error, path) from error


def drop_companions(path: Path) -> None:
    """Let SQLite delete the files that read-only connections left beside one in WAL mode."""
    if Path(f"{path}-wal").exists():
        with suppress(errors.QmdError, *FAILURES):  # others have it open, or it cannot be written
            _open(f"file:{quote(os.fsencode(path))}?mode=rw", BUSY_TIMEOUT_S).close()


def _use_wal(connection: Connection, timeout: float) -> None:
    """
    Switch a new database to WAL.

    Of several processes that switch at once SQLite tells all but one "locked", whatever the
    busy timeout: waiting inside could be for ever, as each may hold what the other needs.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


def _open(
    uri: str,
    timeout: float,
    factory: type[Connection] = Connection,
    *,
    tolerant: bool = False,
    alone: bool = False,
) -> Connection:
    """``alone``: read without -shm, in the memory of this process, and lock out all others."""
    connection = dbapi.connect(
        uri,
        uri=True,
        timeout=timeout,
        factory=factory,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA query_only = ON")
        if tolerant:
            connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        schema_version(connection)  # reads the file: fails here if at all
    except (Error, errors.RequestEndedError):
        connection.close()
        raise
    return connection


def schema_version(connection: Connection) -> int:
    """A number that changes with each table, index, view and trigger that is made or dropped."""
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    return int(version)


def missing_database(path: Path) -> errors.DatabaseMissingError:
    return errors.DatabaseMissingError(
        f"There is no database at {path}.",
        hint=_filled("Run 'qmd up FOLDER --db {quoted}' to make one.", path),
    )


DAMAGED = "The database {path} is damaged."
RESCUE = (
    "Your files are not affected. End what uses the database, then run"
    " 'qmd db rescue --db {quoted}': it saves what cannot be made anew (collections, contexts,"
    " earlier contents of files) as far as it can be read, and keeps the damaged file;"
    " 'qmd index --db {quoted}' and 'qmd embed --db {quoted}' make the rest."
    " Or put a backup in its place: 'qmd db restore BACKUP --db {quoted}'."
)


def damaged(path: Path) -> errors.CorruptDatabaseError:
    """The error for a database whose contents cannot be."""
    return errors.CorruptDatabaseError(DAMAGED.format(path=path), hint=_filled(RESCUE, path))


def is_damage(error: Exception) -> bool:
    """Whether this, of `FAILURES`, tells of a damaged file, and not of a lock or a full disk."""
    if isinstance(error, UnicodeDecodeError):
        return True
    kinds = (errors.CorruptDatabaseError, errors.NotADatabaseError)
    return any(needle in str(error) for needle, kind, _, _ in _TRANSLATIONS if kind in kinds)


def _filled(hint: str, path: Path) -> str:
    """Commands in a hint name the file as a shell takes it, whatever database is the default."""
    return hint.format(path=path, quoted=libraries.shlex.quote(str(path)))


# Primary result codes: https://www.sqlite.org/rescode.html. pysqlite3 and Python < 3.11 give
# no code on the exception, so the message decides.
_TRANSLATIONS: tuple[tuple[str, type[errors.QmdError], str, str], ...] = (
    (
        "locked",
        errors.DatabaseBusyError,
        "The database {path} is locked by another process.",
        "Wait for the other program to finish, or close what holds {path} open.",
    ),
    (
        "not a database",
        errors.NotADatabaseError,
        "The file {path} is not a SQLite database.",
        "Give another file with --db; this one was left untouched. If it was a database of qmd,"
        " its beginning is destroyed: 'qmd db restore BACKUP --db {quoted}' puts a backup in its"
        " place and keeps it; without a backup move it away and run 'qmd up FOLDER --db {quoted}'.",
    ),
    (
        "corrupt",  # what FTS5 says of its own tables
        errors.CorruptDatabaseError,
        "The full-text index in {path} is damaged.",
        RESCUE,
    ),
    ("malformed", errors.CorruptDatabaseError, DAMAGED, RESCUE),
    ("Could not decode", errors.CorruptDatabaseError, DAMAGED, RESCUE),
    (
        "readonly",
        errors.ReadOnlyError,
        "The database {path} cannot be written.",
        "Check the permissions of the file and its directory, or give another with --db.",
    ),
    (
        "disk is full",
        errors.DiskFullError,
        "The disk that holds {path} is full; nothing was lost.",
        "Free some space and run the command again.",
    ),
    (
        "disk I/O error",
        errors.StoreError,
        "The disk that holds {path} reports an error.",
        "Check the disk and its free space, then run the command again.",
    ),
    (
        "unable to open",
        errors.StoreError,
        "The database {path} cannot be opened.",
        "Check that the directory exists and that you may read and write it.",
    ),
)


def translate(error: Exception, path: Path) -> errors.QmdError:
    """The QmdError for what SQLite said; the original is kept as its cause by the caller."""
    if isinstance(error, UnicodeDecodeError):  # SQLite has quoted the damaged schema
        return damaged(path)
    text = str(error)
    if os.path.isdir(path):  # noqa: PTH112 - never raises
        return errors.NotADatabaseError(
            f"{path} is a directory, not a database.",
            hint="Give a file with --db, for example " + str(path / "index.sqlite"),
        )
    if "unable to open" in text and not os.access(path.parent, os.W_OK):
        text = "readonly"  # neither the file nor its -wal can be made
    for needle, kind, message, hint in _TRANSLATIONS:
        if needle in text:
            return kind(message.format(path=path), hint=_filled(hint, path))
    if _is_full(path):  # sqlite-vec reports a failed write as an error of its own
        return translate(OperationalError("disk is full"), path)
    return errors.StoreError(f"The database {path} failed: {text}", hint="Run 'qmd doctor'.")


def _is_full(path: Path) -> bool:
    try:
        return libraries.shutil.disk_usage(path.parent).free < 1 << 16
    except OSError:
        return False

"""Copies the whole database file consistently, and puts another file in its place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain, count
from pathlib import Path

from qmd import errors
from qmd.store.sqlite import damage, library, migrate
from qmd.store.sqlite.disk_space import require_free
from qmd.system import cancellation
from qmd.system.temporary import temporary_beside

#: What SQLite keeps beside a database while it is open, or after a crash.
COMPANIONS = ("-wal", "-shm", "-journal")


#: Pages that are copied between two calls of a progress callback: 16 MB.
PAGES_AT_ONCE = 4096


def copy(
    connection: library.Connection,
    target: Path,
    *,
    replace: bool,
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """
    Write all that this connection sees to a file of its own, whoever writes meanwhile.

    Args:
        connection: It is inside a transaction, so that all steps copy one snapshot.
        progress: Called with the bytes that are copied, and all bytes.

    Returns:
        Its size in bytes.

    Raises:
        ConflictError: The target exists and ``replace`` is false, or is a database in use.
        InputError, StoreError, DiskFullError: It cannot be written; nothing is left behind. Too
            little free space is told before anything is written.
    """
    if target.is_dir():
        raise errors.InputError(f"{target} is a directory.", hint="Give the name of a file in it.")
    if not target.parent.is_dir():
        raise errors.StoreError(f"There is no directory {target.parent}.", hint="Make it first.")
    if target.exists() and not replace:
        raise errors.ConflictError(
            f"{target} exists.", hint="Give another name, or --force to replace it."
        )
    if any(Path(f"{target}{suffix}").exists() for suffix in COMPANIONS):
        _require_unused(target)
    with _beside(target) as temporary:
        # Readers of a file with a log leave companions, and need a directory that they may write.
        _copy(connection, temporary, progress, without_log=True)
        size = temporary.stat().st_size
        for suffix in COMPANIONS:  # of the file that is replaced; the copy is complete
            Path(f"{target}{suffix}").unlink(missing_ok=True)
        _put(temporary, target, mode_of=target)
    return size


def copy_older(path: Path, target: Path, *, replace: bool) -> int:
    """
    Write a copy of a database of an earlier version, which is left as it is.

    The arguments, what is returned and the errors are those of `copy`; also NotADatabaseError and
    StoreError if the file is no database of qmd.
    """
    with closing(library.connect(path, read_only=True)) as connection:
        try:
            migrate.check(connection, path)
            connection.execute("BEGIN")
            return copy(connection, target, replace=replace)
        except library.FAILURES as error:
            raise library.translate(error, path) from error


def require_database(path: Path) -> None:
    """Raises DatabaseMissingError: There is no file."""
    if not path.is_file():
        raise library.missing_database(path)


def check_backup(path: Path) -> None:
    """
    Whether a file is a sound database that this program can read.

    Raises:
        NotADatabaseError, SchemaTooNewError, StoreError: It is not.
        CorruptDatabaseError: It is damaged.
    """
    with closing(library.connect(path, read_only=True)) as backup:
        try:
            migrate.check(backup, path)
            if not migrate.applied(backup):
                raise errors.StoreError(
                    f"{path} is an empty database.", hint="Give a file that 'qmd db backup' made."
                )
            problems = damage.first_problems(backup)
        except library.FAILURES as error:
            raise library.translate(error, path) from error
    if problems:
        raise errors.CorruptDatabaseError(
            f"{path} is damaged: " + "; ".join(problems[:3]), hint="Give another backup."
        )


@contextmanager
def left_alone(path: Path) -> Iterator[None]:
    """Read a file in the block, and leave nothing beside it that was not there before."""
    has_companions = any(Path(f"{path}{suffix}").exists() for suffix in COMPANIONS)
    try:
        yield
    finally:
        if not has_companions:
            library.drop_companions(path)


def put_in_place(source: Path, database: Path) -> Path | None:
    """
    Let a copy of ``source`` be the database; what was there is kept.

    Returns:
        Where the old database is now, None if there was none.

    Raises:
        ConflictError: A program has the database open.
        StoreError, DiskFullError: The copy cannot be made; nothing has changed.
    """
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(library.connect(source, read_only=True)) as copied, _beside(database) as temporary:
        _copy(copied, temporary)
        kept = None
        if database.exists():
            _require_unused(database)
            kept = _free_name(database)
            for suffix in COMPANIONS:  # of a damaged one; they must not reach its successor
                companion = Path(f"{database}{suffix}")
                if companion.exists():
                    companion.replace(f"{kept}{suffix}")
            try:
                os.link(database, kept)
            except OSError:  # no hard links here; for a moment there is no database then
                database.replace(kept)
        _put(temporary, database, mode_of=kept or database)
    return kept


def _require_unused(database: Path) -> None:
    """Leaving WAL mode needs the file alone, and empties the log into it."""
    try:
        connection = library.connect(database, read_only=False, timeout=1.0)
    except errors.DatabaseBusyError as error:
        raise _in_use(database) from error
    except errors.StoreError:
        return  # damaged or no database: that is what a backup is for
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
    except library.Error as error:
        if isinstance(library.translate(error, database), errors.DatabaseBusyError):
            raise _in_use(database) from error
    finally:
        connection.close()


def _in_use(database: Path) -> errors.ConflictError:
    return errors.ConflictError(
        f"A program has the database {database} open.",
        hint="End servers, 'qmd watch' and MCP clients that use it, then try again.",
    )


def _free_name(database: Path) -> Path:
    numbers = chain([""], (f"-{number}" for number in count(2)))
    names = (Path(f"{database}.bak{number}") for number in numbers)
    return next(name for name in names if not name.exists())


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A name in the same directory, free at the end whatever happens."""
    temporary = temporary_beside(target)
    try:
        yield temporary
    except OSError as error:
        raise errors.StoreError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="Check the directory, its permissions and its free space.",
        ) from error
    finally:
        for suffix in ("", *COMPANIONS):
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _copy(
    source: library.Connection,
    target: Path,
    progress: Callable[[int, int], object] | None = None,
    *,
    without_log: bool = False,
) -> None:
    pages, page_size = source.execute(
        "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"
    ).fetchone()
    require_free({target.parent: pages * page_size}, "A copy of the database")

    def tick(_status: int, remaining: int, total: int) -> None:
        cancellation.check()
        if progress is not None:
            progress((total - remaining) * page_size, total * page_size)

    target.unlink(missing_ok=True)
    try:
        copied = library.connect(target, read_only=False)
        try:
            # Outside a transaction a copy in steps would begin anew after every write.
            in_steps = source.in_transaction and progress is not None
            source.backup(copied, pages=PAGES_AT_ONCE if in_steps else -1, progress=tick)
            if without_log:
                copied.execute("PRAGMA journal_mode = DELETE")
        finally:
            copied.close()
    except library.Error as error:
        raise library.translate(error, target) from error


def _put(temporary: Path, target: Path, *, mode_of: Path) -> None:
    """``mode_of``: the file that is replaced, where it is now. If there is none the mode stays."""
    if mode_of.exists():
        shutil.copymode(mode_of, temporary)
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(target)
    if os.name == "posix":
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

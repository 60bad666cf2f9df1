"""
Opens the files of collections that the index lists: documents, and attachments of notes; and says
which rule would keep a new file out of it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from qmd.engine_text import engine_text, sentences
from qmd.errors import ConflictError, DocumentNotFoundError
from qmd.ingest.rules import Rules
from qmd.ingest.why import exclusion_of_new_file
from qmd.system.beneath import READ, open_beneath
from qmd.system.surrogates import is_utf8
from qmd.values.names import keys_of_target

if TYPE_CHECKING:
    from qmd.store import Reader, Store
    from qmd.values import Collection
    from qmd.values.location import DatabaseLocation


def open_indexed_file(reader: Reader, file: str, *, database: DatabaseLocation) -> BinaryIO:
    """
    Open ``collection/path`` for reading, without following a link below the collection.

    A file that an ignore file of its collection names, and the database with the files that SQLite
    keeps beside it, count as missing.

    Raises:
        DocumentNotFoundError: The index lists no such file, or it is no regular file any more.
        CollectionNotFoundError.
    """
    collection, _, path = file.partition("/")
    if not is_utf8(file):
        raise DocumentNotFoundError(file)
    stored = reader.collections.by_name(collection)
    root = stored.path
    named = reader.links.files_with_keys(collection, keys_of_target(path)) if path else []
    if not any(each.path == path for each in named):
        raise DocumentNotFoundError(file)
    # Attachments match no mask, but a file that an ignore file names is nobody's to see.
    rules = Rules(Path(root), "**/*", stored.ignore, enters_pictures=True)
    try:
        if exclusion_of_new_file(rules, path) is not None:
            raise DocumentNotFoundError(file)
        descriptor = open_beneath(root, path, READ)
    except (OSError, ValueError) as error:
        raise DocumentNotFoundError(file) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or _is_database(status, database):
        os.close(descriptor)
        raise DocumentNotFoundError(file)
    return os.fdopen(descriptor, "rb")


def exclusion_in(collection: Collection, path: str) -> str | None:
    """
    The rule of a collection that leaves out a new file, in sentences; None if none does.

    Args:
        path: Relative to the collection; nothing need be there.
    """
    rules = Rules.of_collection(collection)
    verdict = exclusion_of_new_file(rules, path, collection.name)
    return None if verdict is None else sentences(verdict.reason, verdict.remedy)


def exclusion_of_file(store: Store, file: Path) -> str | None:
    """
    `exclusion_in` for a path on the disk; None also if it is in no collection, or in several of
    which one takes it.

    Args:
        file: Absolute, with all links followed.
    """
    with store.reading() as reader:
        collections = reader.collections.all()
    roots = [(each, Path(os.path.realpath(each.path))) for each in collections]
    exclusions = [
        exclusion_in(collection, file.relative_to(root).as_posix())
        for collection, root in roots
        if file.is_relative_to(root)
    ]
    return exclusions[0] if exclusions and all(exclusions) else None


def require_shown(file: str, exclusion: str | None) -> None:
    """
    Refuse a new note that no search would show.

    Args:
        exclusion: As `exclusion_in` gives it.

    Raises:
        ConflictError: There is an exclusion.
    """
    if exclusion is not None:
        raise ConflictError(
            engine_text("{file} would not be shown: {reason}", file=file, reason=exclusion)
        )


def _is_database(status: os.stat_result, database: DatabaseLocation) -> bool:
    for suffix in ("", "-wal", "-shm") if isinstance(database, Path) else ():
        try:
            if os.path.samestat(status, os.stat(f"{database}{suffix}")):  # noqa: PTH116
                return True
        except OSError:
            continue  # there is none
    return False

"""
Writes and reads the files of an export, in a folder or in a ZIP archive.

An export may come from a stranger. Nothing of it is unpacked: a file is read by the name that is
expected, within limits, and no link is followed.
"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from qmd.errors import ConflictError, InputError, NotFoundError, StoreError
from qmd.system.beneath import READ, open_beneath
from qmd.system.temporary import temporary_beside

HEAD = "export.json"
COLLECTIONS = "collections.jsonl"
CONTEXTS = "contexts.jsonl"
CHANGES = "changes.jsonl"
REVISIONS = "revisions.jsonl"
CHATS = "conversations.jsonl"
SETTINGS = "settings.toml"
CONTENTS = "contents"
TURNS = "conversations"

FILES = frozenset(
    (HEAD, COLLECTIONS, CONTEXTS, CHANGES, REVISIONS, CHATS, SETTINGS, CONTENTS, TURNS)
)
"""The files and folders of an export."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The methods of compression that are read: all that exports of programs have."""

_HINT = "Give what 'qmd db export' wrote: a folder or a .zip file."


Put = Callable[[str, bytes], None]
"""Adds a file to an export; its name is relative, with ``/``."""

Read = Callable[[str, int], bytes | None]
"""
A file of an export by its name; None if there is none.

It raises InputError for a file that is longer than so many bytes, or cannot be read.
"""


@contextmanager
def writing(target: Path, *, force: bool) -> Iterator[Put]:
    """
    Write an export to a folder, or to an archive if the name ends in ``.zip``.

    It appears at the end, whole, and readable for its owner alone.

    Raises:
        ConflictError: The target exists, and ``force`` is false or it is no export.
        StoreError: It cannot be written.
    """
    is_archive = target.suffix.lower() == ".zip"
    _require_free(target, is_archive, force)
    temporary = temporary_beside(target)
    try:
        if is_archive:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with (
                os.fdopen(descriptor, "wb") as file,
                zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                yield archive.writestr
            temporary.replace(target)
        else:
            temporary.mkdir(mode=0o700)
            yield partial(_put_in_folder, temporary)
            with _replaced(target):
                temporary.rename(target)
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="Check the directory, its permissions and its free space.",
        ) from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


@contextmanager
def _replaced(folder: Path) -> Iterator[None]:
    """Move a folder aside while another takes its place, so that one of both is whole."""
    if not folder.exists():
        yield
        return
    aside = temporary_beside(folder.with_name(f"{folder.name}.old"))
    folder.rename(aside)
    try:
        yield
    except OSError:
        aside.rename(folder)
        raise
    shutil.rmtree(aside)


def _require_free(target: Path, is_archive: bool, force: bool) -> None:
    if not target.parent.is_dir():
        raise StoreError(f"There is no directory {target.parent}.", hint="Make it first.")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not force:
        raise ConflictError(
            f"{target} exists.", hint="Give another name, or --force to replace it."
        )
    names = _names_in_archive(target) if is_archive else _names_in_folder(target)
    others = sorted(names - FILES)
    if HEAD not in names or others:
        what = f"holds {others[0]!r}, too" if HEAD in names else "is no export"
        raise ConflictError(
            f"{target} exists and {what}, so it is not replaced.", hint="Give another name."
        )


def _names_in_folder(target: Path) -> set[str]:
    """What lies in a folder; nothing for a link, and for what is no folder."""
    if target.is_symlink() or not target.is_dir():
        return set()
    return set(os.listdir(target))  # noqa: PTH208 - only names


def _names_in_archive(target: Path) -> set[str]:
    """The first part of each name in an archive; none if it is no archive."""
    if not target.is_file():
        return set()
    try:
        with zipfile.ZipFile(target) as archive:
            return {name.partition("/")[0] for name in archive.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return set()


def _put_in_folder(root: Path, name: str, data: bytes) -> None:
    for folder in reversed(Path(name).parents):
        (root / folder).mkdir(mode=0o700, exist_ok=True)
    file = root / name
    file.write_bytes(data)
    file.chmod(0o600)


@contextmanager
def reading(path: Path) -> Iterator[Read]:
    """
    Read an export.

    Raises:
        NotFoundError: There is nothing at the path.
        InputError: It is neither a folder nor an archive.
    """
    if not path.exists():
        raise NotFoundError(f"There is no {path}.", hint=_HINT)
    if path.is_dir():
        yield partial(_read_in_folder, path)
        return
    if not path.is_file():
        raise InputError(f"{path} is neither a folder nor a file.", hint=_HINT)
    try:
        with zipfile.ZipFile(path) as archive:
            yield partial(_read_in_archive, archive, path)
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        raise InputError(f"{path} is no archive that can be read: {error}", hint=_HINT) from error


def _read_in_folder(root: Path, name: str, limit: int) -> bytes | None:
    try:
        descriptor = open_beneath(root, name, READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}") from error
    with os.fdopen(descriptor, "rb") as file:
        return _limited(file.read(limit + 1), name, limit)


def _read_in_archive(archive: zipfile.ZipFile, path: Path, name: str, limit: int) -> bytes | None:
    try:
        entry = archive.getinfo(name)
    except KeyError:
        return None
    if entry.compress_type not in METHODS:
        raise InputError(f"{name} in {path} is packed in a way that no export is.")
    try:
        with archive.open(entry) as file:
            return _limited(file.read(limit + 1), name, limit)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{name} in {path} is damaged or encrypted: {error}") from error


def _limited(data: bytes, name: str, limit: int) -> bytes:
    if len(data) > limit:
        raise InputError(f"{name} is longer than {limit:,} bytes, so it is no part of an export.")
    return data

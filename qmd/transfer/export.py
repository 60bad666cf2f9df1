"""
Writes what a knowledge base holds beside the files of the notes, and reads such an export.

docs/export.md describes the files. Vectors and documents are left out, because `qmd index` and `qmd
embed` make them again.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ConflictError, InputError, NotFoundError, StoreError
from qmd.system import clock
from qmd.system.beneath import READ, open_beneath
from qmd.system.temporary import private_file, temporary_beside
from qmd.values import transfer
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.store import Reader, Store


def content_name(digest: str) -> str:
    """The file that holds the content with this hash."""
    return f"{CONTENTS}/{digest[:2]}/{digest}"


def turns_name(chat_id: str) -> str:
    """The file with the turns of a conversation."""
    return f"{TURNS}/{chat_id}.jsonl"


def export(
    store: Store, target: Path, *, settings: bytes | None, version: str, force: bool
) -> transfer.ExportReport:
    """
    Write an export of one moment, while others may write.

    Args:
        settings: The content of ``config.toml``, if there is one. It holds no keys.
        version: The version of qmd.
        force: Replace an export that is there.

    Raises:
        ConflictError, StoreError: As `archive.writing`.
    """
    with writing(target, force=force) as files, store.reading() as reader:
        counted = _Counted(files)
        head = transfer.ExportHead("qmd export", transfer.EXPORT_VERSION, version, clock.now())
        counted.put(HEAD, json.dumps(to_wire(head), indent=1).encode() + b"\n")
        collections = [
            transfer.ExportedCollection(
                each.name, each.path, each.pattern, each.ignore, each.included, each.owner
            )
            for each in sorted(reader.collections.all(), key=lambda each: each.name)
        ]
        contexts = [
            transfer.ExportedContext(each.collection, each.prefix, each.text)
            for each in reader.contexts.all()
        ]
        counted.put_lines(COLLECTIONS, collections)
        counted.put_lines(CONTEXTS, contexts)
        changes = reader.revisions.kept_changes()
        counted.put_lines(CHANGES, changes)
        revisions, damaged = _export_revisions(reader, counted)
        chats = _export_chats(reader, counted)
        if settings is not None:
            counted.put(SETTINGS, settings)
    return transfer.ExportReport(
        str(target),
        counted.bytes,
        len(collections),
        len(contexts),
        len(changes),
        revisions,
        chats,
        settings is not None,
        damaged,
    )


class _Counted:
    """A target that counts the bytes."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self.bytes = 0

    def put(self, name: str, data: bytes) -> None:
        self._put(name, data)
        self.bytes += len(data)

    def put_lines(self, name: str, values: Iterable[object]) -> None:
        lines = (json.dumps(to_wire(value), ensure_ascii=False) for value in values)
        self.put(name, "".join(f"{line}\n" for line in lines).encode())


def _export_revisions(reader: Reader, target: _Counted) -> tuple[int, int]:
    """How many revisions were written, and how many have a damaged content and were not."""
    sound, damaged = [], 0
    written = set[str]()
    for revision in reader.revisions.kept_revisions():
        if revision.kind != "none" and revision.hash not in written:
            try:
                content = reader.revisions.content(revision.number)
            except (ValueError, TypeError, zlib.error):
                content = None
            if content is None:
                damaged += 1
                continue
            target.put(content_name(revision.hash), content)
            written.add(revision.hash)
        sound.append(revision)
    target.put_lines(REVISIONS, sound)
    return len(sound), damaged


def _export_chats(reader: Reader, target: _Counted) -> int:
    conversations = reader.conversations
    chats = list[transfer.ExportedChat]()
    for info in conversations.latest(limit=conversations.count()):
        summary = conversations.summary(info.id)
        about = (info.id, info.name, info.mode, info.created, info.updated)
        chats.append(transfer.ExportedChat(*about, *summary))
        target.put_lines(turns_name(info.id), conversations.turns(info.id))
    chats.sort(key=lambda chat: chat.id)
    target.put_lines(CHATS, chats)
    return len(chats)


# --- the files of an export -------------------------------------------------------------
# They lie in a folder or in a ZIP archive. An export may come from a stranger, so nothing of it is
# unpacked: a file is read by the name that is expected, within limits, and no link is followed.

HEAD = "export.json"
COLLECTIONS = "collections.jsonl"
CONTEXTS = "contexts.jsonl"
CHANGES = "changes.jsonl"
REVISIONS = "revisions.jsonl"
CHATS = "conversations.jsonl"
SETTINGS = "settings.toml"
CONTENTS = "contents"
TURNS = "conversations"

#: The files and folders of an export.
FILES = frozenset(
    (HEAD, COLLECTIONS, CONTEXTS, CHANGES, REVISIONS, CHATS, SETTINGS, CONTENTS, TURNS)
)

#: The methods of compression that are read: all that exports of programs have.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_HINT = "Give what 'qmd db export' wrote: a folder or a .zip file."


#: Adds a file to an export; its name is relative, with ``/``.
Put = Callable[[str, bytes], None]

#: A file of an export by its name; None if there is none.
#:
#: It raises InputError for a file that is longer than so many bytes, or cannot be read.
Read = Callable[[str, int], bytes | None]


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
            with (
                private_file(target) as file,
                zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                yield archive.writestr
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
        shutil.rmtree(temporary, ignore_errors=True)


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

"""Says which path a caller means to move a note to."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from qmd.engine_text import engine_text
from qmd.errors import InvalidPathError
from qmd.files.edits.note_editor import NotePlace
from qmd.files.vault import Vault, plain_path
from qmd.files.writing.policy import ResolvedPath
from qmd.files.writing.writer import is_other_case
from qmd.values.names import NOTE_SUFFIXES, fold


def new_place(vault: Vault, file: str, new_path: str) -> NotePlace:
    """
    The place that a new path means.

    A name without ``/`` renames the note in its folder. Other paths begin with the name of a
    collection, or at the root of the note's collection; ``qmd://`` and paths on the disk are taken,
    too. A folder (one that is there, or with ``/`` at the end) keeps the note's name. The suffix of
    the note may be left out.

    Args:
        file: ``collection/path`` of the note.

    Raises:
        InvalidPathError: No note can have this path, or it leads out of the collections.
    """
    collection, path = _place(vault, file, new_path)
    name = file.rpartition("/")[2]
    if not path or new_path.strip().endswith("/") or _is_folder(vault, collection, path):
        path = f"{path}/{name}" if path else name
    else:
        suffix = Path(name).suffix
        allowed = NOTE_SUFFIXES if fold(suffix) in NOTE_SUFFIXES else (fold(suffix),)
        if not fold(path).endswith(allowed):
            path += suffix
    new_file = f"{collection}/{path}"
    vault.check_new(new_file)
    return NotePlace(new_file, _located(vault, file, collection, path))


def _place(vault: Vault, file: str, new_path: str) -> tuple[str, str]:
    """Collection and path, without ``/`` around it and with single ones inside."""
    collection, _, old_path = file.partition("/")
    new_path = new_path.strip()
    if "\0" in new_path:  # which no function of the system takes
        raise InvalidPathError("Invalid path: contains a NUL character")
    if new_path.startswith("qmd://"):
        plain = plain_path(unquote(new_path.removeprefix("qmd://")))
        return _split(vault, plain, collection, is_whole=True)
    on_disk = Path(os.path.expanduser(new_path))  # noqa: PTH111
    if on_disk.is_absolute():
        absolute = Path(os.path.realpath(on_disk))
        for name, root in vault.roots.items():
            if absolute.is_relative_to(root):
                return name, _clean(absolute.relative_to(root).as_posix())
        top = on_disk.parts[1] if len(on_disk.parts) > 2 else ""
        if top and Path(on_disk.anchor, top).is_dir() and not _is_folder(vault, collection, top):
            # `/tmp/x.md`, where the collection has no folder `tmp`: a path on the disk.
            raise InvalidPathError(
                engine_text("{path} lies outside the collections.", path=new_path),
                hint="Begin with a collection, or at the root of the note's collection.",
            )
    plain = plain_path(new_path)
    if "/" not in new_path:
        folder = old_path.rpartition("/")[0]
        if not folder or (
            not _is_folder(vault, collection, f"{folder}/{plain}")
            and _is_folder(vault, collection, plain)
        ):
            return collection, _clean(plain)
        return collection, _clean(f"{folder}/{plain}")
    return _split(vault, plain, collection, is_whole=False)


def _split(vault: Vault, path: str, collection: str, *, is_whole: bool) -> tuple[str, str]:
    first, _, rest = path.partition("/")
    if first in vault.roots:
        return first, _clean(rest)
    if is_whole:
        raise InvalidPathError(engine_text("There is no collection {first}.", first=first))
    return collection, _clean(path)


def _clean(path: str) -> str:
    return "/".join(name for name in path.split("/") if name not in ("", "."))


def _is_folder(vault: Vault, collection: str, path: str) -> bool:
    # Unlike Path.is_dir, this takes a name that is too long for the disk.
    return os.path.isdir(vault.roots[collection].joinpath(path))  # noqa: PTH112


def _located(vault: Vault, file: str, collection: str, path: str) -> ResolvedPath:
    """Raises InvalidPathError."""
    written = vault.roots[collection].joinpath(path)
    place = vault.locate(f"{collection}/{path}")
    if os.path.islink(written):  # noqa: PTH114 (takes a name that is too long)
        # The link itself is in the way, wherever it leads.
        raise InvalidPathError(f"{collection}/{path} is a link that exists already.")
    old = vault.locate(file).target
    named = place.target.with_name(written.name)
    # Windows resolves a name to the one on the disk, which may differ in case.
    return ResolvedPath(place.root, named) if is_other_case(old, named) else place

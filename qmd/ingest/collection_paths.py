"""Find the collection and the relative path that a path given by a user means."""

# Path.resolve() fails where links lead in a circle, os.path.realpath() does not:
# ruff: noqa: PTH100, PTH111, PTH118, PTH119, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from qmd.engine_text import engine_text
from qmd.errors import CollectionNotFoundError, InputError
from qmd.values import Collection
from qmd.values.text import as_utf8


def context_location(path: str, collections: Sequence[Collection]) -> tuple[int | None, str]:
    """
    The collection's id (None: all collections) and the prefix below it.

    ``path`` is ``/``, ``qmd://collection/prefix``, a path on the disk, or ``collection/prefix``.

    Raises:
        CollectionNotFoundError, InputError.
    """
    if path.strip() == "/":
        return None, ""
    if path.startswith("qmd://") and not path.removeprefix("qmd://").strip("/"):
        return None, ""
    location = locate(path, collections)
    if location is None:
        if path.startswith("qmd://"):
            raise CollectionNotFoundError(_decoded(path).partition("/")[0])
        raise InputError(
            engine_text("{path} lies in no collection.", path=path),
            hint="Give a directory of a collection, qmd://NAME, or /. GET /collections lists them;"
            " in the shell 'qmd collection list' does.",
        )
    collection, prefix = location
    return collection.id, prefix


def locate(path: str, collections: Sequence[Collection]) -> tuple[Collection, str] | None:
    """
    The collection that a path means, and the path relative to its root ("" for the root).

    ``path`` is ``qmd://collection/relative``, or a path on the disk, or ``collection/relative``
    where no such path is on the disk.
    """
    name = _decoded(path) if path.startswith("qmd://") else path.strip("/")
    first, _, rest = name.partition("/")
    named = next(((c, rest.strip("/")) for c in collections if c.name == first), None)
    if path.startswith("qmd://"):
        return named
    if named is not None and not path.startswith("/") and not _on_disk(path):
        return named
    return _below_collection(path, collections) or named


def candidate_files(path: str, collections: Sequence[Collection]) -> list[Path]:
    """
    The files, existing or not, that a path may mean, with all links followed: the file of the
    collection in ``qmd://collection/relative`` or ``collection/relative``, and the one on the
    disk.

    Raises:
        CollectionNotFoundError: A ``qmd://`` path names no collection.
        InputError: No file can have that name.
    """
    location = locate(path, collections)
    if path.startswith("qmd://") and location is None:
        raise CollectionNotFoundError(_decoded(path).partition("/")[0])
    candidates = [] if location is None else [os.path.join(location[0].path, location[1])]
    if not path.startswith("qmd://"):
        candidates.append(os.path.expanduser(path))
    try:
        files = [os.path.realpath(candidate) for candidate in candidates]
        "".join(files).encode()
    except (OSError, ValueError) as error:  # NUL; bytes that are no UTF-8
        raise InputError(
            engine_text("Not a usable path: {path}", path=as_utf8(path)), hint="Check the name."
        ) from error
    return [Path(file) for file in dict.fromkeys(files)]


def _decoded(uri: str) -> str:
    return unquote(uri.removeprefix("qmd://")).strip("/")


def _on_disk(path: str) -> bool:
    try:
        return os.path.lexists(os.path.expanduser(path))
    except ValueError:
        return False


def _below_collection(
    path: str, collections: Sequence[Collection]
) -> tuple[Collection, str] | None:
    """The innermost collection that contains a path on the disk, and the path relative to it."""
    try:
        absolute = os.path.abspath(os.path.expanduser(path))
        # First the path as written: a user may ask about a link inside the collection.
        spellings = (
            absolute,
            os.path.join(os.path.realpath(os.path.dirname(absolute)), os.path.basename(absolute)),
            os.path.realpath(absolute),
        )
    except (OSError, ValueError):
        return None
    for spelling in map(Path, spellings):
        for collection in sorted(collections, key=lambda c: (-len(c.path), c.name)):
            root = Path(collection.path)
            if spelling == root:
                return collection, ""
            if spelling.is_relative_to(root):
                return collection, spelling.relative_to(root).as_posix()
    return None

"""Names and paths that people give: of a new collection, of a context."""

# Path.resolve() fails where links lead in a circle, os.path.realpath() does not:
# ruff: noqa: PTH100, PTH111, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from qmd.errors import CollectionNotFoundError, InputError, NotFoundError
from qmd.ingest.rules import Rules
from qmd.ingest.scan import printable
from qmd.system.surrogates import is_utf8, shown
from qmd.values import Collection

#: What would be taken for something else in collection/path, qmd://…, #docid or a list.
_BAD = re.compile(r"[/\\,#?*\[\]{}\x00-\x1f\x7f]")
MAX_NAME = 100
#: Characters of what is said about a place; each hit below it carries the text.
MAX_CONTEXT = 10_000
#: Ignore options of one collection, and the characters of each and of a mask.
MAX_IGNORE, MAX_GLOB = 1000, 4096


class NewCollection(NamedTuple):
    name: str
    path: str


def new_collection(
    path: str | Path, name: str | None, mask: str, ignore: Sequence[str]
) -> NewCollection:
    """
    Check what a new collection is to be.

    Raises:
        NotFoundError: There is no such directory.
        InputError: It is no directory or cannot be read, or the name or a mask is bad.
    """
    try:
        root = Path(path).expanduser().resolve()
        is_directory, exists = root.is_dir(), root.exists()
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(f"Not a usable path: {path!s} ({error})") from error
    if not exists:
        raise NotFoundError(
            f"There is no directory {root}", hint="Check the spelling, or make it first."
        )
    if not is_directory:
        raise InputError(
            f"{root} is a file, not a directory.",
            hint="Give the directory that holds it, and choose files with --mask.",
        )
    try:
        next(root.iterdir(), None)
    except OSError as error:
        raise InputError(
            f"The directory {root} cannot be read: {error.strerror}",
            hint="Check its permissions.",
        ) from error
    if not is_utf8(str(root)):
        raise InputError(
            f"The directory's path is no valid UTF-8: {printable(str(root))}",
            hint="Rename the directory.",
        )
    if len(ignore) > MAX_IGNORE or any(len(each) > MAX_GLOB for each in (mask, *ignore)):
        raise InputError(
            f"At most {MAX_IGNORE:,} ignore options, and {MAX_GLOB:,} characters for each and for "
            "the mask, are possible.",
            hint="Put a longer list into a file .qmdignore in the directory.",
        )
    Rules(root, mask, ignore)
    if name is None:
        name = _BAD.sub("-", root.name).lstrip(" -~")[:MAX_NAME].strip() or "root"
    check_name(name)
    return NewCollection(name, str(root))


def check_name(name: str) -> None:
    """Raises InputError for a name that could not be written as ``name/path``."""
    if not name.strip() or name in {".", ".."} or name != name.strip() or len(name) > MAX_NAME:
        raise InputError(
            f"Not a usable collection name: {name!r}",
            hint=f"Use 1 to {MAX_NAME} characters without blanks around them.",
        )
    if _BAD.search(name) or name.startswith(("~", "-")) or not is_utf8(name):
        raise InputError(
            f"Not a usable collection name: {name!r}",
            hint=r"Leave out / \ , # ? * [ ] { } and control characters; begin with a letter.",
        )


def check_context_text(text: str) -> None:
    """Raises InputError."""
    if not text.strip():
        raise InputError(
            "The context's text is blank.", hint="Say in a sentence what lies below the path."
        )
    if len(text) > MAX_CONTEXT:
        raise InputError(
            f"The context's text has {len(text):,} characters, more than {MAX_CONTEXT:,}.",
            hint="Say in a sentence what lies below the path; put the rest into a note.",
        )


def context_place(path: str, collections: Sequence[Collection]) -> tuple[int | None, str]:
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
    place = find(path, collections)
    if place is None:
        if path.startswith("qmd://"):
            raise CollectionNotFoundError(_decoded(path).partition("/")[0])
        raise InputError(
            f"{path} lies in no collection.",
            hint="Give a directory of a collection ('qmd collection list'), qmd://NAME, or /.",
        )
    collection, prefix = place
    return collection.id, prefix


def find(path: str, collections: Sequence[Collection]) -> tuple[Collection, str] | None:
    """
    The collection that a path means, and the place below it ("" for all of it).

    ``path`` is ``qmd://collection/place``, or a path on the disk, or ``collection/place``
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


def files_meant(path: str, collections: Sequence[Collection]) -> list[Path]:
    """
    The files, there or not, that a path may mean, all links followed: that of the collection
    in ``qmd://collection/place`` or ``collection/place``, and the one on the disk.

    Raises:
        CollectionNotFoundError: A ``qmd://`` path names none.
        InputError: No file can have that name.
    """
    place = find(path, collections)
    if path.startswith("qmd://") and place is None:
        raise CollectionNotFoundError(_decoded(path).partition("/")[0])
    found = [] if place is None else [os.path.join(place[0].path, place[1])]
    if not path.startswith("qmd://"):
        found.append(os.path.expanduser(path))
    try:
        files = [os.path.realpath(each) for each in found]
        "".join(files).encode()
    except (OSError, ValueError) as error:  # NUL; bytes that are no UTF-8
        raise InputError(f"Not a usable path: {shown(path)}", hint="Check the name.") from error
    return [Path(each) for each in dict.fromkeys(files)]


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
    """The innermost collection that a path on the disk lies in, and its place there."""
    try:
        given = os.path.abspath(os.path.expanduser(path))
        # As it is named first: a link inside the collection is itself the question.
        spellings = (
            given,
            os.path.join(os.path.realpath(os.path.dirname(given)), os.path.basename(given)),
            os.path.realpath(given),
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

"""
Check the name, directory, mask and ignore options of a new collection, and context texts.

And count the files that it would hold, before it is added.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from qmd.engine_text import engine_text
from qmd.errors import ConflictError, InputError, NotFoundError
from qmd.ingest.rules import Rules
from qmd.ingest.scan import Scan, ScannedFile, printable
from qmd.system import cancellation
from qmd.values.reports import CollectionPreview
from qmd.values.text import UNSAFE, is_utf8

if TYPE_CHECKING:
    from qmd.values import Collection

#: Characters that mean something else in collection/path, qmd://…, #docid or a list.
_RESERVED = re.compile(rf"[/\\,#?*\[\]{{}}\t\n]|{UNSAFE}")
MAX_NAME = 100
#: Characters of a context's text; each hit below the context's path carries the text.
MAX_CONTEXT = 10_000
#: Ignore options of one collection.
MAX_IGNORE = 1000
#: Characters of a mask or of one ignore option.
MAX_GLOB = 4096
_EXAMPLES = 8


class NewCollection(NamedTuple):
    """A checked name and the absolute path of the directory."""

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
    if not str(path).strip():  # a variable of a script that is not set; else this directory
        raise InputError("The path is empty.", hint="Give a directory; '.' is this one.")
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
    check_globs(mask, ignore)
    Rules(root, mask, ignore)
    if name is None:
        name = _RESERVED.sub("-", root.name).lstrip(" -~")[:MAX_NAME].strip() or "root"
    check_name(name)
    return NewCollection(name, str(root))


def refuse_known_folder(
    new: NewCollection, mask: str, ignore: Sequence[str], collections: Sequence[Collection]
) -> None:
    """
    Refuse a folder that is a collection of the same name already.

    Raises:
        ConflictError: It is one; the error says what differs, and the command that changes it.
    """
    for each in collections:
        if (each.name, each.path) != (new.name, new.path):
            continue
        changes = []
        if mask != each.pattern:
            changes.append(f"--mask {shlex.quote(mask)}")
        if list(ignore) != list(each.ignore):
            changes += [f"--ignore {shlex.quote(pattern)}" for pattern in ignore] or ["--no-ignore"]
        now = f"with the mask '{each.pattern}'"
        if each.ignore:
            now += " and ignore patterns " + ", ".join(f"'{pattern}'" for pattern in each.ignore)
        raise ConflictError(
            f"{each.path} is the collection '{each.name}' already, {now}.",
            hint=f"Change it: qmd collection set {shlex.quote(each.name)} {' '.join(changes)}"
            if changes
            else "POST /index brings it up to date; in the shell 'qmd index' does.",
        )


def overlap_notice(path: str | Path, collections: Sequence[Collection]) -> str | None:
    """What follows where a new collection's folder is, holds or lies in that of another one."""
    folder = Path(path).expanduser().resolve()
    around = {folder, *folder.parents}
    names = [
        f"'{each.name}'"
        for each in sorted(collections, key=lambda collection: collection.name)
        # An owner's folder lies on another machine.
        if not each.owner and (Path(each.path) in around or folder in Path(each.path).parents)
    ]
    if not names:
        return None
    shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    return engine_text(
        "This folder shares files with {names}. Searches show each file once, from the "
        "collection whose folder lies deepest, or that was added first; -c NAME asks "
        "for another one.",
        names=shown,
    )


def check_globs(mask: str, ignore: Sequence[str] = ()) -> None:
    """Raises InputError if a mask or the ignore options are too long."""
    if len(ignore) > MAX_IGNORE or any(len(each) > MAX_GLOB for each in (mask, *ignore)):
        raise InputError(
            f"At most {MAX_IGNORE:,} ignore options, and {MAX_GLOB:,} characters for each and for "
            "the mask, are possible.",
            hint="Put a longer list into a file .qmdignore in the directory.",
        )


def check_name(name: str) -> None:
    """Raises InputError for a name that could not be written as ``name/path``."""
    if not name.strip() or name in {".", ".."} or name != name.strip() or len(name) > MAX_NAME:
        raise InputError(
            f"Not a usable collection name: {name!r}",
            hint=f"Use 1 to {MAX_NAME} characters without blanks around them.",
        )
    if _RESERVED.search(name) or name.startswith(("~", "-")) or not is_utf8(name):
        raise InputError(
            f"Not a usable collection name: {name!r}",
            hint=r"Leave out / \ , # ? * [ ] { } and control characters; begin with a letter.",
        )


def check_context_text(text: str) -> None:
    """Raises InputError."""
    if not is_utf8(text):
        raise InputError("The context's text is no valid UTF-8.", hint="Type it again.")
    if not text.strip():
        raise InputError(
            "The context's text is blank.", hint="Say in a sentence what lies below the path."
        )
    if len(text) > MAX_CONTEXT:
        raise InputError(
            f"The context's text has {len(text):,} characters, more than {MAX_CONTEXT:,}.",
            hint="Say in a sentence what lies below the path; put the rest into a note.",
        )


class _TimeUpError(Exception):
    """Ends the scan."""


def preview(
    path: str | Path,
    name: str | None,
    mask: str,
    ignore: Sequence[str],
    *,
    budget_s: float,
) -> CollectionPreview:
    """
    Scan a directory by the rules of a new collection, for at most ``budget_s`` seconds.

    Raises:
        NotFoundError, InputError: As `new_collection` says.
    """
    new = new_collection(path, name, mask, ignore)
    root = Path(new.path)
    deadline = monotonic() + budget_s

    def check_time() -> None:
        cancellation.check()
        if monotonic() > deadline:
            raise _TimeUpError

    scan = Scan(root, Rules(root, mask, ignore), at_folder=check_time)
    files = size = skipped = 0
    examples: list[str] = []
    is_complete = True
    try:
        for item in scan:
            if isinstance(item, ScannedFile):
                files += 1
                size += item.state.bytes
                if len(examples) < _EXAMPLES:
                    examples.append(item.path)
            else:
                skipped += 1
    except _TimeUpError:
        is_complete = False
    return CollectionPreview(
        name=new.name,
        path=new.path,
        files=files,
        bytes=size,
        examples=tuple(examples),
        excluded=dict(sorted(scan.excluded.items())),
        skipped=skipped,
        is_complete=is_complete,
    )

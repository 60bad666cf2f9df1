"""
Where files lie: a user's settings, databases, log and cache, and what is kept for a database.

The cache is not ``~/.cache/qmd``, where tobi/qmd keeps its index and its models: a person may use
both programs, and delete the cache of one. qmd 1.3 and earlier kept models there; they are moved.

What programs keep for a database, as the record of the server and locks, lies beside its file. That
for a database on another machine lies in the user's directory of state, under a name made from its
URL.
"""

# `os` is used instead of Path, because every command calls this:
# ruff: noqa: PTH111, PTH112, PTH117, PTH118

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qmd import libraries
from qmd.errors import InputError

if TYPE_CHECKING:
    from qmd.values.location import DatabaseLocation

Kind = Literal["config", "data", "state", "cache"]

_NAMES: dict[Kind, str] = {"config": "qmd", "data": "qmd", "state": "qmd", "cache": "qmd-python"}
_DEFAULTS: dict[Kind, str] = {
    "config": ".config",
    "data": ".local/share",
    "state": ".local/state",
    "cache": ".cache",
}
#: The directory of the cache up to version 1.3, beside the present one.
_OLD_CACHE = "qmd"
#: What qmd itself kept there: the built-in model, and what was downloaded from a hub.
_OLD_MODELS = "multilingual-e5-small-int8-"
_OLD_DOWNLOADS = "fastembed"


def user_dir(kind: Kind, environ: Mapping[str, str] | None = None) -> Path:
    """
    The user's directory of one kind, the same as in platformdirs.

    The first call for the cache moves models there that version 1.3 or earlier has kept.
    """
    environ = os.environ if environ is None else environ
    directory = _directory(kind, _NAMES[kind], environ)
    if kind == "cache" and not os.path.isdir(directory):
        _move_models(_directory(kind, _OLD_CACHE, environ), directory)
    return Path(directory)


def named_database(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """
    The database of this name beside the default one, as ``--index`` names it.

    Raises:
        InputError: It is not a valid file name.
    """
    if not name or name.startswith(".") or any(character in name for character in "/\\\0"):
        raise InputError(
            f"Not a name for an index: {name!r}",
            hint="--index takes a plain name such as 'work'; a path goes to --db.",
        )
    return user_dir("data", environ) / f"{name}.sqlite"


def moved_directories(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that name other directories than those that a user has without them."""
    environ = os.environ if environ is None else environ
    home = os.path.expanduser("~")
    defaults = {f"XDG_{kind.upper()}_HOME": place for kind, place in _DEFAULTS.items()}
    return {
        name: environ[name]
        for name, place in defaults.items()
        if os.path.isabs(environ.get(name, ""))
        and os.path.normpath(environ[name]) != os.path.join(home, place)
    }


def _directory(kind: Kind, name: str, environ: Mapping[str, str]) -> str:
    """On Linux without platformdirs, whose import takes as long as a whole search."""
    if sys.platform == "linux" and "ANDROID_DATA" not in environ:
        base = environ.get(f"XDG_{kind.upper()}_HOME", "").strip()
        if not os.path.isabs(base):  # the XDG rule: a relative path is ignored
            base = os.path.join(os.path.expanduser("~"), _DEFAULTS[kind])
        return os.path.join(base, name)
    return str(getattr(libraries.platformdirs, f"user_{kind}_dir")(name, appauthor=False))


def _move_models(old: str, new: str) -> None:
    """
    Move the models of qmd from the old cache to the new one; all else in the old one stays.

    The new directory appears at once with all models. If they cannot be moved, to another disk for
    example, they stay, and are built or downloaded again.
    """
    places = [*Path(old, "models").glob(f"{_OLD_MODELS}*"), *Path(old).glob(_OLD_DOWNLOADS)]
    if not places:
        return
    temporary = Path(f"{new}.{os.getpid()}")
    moves = [(place, temporary / place.relative_to(old)) for place in places]
    try:
        (temporary / "models").mkdir(parents=True)
        for place, target in moves:
            place.rename(target)
        temporary.rename(new)
    except OSError:  # another process is at it, or the directory is read-only
        for place, target in moves:
            if target.exists():
                target.rename(place)
        libraries.shutil.rmtree(temporary, ignore_errors=True)


def is_missing(database: DatabaseLocation) -> bool:
    """Whether there is no such file. Of a server only opening it tells."""
    return isinstance(database, Path) and not database.exists()


def is_writable(database: DatabaseLocation) -> bool:
    """Whether this user may write the file. Of a server only writing tells."""
    return not isinstance(database, Path) or os.access(database, os.W_OK)


def file_beside(database: DatabaseLocation, suffix: str) -> Path:
    """
    The path of the file ``<database><suffix>``.

    For a database on a server the directory is made, readable for this user alone. The password
    is no part of the name, so that it may change.
    """
    if isinstance(database, Path):
        return database.with_name(database.name + suffix)
    folder = user_dir("state") / "databases"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = libraries.hashlib.sha256(str(database).encode()).hexdigest()[:16]
    return folder / f"{name}{suffix}"


def lock_beside(database: DatabaseLocation, suffix: str) -> Path:
    """As `file_beside`, but the same for all links to a database file."""
    if isinstance(database, Path):
        database = Path(os.path.realpath(database))
    return file_beside(database, suffix)


def lock_mode(database: DatabaseLocation) -> int:
    """The mode of a lock file: those who may use the database may take the lock, nobody else."""
    try:
        shared = database.stat().st_mode & 0o666 if isinstance(database, Path) else 0
    except OSError:  # there is none yet
        shared = 0
    return 0o600 | shared

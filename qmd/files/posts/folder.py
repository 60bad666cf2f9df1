"""
The archive's folder: ``author/motions/post.md``, ``author/album/post.md``.

No link is followed, and nothing whose name begins with a dot counts (``.assets``).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from qmd.errors import ArchiveNotFoundError, QmdError, UnreadablePostsError
from qmd.ingest import scan
from qmd.ingest.scan import is_vanished
from qmd.system.beneath import scandir_beneath, walk_beneath
from qmd.values import FileState, Post
from qmd.values.names import post_name
from qmd.values.printable import one_line

MOTIONS = "motions"
SUFFIX = ".md"


def require(directory: Path) -> Path:
    """
    The absolute path of an archive; ``directory`` is as a person gave it.

    Raises:
        ArchiveNotFoundError: There is no such directory.
        UnreadablePostsError: It cannot be read.
    """
    try:
        archive = directory.expanduser().absolute()
        with os.scandir(archive):
            return archive
    except (OSError, ValueError, RuntimeError) as error:
        raise unusable(directory, error) from error


def unusable(directory: Path, error: Exception) -> QmdError:
    """The error for a directory that cannot be listed."""
    if isinstance(error, OSError) and not is_vanished(error):
        return UnreadablePostsError("archive", str(directory), str(error.strerror))
    return ArchiveNotFoundError(str(directory))


def folders(root: Path, path: str = "") -> list[str]:
    """The folders in a directory of an archive, by their bytes. Raises OSError."""
    with scandir_beneath(root, path) as entries:
        return _in_order(
            each.name for each in entries if _counts(each) and each.is_dir(follow_symlinks=False)
        )


def files(root: Path, path: str) -> list[str]:
    """The posts directly in a directory of an archive, by their bytes. Raises OSError."""
    with scandir_beneath(root, path) as entries:
        return _in_order(
            each.name
            for each in entries
            if _counts(each) and each.name.endswith(SUFFIX) and each.is_file(follow_symlinks=False)
        )


def states(root: Path, authors: Iterable[str], unread: list[str]) -> dict[str, FileState]:
    """
    Path → state of the posts of these authors at any depth, in no order.

    What cannot be looked at is added to ``unread``.
    """
    states_by_path: dict[str, FileState] = {}

    def failed(path: str, error: OSError) -> None:
        if not is_vanished(error):
            unread.append(printable(path))

    for author in authors:
        for folder, entries in walk_beneath(root, author, _counts, failed):
            for entry in filter(_counts, entries):
                if entry.name.endswith(SUFFIX) and not entry.is_dir(follow_symlinks=False):
                    path = f"{folder}/{entry.name}"
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError as error:
                        failed(path, error)
                        continue
                    if stat.S_ISREG(status.st_mode):
                        states_by_path[path] = scan.file_state(status)
    return states_by_path


def _counts(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".")


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=os.fsencode)


# --- names of posts ------------------------------------------------------------------


def printable(path: str) -> str:
    """
    A path or name on one line, so that no file name can add a line to a list of posts: a line end
    becomes ``\\n`` and the like. `PostArchive.read` accepts this form as well.
    """
    return one_line(scan.printable(path))


def post_at(path: str) -> Post:
    """
    The post that a file name describes: ``author/album/YYYY-MM-DD[_HH_MM_SS]_title.md``.

    A name of any other form has no date and is a title as a whole.
    """
    path = printable(path)
    stem = path.rpartition("/")[2].removesuffix(SUFFIX)
    name = post_name(stem)
    return Post(path, None, stem) if name is None else Post(path, name.day, name.title)

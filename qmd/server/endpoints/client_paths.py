"""
Checks the paths on the disk that a client sends.

They must be absolute, because a client does not know the server's working directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from qmd.errors import InputError
from qmd.values import Collection, encode_uri


def require_absolute(path: str) -> None:
    """
    Check that a path is absolute; a path that begins with ``~`` counts as absolute.

    Raises:
        InputError: The path is blank or relative.
    """
    if not is_absolute(path):
        raise InputError(
            f"The path must be an absolute path, got {path!r}.",
            hint="Give the directory as the server's machine knows it, such as /home/me/notes.",
        )


def is_absolute(path: str) -> bool:
    return path.startswith("~") or Path(path).is_absolute()


def context_path(path: str, collections: Iterable[Collection]) -> str:
    """
    The path of a context in the form that `KnowledgeBase.add_context` takes.

    Raises:
        InputError: The path is neither absolute nor in a collection.
    """
    if path.startswith("qmd://") or is_absolute(path):
        return path
    file = path.strip("/")  # collection/prefix
    if any(collection.name == file.partition("/")[0] for collection in collections):
        return encode_uri(file)
    raise InputError(
        f"The path must be an absolute path or begin with a collection, got {path!r}.",
        hint="Give an absolute path, qmd://COLLECTION/PREFIX, or / for all documents.",
    )

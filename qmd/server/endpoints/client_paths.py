"""
Paths on the disk that a client names: never relative to the server's working directory, of which
the client knows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from qmd.errors import InputError
from qmd.values import Collection, encode_uri


def require_absolute(path: str) -> None:
    """Raises InputError: It is blank or relative (``~`` counts as absolute)."""
    if not is_absolute(path):
        raise InputError(
            f"The path must be an absolute path, got {path!r}.",
            hint="Give the directory as the server's machine knows it, such as /home/me/notes.",
        )


def is_absolute(path: str) -> bool:
    return path.startswith("~") or Path(path).is_absolute()


def context_path(path: str, collections: Iterable[Collection]) -> str:
    """
    The path of a context as `KnowledgeBase.add_context` takes it.

    Raises:
        InputError: It is neither absolute nor in a collection.
    """
    if path.startswith("qmd://") or is_absolute(path):
        return path
    inside = path.strip("/")
    if any(collection.name == inside.partition("/")[0] for collection in collections):
        return encode_uri(inside)
    raise InputError(
        f"The path must be an absolute path or begin with a collection, got {path!r}.",
        hint="Give an absolute path, qmd://COLLECTION/PREFIX, or / for all documents.",
    )

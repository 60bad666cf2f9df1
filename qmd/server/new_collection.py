"""Adds a collection for a client, who may add only directories that the write policy opens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qmd.engine_text import engine_text
from qmd.errors import InputError, NotFoundError
from qmd.kb import KnowledgeBase
from qmd.server.endpoints.client_paths import require_absolute
from qmd.values import Collection


def permitted_directory(kb: KnowledgeBase, path: str) -> Path:
    """
    The directory that a client names, with all links followed.

    Raises:
        InputError: The path is relative.
        OutsideRootsError: The policy does not open it: it lies below no write root, is the whole
            disk, hidden, or belongs to the system.
    """
    require_absolute(path)
    return kb.policy.new_collection(path)


def add_collection(
    kb: KnowledgeBase,
    directory: Path,
    *,
    name: str | None,
    mask: str,
    ignore: Sequence[str] = (),
) -> Collection:
    """
    Add a `permitted_directory` as a collection; `KnowledgeBase.index` fills it.

    Raises:
        InputError: There is no such directory, or the name or mask is not valid.
        ConflictError: A collection of that name exists.
    """
    try:
        added = kb.add_collection(directory, name=name, mask=mask, ignore=ignore)
    except NotFoundError as error:  # the directory is missing, not the resource of the URL
        raise InputError(error.message, hint=error.hint) from error
    if added.path != str(directory):  # a link replaced the directory after the check
        kb.remove_collection(added.name)
        raise InputError(
            engine_text("{directory} was replaced while it was added.", directory=directory),
            hint="Try again.",
        )
    return added

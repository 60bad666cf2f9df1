"""
The paths that a client sends: on the disk, and of files in an address.

Those on the disk must be absolute, because a client does not know the server's working directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from starlette.convertors import PathConvertor, register_url_convertor

from qmd.engine_text import engine_text
from qmd.errors import InputError, NotFoundError
from qmd.kb import KnowledgeBase
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


# --- in an address --------------------------------------------------------------------


class FilePath(PathConvertor):
    """
    The part of an address that is the path of a file, as routes name it: ``{file:file}``.

    It takes any text. Starlette's own ``path`` takes none with a line break, which names may have.
    """

    regex = "(?s:.*)"


FILE_PATH = "file"

register_url_convertor(FILE_PATH, FilePath())

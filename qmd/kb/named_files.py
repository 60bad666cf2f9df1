"""The files that a name of a person may mean: paths, and all other names of documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import ingest
from qmd.errors import QmdError
from qmd.search import lookup

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import DocumentInfo


def document_without_file(reader: Reader, name: str) -> DocumentInfo | None:
    """
    The document with a name that is not the path of an existing file; None without one.

    Raises:
        AmbiguousNameError: Several documents have the name.
    """
    try:
        files = ingest.collection_paths.candidate_files(name, reader.collections.all())
    except QmdError:  # no collection is called so, or no file can be
        files = []
    return None if any(map(os.path.lexists, files)) else lookup.resolve.find_document(reader, name)


def files_with_history(reader: Reader, name: str) -> list[Path]:
    """
    The files, existing or not, that a name may mean, the likeliest first, all links followed.

    A path of a file that exists, or that has revisions, is never taken for another name.

    Raises:
        CollectionNotFoundError: A ``qmd://`` path names no collection.
        InputError: No file can have that name.
        AmbiguousNameError: Several documents have the name, and no file has this path.
    """
    files = ingest.collection_paths.candidate_files(name, reader.collections.all())
    if any(os.path.lexists(file) or reader.revisions.history(str(file)) for file in files):
        return files
    document = lookup.resolve.find_document(reader, name)
    if document is None:
        return files
    root = reader.collections.by_name(document.collection).path
    return [Path(os.path.realpath(Path(root, document.path))), *files]

"""Choose the document that a name means among those that have it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from qmd.errors import AmbiguousNameError
from qmd.values import DocumentInfo
from qmd.values.names import fold, name_key, without_note_suffix

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.documents import DocumentName

_NOTE_SUFFIX = re.compile(r"(?<=[^/])\.(?:md|markdown)\Z", re.IGNORECASE)

#: Smaller is better; None is no match at all.
_Rank = tuple[int, ...]


def best_named(
    reader: Reader,
    name: str,
    lookup: Callable[[Iterable[str]], list[DocumentName]],
    *,
    is_whole: bool = False,
) -> DocumentInfo | None:
    """
    The document that a name means; None if none has it.

    Args:
        name: Without slashes at its ends.
        lookup: Returns the names with one of some keys: `Documents.with_file_names` for the end of
            a path, `Documents.with_other_names` for aliases and titles.
        is_whole: Whether the name is a whole ``collection/path``, not the end of one.

    Raises:
        AmbiguousNameError: Several documents have it, and none of them is a better match.
    """
    whole = fold(" ".join(name.split()))
    end = fold(name.rpartition("/")[2])
    keys = dict.fromkeys((whole, without_note_suffix(whole), end, name_key(name)))
    ranked: dict[_Rank, dict[int, DocumentName]] = {}
    for candidate in lookup(keys):
        rank = (_file_rank if candidate.kind == "file name" else _rank)(name, candidate)
        if rank is not None and not (is_whole and rank[1]):
            ranked.setdefault(rank, {})[candidate.document_id] = candidate
    if not ranked:
        return None
    best = ranked[min(ranked)]
    if len(best) > 1:
        kept = innermost(reader, ((each, best[each].collection, best[each].path) for each in best))
        best = {each: best[each] for each in best if each in kept}
    if len(best) > 1:
        files = sorted(f"{candidate.collection}/{candidate.path}" for candidate in best.values())
        raise AmbiguousNameError(name, files)
    [document_id] = best
    return reader.documents.by_id(document_id)


def innermost(reader: Reader, places: Iterable[tuple[int, str, str]]) -> set[int]:
    """
    The ids of documents without those of a file that another one is of, too.

    Of the documents of one file the one whose collection lies deepest stays, as in a search.

    Args:
        places: The id, the collection and the path of each document.
    """
    collections = {each.name: each for each in reader.collections.all()}
    by_file: dict[tuple[str, str], tuple[int, int, int]] = {}
    for document_id, name, path in places:
        collection = collections[name]
        folder = collection.path.rstrip(os.sep)
        deeper = (-len(folder), collection.id, document_id)
        file = (collection.owner, f"{folder}/{path}")
        by_file[file] = min(by_file.get(file, deeper), deeper)
    return {document_id for _, _, document_id in by_file.values()}


def _file_rank(name: str, candidate: DocumentName) -> _Rank | None:
    """
    How well a name fits the end of a file's path.

    First the exact spelling counts; then that it is the whole ``collection/path``, or the whole
    path, before the end of a path; then that ``.md`` is not left out.
    """
    file = f"{candidate.collection}/{candidate.path}"
    folded_name, folded_file = fold(name), fold(file)
    omits_suffix = not f"/{folded_file}".endswith(f"/{folded_name}")
    if omits_suffix:
        folded_file = without_note_suffix(folded_file)
        if not f"/{folded_file}".endswith(f"/{folded_name}"):
            return None
        file = _NOTE_SUFFIX.sub("", file)
    is_folded = not f"/{file}".endswith(f"/{name}")
    if folded_file == folded_name:
        place = 0
    else:
        place = 1 if folded_file == f"{fold(candidate.collection)}/{folded_name}" else 2
    return (is_folded, place, omits_suffix)


def _rank(name: str, candidate: DocumentName) -> _Rank | None:
    """How well a name fits an alias or a title: an alias first, then the exact spelling counts."""
    folded = fold(" ".join(name.split()))
    if fold(candidate.name) not in (folded, without_note_suffix(folded)):
        return None
    return (candidate.kind == "title", candidate.name != name)

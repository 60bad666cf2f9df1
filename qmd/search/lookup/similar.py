"""Suggests names that are like one that nothing has: what was typed, or a broken link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest, nsmallest
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from qmd.system import cancellation
from qmd.values.text import are_alike, fold, name_key, without_note_suffix

if TYPE_CHECKING:
    from qmd.store import Reader

SUGGESTIONS = 3
#: Names with a lower similarity (0..1) are not suggested.
ALIKE = 0.6
#: A name of more characters gets no suggestions. No path is longer, and the time of a comparison
#: grows with the length.
MAX_NAME = 4096
#: A part of a name of fewer characters is similar to too many names.
SHORTEST_PART = 3
#: Names of so many documents are kept in memory: 40 MB.
MANY = 50_000
#: Among more documents, names are compared for this many seconds, so many at a time.
LOOKING_S = 1.5
AT_ONCE = 20_000
#: After this many comparisons of names, broken links get no nearest name any more.
MOST_COMPARED = 1_000_000


class _Names(NamedTuple):
    """
    Folded names of one kind, and the ``collection/path`` of the document of each.

    ``of_name``: whether a name to compare is the last part of the path that was typed.
    ``of_files``: whether they are names of files, not titles and aliases.
    """

    names: list[str]
    files: list[str]
    of_name: bool
    of_files: bool = True


class SimilarNames:
    """
    Suggests names from one snapshot; reads them once, for the first suggestion.

    Args:
        most: Only this many calls of `like` give suggestions (None: all do).
        many: Among more documents than this, names are not kept in memory, and only the last
            part of a path is compared with file names, titles and aliases.
    """

    def __init__(self, reader: Reader, *, most: int | None = None, many: int = MANY) -> None:
        self._many = many
        self._reader = reader
        self._kinds: list[_Names] | None = None
        self._remaining_calls = most

    def like(self, name: str) -> list[str]:
        """
        List up to three documents with similar names, the most similar first (Levenshtein).

        Paths are compared, file names, titles and aliases; a longer one that contains the name is
        similar, too.
        """
        name = name.removeprefix("qmd://").strip()
        if not name or len(name) > MAX_NAME or self._remaining_calls == 0:
            return []
        if self._remaining_calls is not None:
            self._remaining_calls -= 1
        path = fold(name).strip("/")
        if self._reader.full_text.document_count() > self._many:
            return _like_among_many(self._reader, path)
        base = path.rpartition("/")[2]
        scores: dict[str, float] = {}
        for kind in self._read():
            for typed in dict.fromkeys(
                (base, without_note_suffix(base)) if kind.of_name else [path]
            ):
                for file, score in _nearest(typed, kind):
                    if not kind.of_files or _may_be_meant(path, name_key(file)):
                        scores[file] = max(scores.get(file, 0.0), score)
        ranked = sorted(scores, key=lambda file: (-scores[file], file))
        return ranked[:SUGGESTIONS]

    def _read(self) -> list[_Names]:
        if self._kinds is None:
            places = self._reader.documents.places()
            files = [f"{collection}/{path}" for _, collection, path in places]
            others = self._reader.documents.other_names()
            whole = [fold(file) for file in files]
            bases = [file.rpartition("/")[2] for file in whole]
            stems = [_stem(base) for base in bases]
            self._kinds = [
                _Names(whole, files, of_name=False),
                _Names([file.partition("/")[2] for file in whole], files, of_name=False),
                _Names(bases, files, of_name=True),
                _Names(stems, files, of_name=True),
                _Names(
                    [fold(name) for _, name in others],
                    [file for file, _ in others],
                    of_name=True,
                    of_files=False,
                ),
            ]
        return self._kinds


def _like_among_many(reader: Reader, path: str) -> list[str]:
    """As `SimilarNames.like`; reads the names once, and looks no longer than `LOOKING_S`."""
    end = monotonic() + LOOKING_S
    typed = path.rpartition("/")[2]
    suffix = typed[len(without_note_suffix(typed)) :]  # the names that are read have none
    scores: dict[int, float] = {}
    names = reader.documents.name_keys()
    while (batch := list(islice(names, AT_ONCE))) and monotonic() < end:
        for position, score in _best_of(typed, [key + suffix for key, _ in batch], of_name=True):
            key, document_id = batch[position]
            if _may_be_meant(path, key):
                scores[document_id] = max(scores.get(document_id, 0.0), score)
        best_ids = nlargest(SUGGESTIONS * 4, scores, key=lambda each: scores[each])
        scores = {document_id: scores[document_id] for document_id in best_ids}
    files = {each.file: scores[each.id] for each in reader.documents.by_ids(list(scores))}

    def rank(file: str) -> tuple[float, float, str]:
        return -files[file], Levenshtein.normalized_distance(path, fold(file)), file

    return sorted(files, key=rank)[:SUGGESTIONS]


def _may_be_meant(path: str, key: str) -> bool:
    """Whether the name of a document may be the last name of the path that was typed."""
    typed = name_key(path)
    return typed in key or are_alike(typed, key) or are_alike(typed, _stem(key))


def _stem(name: str) -> str:
    """A name of a file without its suffix."""
    return name.rpartition(".")[0] or name


def _nearest(name: str, kind: _Names) -> Iterator[tuple[str, float]]:
    """The files of the most similar names, with their similarity from 0 to 1."""
    for position, score in _best_of(name, kind.names, of_name=kind.of_name):
        yield kind.files[position], score


def _best_of(
    name: str, names: Sequence[str], *, of_name: bool, limit: int = SUGGESTIONS
) -> Iterator[tuple[int, float]]:
    """The positions of the most similar names, with their similarity from 0 to 1."""
    cancellation.check()
    matches = process.extract(
        name,
        names,
        scorer=Levenshtein.normalized_similarity,
        score_cutoff=ALIKE,
        limit=limit if limit == 1 else 2 * limit,
    )
    for _, score, position in matches:
        yield position, score
    if not of_name or len(name) < SHORTEST_PART:
        return
    longer = ((len(each), position) for position, each in enumerate(names) if name in each)
    for length, position in nsmallest(limit, longer):
        yield position, ALIKE * len(name) / length


def similar_anchors(anchor: str, anchors: Iterable[str]) -> list[str]:
    """The headings or blocks that are most like one that a document lacks."""
    nearest = process.extract(
        anchor.casefold(),
        list(dict.fromkeys(anchors)),
        scorer=Levenshtein.normalized_similarity,
        processor=str.casefold,
        limit=SUGGESTIONS,
    )
    return [each for each, _, _ in nearest]


class NearestNames:
    """
    Finds the name most like that in a broken link, among the names of one collection.

    Names are titles, aliases and file names; they are read once.
    """

    def __init__(self, reader: Reader, collection: str) -> None:
        self._reader = reader
        self._collection = collection
        self._names: list[str] = []
        self._paths: list[str] | None = None
        self._nearest: dict[str, str | None] = {}
        self._compared = 0

    def to(self, path: str) -> str | None:
        """``collection/path`` of the file with the name most like that in a link, if any is."""
        key = name_key(path)
        if key not in self._nearest:
            self._nearest[key] = self._find(key)
        return self._nearest[key]

    def _find(self, key: str) -> str | None:
        if not key or len(key) > MAX_NAME or self._compared >= MOST_COMPARED:
            return None
        if self._paths is None:
            pairs = sorted(self._reader.graph.names(self._collection))
            self._names = [name for name, _ in pairs]
            self._paths = [path for _, path in pairs]
        self._compared += len(self._names)
        for position, _ in _best_of(key, self._names, of_name=True, limit=1):
            return f"{self._collection}/{self._paths[position]}"
        return None

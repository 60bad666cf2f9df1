"""Suggest document names that are similar to a name that no document has."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from qmd.system import cancellation
from qmd.values.names import fold, without_note_suffix

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


class _Names(NamedTuple):
    """
    Folded names of one kind, and the ``collection/path`` of the document of each.

    ``of_name``: whether a name to compare is the last part of the path that was typed.
    """

    names: list[str]
    files: list[str]
    of_name: bool


class SimilarNames:
    """
    Suggests names from one snapshot; reads them once, for the first suggestion.

    Args:
        most: Only this many calls of `like` give suggestions (None: all do).
    """

    def __init__(self, reader: Reader, *, most: int | None = None) -> None:
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
        base = path.rpartition("/")[2]
        scores: dict[str, float] = {}
        for kind in self._read():
            for typed in dict.fromkeys(
                (base, without_note_suffix(base)) if kind.of_name else [path]
            ):
                for file, score in _nearest(typed, kind):
                    scores[file] = max(scores.get(file, 0.0), score)
        ranked = sorted(scores, key=lambda file: (-scores[file], file))
        return ranked[:SUGGESTIONS]

    def _read(self) -> list[_Names]:
        if self._kinds is None:
            files = self._reader.documents.file_names()
            others = self._reader.documents.other_names()
            whole = [fold(file) for file in files]
            bases = [file.rpartition("/")[2] for file in whole]
            stems = [without_note_suffix(base) for base in bases]
            self._kinds = [
                _Names(whole, files, of_name=False),
                _Names([file.partition("/")[2] for file in whole], files, of_name=False),
                _Names(bases, files, of_name=True),
                _Names(stems, files, of_name=True),
                _Names(
                    [fold(name) for _, name in others], [file for file, _ in others], of_name=True
                ),
            ]
        return self._kinds


def _nearest(name: str, kind: _Names) -> Iterator[tuple[str, float]]:
    """The files of the most similar names, with their similarity from 0 to 1."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    cancellation.check()
    matches = process.extract(
        name,
        kind.names,
        scorer=Levenshtein.normalized_similarity,
        score_cutoff=ALIKE,
        limit=SUGGESTIONS * 2,
    )
    for _, score, position in matches:
        yield kind.files[position], score
    if not kind.of_name or len(name) < SHORTEST_PART:
        return
    longer = [
        (len(name) / len(each), kind.files[position])
        for position, each in enumerate(kind.names)
        if name in each
    ]
    for share, file in nlargest(SUGGESTIONS, longer):
        yield file, ALIKE * share

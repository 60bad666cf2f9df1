"""Suggest document names that are similar to a name that no document has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from qmd.system import cancellation

if TYPE_CHECKING:
    from qmd.store import Reader

SUGGESTIONS = 3
#: Names with a lower similarity (0..1) are not suggested.
ALIKE = 0.6
#: A name of more characters gets no suggestions. No path is longer, and the time of a comparison
#: grows with the length.
MAX_NAME = 4096


class _Names(NamedTuple):
    """
    Names of all documents. Position i of each list is about the same document.

    Attributes:
        files: ``collection/path``.
        whole: The same, without letter case.
        paths: The path, without letter case.
        bases: The last part of the path, without letter case.
    """

    files: list[str]
    whole: list[str]
    paths: list[str]
    bases: list[str]


class SimilarNames:
    """
    Suggests names from one snapshot; reads them once, for the first suggestion.

    Args:
        most: Only this many calls of `like` give suggestions (None: all do).
    """

    def __init__(self, reader: Reader, *, most: int | None = None) -> None:
        self._reader = reader
        self._names: _Names | None = None
        self._remaining_calls = most

    def like(self, name: str) -> list[str]:
        """List up to three documents with similar names, the most similar first (Levenshtein)."""
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein

        name = name.removeprefix("qmd://").strip().casefold()
        if not name or len(name) > MAX_NAME or self._remaining_calls == 0:
            return []
        if self._remaining_calls is not None:
            self._remaining_calls -= 1
        names = self._read()
        base = name.rpartition("/")[2]
        scores: dict[str, float] = {}
        for query, choices in ((name, names.whole), (name, names.paths), (base, names.bases)):
            cancellation.check()
            matches = process.extract(
                query,
                choices,
                scorer=Levenshtein.normalized_similarity,
                score_cutoff=ALIKE,
                limit=SUGGESTIONS * 2,
            )
            for _, score, position in matches:
                file = names.files[position]
                scores[file] = max(scores.get(file, 0.0), score)
        ranked = sorted(scores, key=lambda file: (-scores[file], file))
        return ranked[:SUGGESTIONS]

    def _read(self) -> _Names:
        if self._names is None:
            files = self._reader.documents.file_names()
            whole = [file.casefold() for file in files]
            paths = [file.partition("/")[2] for file in whole]
            bases = [file.rpartition("/")[2] for file in whole]
            self._names = _Names(files, whole, paths, bases)
        return self._names

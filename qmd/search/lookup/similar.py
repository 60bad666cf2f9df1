"""Names of documents that are like a name nobody has: "did you mean"."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from qmd.system import cancellation

if TYPE_CHECKING:
    from qmd.store import Reader

SUGGESTIONS = 3
#: Names less alike than this (0..1) are no suggestion.
ALIKE = 0.6
#: Characters; no path is longer, and comparing takes time that grows with the length.
MAX_NAME = 4096


class _Names(NamedTuple):
    """Of every document ``collection/path``, and what a name is compared with, in lower case."""

    files: list[str]
    whole: list[str]
    paths: list[str]
    bases: list[str]


class SimilarNames:
    """
    The names of all documents in one snapshot, read once, when the first suggestion is asked for.

    Args:
        most: So many names get suggestions, the later ones none (None: all do).
    """

    def __init__(self, reader: Reader, *, most: int | None = None) -> None:
        self._reader = reader
        self._names: _Names | None = None
        self._left = most

    def like(self, name: str) -> list[str]:
        """At most three documents whose names are like this one, nearest first (Levenshtein)."""
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein

        name = name.removeprefix("qmd://").strip().casefold()
        if not name or len(name) > MAX_NAME or self._left == 0:
            return []
        if self._left is not None:
            self._left -= 1
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

"""The existing name that is most like the name in a broken link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.search.lookup.similar import ALIKE, MAX_NAME, SHORTEST_PART
from qmd.system import cancellation
from qmd.values.names import name_key

if TYPE_CHECKING:
    from qmd.store import Reader

#: After this many comparisons of names, links get no nearest name any more.
MOST_COMPARED = 1_000_000


class NearestNames:
    """Finds names among the titles, aliases and file names of one collection; reads them once."""

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
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein

        if not key or len(key) > MAX_NAME or self._compared >= MOST_COMPARED:
            return None
        cancellation.check()
        if self._paths is None:
            pairs = sorted(self._reader.graph.names(self._collection))
            self._names = [name for name, _ in pairs]
            self._paths = [path for _, path in pairs]
        self._compared += len(self._names)
        best = process.extractOne(
            key, self._names, scorer=Levenshtein.normalized_similarity, score_cutoff=ALIKE
        )
        position = self._shortest_with(key) if best is None else best[2]
        return None if position is None else f"{self._collection}/{self._paths[position]}"

    def _shortest_with(self, key: str) -> int | None:
        """The position of the shortest name that contains the key, as "Did you mean" has it."""
        if len(key) < SHORTEST_PART:
            return None
        longer = (place for place, name in enumerate(self._names) if key in name)
        return min(longer, key=lambda place: len(self._names[place]), default=None)

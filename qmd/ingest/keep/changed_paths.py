"""Paths that changed, gathered until the disk comes to rest."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from time import monotonic

#: An editor saves in several steps, and a checkout touches hundreds of files.
QUIET_S = 0.1
#: A file that never rests is looked at so often.
LONGEST_S = 0.5
#: More paths of one collection than this, and they are one: the root.
MOST_PATHS = 2000


class ChangedPaths:
    """
    From the threads that watch to the one that indexes. Thread-safe.

    A path is relative to its collection's root; "" means that anything may have changed.
    """

    def __init__(self, quiet_s: float = QUIET_S, longest_s: float = LONGEST_S) -> None:
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._condition = threading.Condition()
        self._paths: dict[int, set[str]] = {}
        self._first = self._last = 0.0
        self._woken = False

    def add(self, collection_id: int, paths: Iterable[str]) -> None:
        with self._condition:
            known = self._paths.setdefault(collection_id, set())
            known.update(paths)
            if len(known) > MOST_PATHS:
                known.clear()
                known.add("")
            self._last = monotonic()
            if not self._first:
                self._first = self._last
            self._condition.notify_all()

    def take(self, timeout_s: float) -> dict[int, set[str]]:
        """
        Collection id → paths, once nothing came for 100 ms (or half a second has passed since
        the first came); nothing after ``timeout_s`` or `wake`, what has come stays then.
        """
        deadline = monotonic() + timeout_s
        with self._condition:
            while not self._woken:
                now = monotonic()
                ready = deadline
                if self._paths:
                    ready = min(self._last + self._quiet_s, self._first + self._longest_s)
                    if ready <= now:
                        paths, self._paths, self._first = self._paths, {}, 0.0
                        return paths
                if now >= deadline:
                    return {}
                self._condition.wait(min(ready, deadline) - now)
            self._woken = False
            return {}

    def wake(self) -> None:
        """Let the next or running `take` return at once."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def __len__(self) -> int:
        with self._condition:
            return sum(map(len, self._paths.values()))

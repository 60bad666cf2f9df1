"""Gather the changed paths of a burst of file events until the burst ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from time import monotonic

#: A burst ends after this many seconds without an event. An editor saves in several steps, and a
#: checkout writes hundreds of files.
QUIET_S = 0.1
#: A burst ends after this many seconds at the latest, because some files are written all the time.
LONGEST_S = 0.5
#: If one collection has more changed paths than this, its root replaces them.
MOST_PATHS = 2000


class ChangedPaths:
    """
    Passes changed paths from the threads that watch to the thread that indexes. Thread-safe.

    A path is relative to the root of its collection; "" says that any file may have changed.
    """

    def __init__(
        self,
        quiet_s: float = QUIET_S,
        longest_s: float = LONGEST_S,
        *,
        on_burst: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_burst``: called at the first path of a burst, on the thread that adds it."""
        self._on_burst = on_burst
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._condition = threading.Condition()
        self._paths: dict[int, set[str]] = {}
        self._first = self._last = 0.0
        self._woken = False

    def add(self, collection_id: int, paths: Iterable[str]) -> None:
        """Add changed paths of a collection."""
        with self._condition:
            gathered = self._paths.setdefault(collection_id, set())
            gathered.update(paths)
            if len(gathered) > MOST_PATHS:
                gathered.clear()
                gathered.add("")
            self._last = monotonic()
            is_first = not self._first
            if is_first:
                self._first = self._last
            self._condition.notify_all()
        if is_first:
            self._on_burst()

    def take(self, timeout_s: float) -> dict[int, set[str]]:
        """
        Wait for the end of a burst, and return its paths.

        Returns:
            Collection id → paths; empty if `wake` was called or ``timeout_s`` seconds have passed.
            The paths gathered so far then stay for the next call.
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
        """Make the running `take`, or the next one, return at once."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def __len__(self) -> int:
        with self._condition:
            return sum(map(len, self._paths.values()))

"""Gather the common words of a large database in the background, after its index has changed."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from qmd.errors import DatabaseReplacedError, QmdError
from qmd.ingest.keep.background_embedding import lower_priority

if TYPE_CHECKING:
    from qmd.store import Store

_log = logging.getLogger(__name__)

#: Seconds of work between two looks whether to stop.
TURN_S = 0.5
#: Seconds that `stop` waits for the current word.
PATIENCE_S = 5.0


class BackgroundGathering:
    """A thread of low priority that calls `Store.gather_common_words` until nothing is left."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qmd-words", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Tell the thread that the index has changed."""
        self._woken.set()

    def stop(self) -> None:
        """End the thread after the current word, or after `PATIENCE_S`."""
        self._stop.set()
        self._woken.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        lower_priority()
        while self._woken.wait() and not self._stop.is_set():
            self._woken.clear()
            try:
                while not self._stop.is_set() and self._store.gather_common_words(TURN_S):
                    pass
            except DatabaseReplacedError:
                return  # the keeper notices it too, and ends this thread
            except QmdError as error:  # searches go on without; the next change tries again
                _log.warning("gathering common words failed: %s", error)
            except Exception as error:  # noqa: BLE001 - logged and tried again
                _log.exception("gathering common words failed: %s", type(error).__name__)

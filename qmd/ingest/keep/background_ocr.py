"""Read the text in pictures in the background, one page at a time, in a worker process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from qmd.ingest import ocr
from qmd.ingest.events import EventBus
from qmd.ingest.keep.freshness import KeeperState
from qmd.ingest.keep.loop import Loop, LoopStopped
from qmd.values.pictures import Recogniser

if TYPE_CHECKING:
    from qmd.store import Store

#: Seconds between two looks without a wake-up. Another process may have stored a document, and
#: memory may be free again.
LOOK_S = 30.0
#: The first and the longest wait after a failure, in seconds.
FIRST_RETRY_S, LONGEST_RETRY_S = 10.0, 300.0
#: Seconds that `stop` waits. A page is given up; others read it later.
PATIENCE_S = 5.0


class BackgroundOcr(Loop):
    """
    A loop that reads the pictures that wait, if this machine can.

    Its work begins with `wake`, when documents have changed. `stop` ends it at once.
    """

    def __init__(
        self, store: Store, events: EventBus, state: KeeperState, recogniser: Recogniser
    ) -> None:
        self._store = store
        self._events = events
        self._recogniser = recogniser
        super().__init__(
            "qmd-ocr",
            self._look,
            "The text in pictures is not read",
            partial(state.tell, "ocr"),
            every_s=LOOK_S,
            retry_s=(FIRST_RETRY_S, LONGEST_RETRY_S),
            patience_s=PATIENCE_S,
        )

    def _look(self) -> str | None:
        with self._store.reading() as reader:
            waiting = reader.pictures.count_waiting(self._recogniser.name)
        if not waiting or not ocr.is_installed(self._recogniser):  # 'qmd status' says so
            return None
        trouble = ocr.problem(self._recogniser)
        if trouble is not None:
            return str(trouble)
        ocr.read_pictures(self._store, self._recogniser, events=self._events, check=self._check)
        return None

    def _check(self) -> None:
        if self.stopping.is_set():
            raise LoopStopped

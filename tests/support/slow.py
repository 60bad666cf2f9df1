"""A knowledge base whose searches, and readings of several documents, never end by themselves."""

from __future__ import annotations

import threading
from typing import Any

from qmd import KnowledgeBase
from qmd.values import SearchReply, SearchRequest
from qmd.values.search import SearchCommand

WAIT_S = 60
"""Long enough for a busy machine; nothing ever waits for it to pass."""

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


class SlowKnowledgeBase(KnowledgeBase):
    """``begun`` is released once for each such call that runs."""

    begun = threading.Semaphore(0)

    def run_search(self, command: SearchCommand, request: SearchRequest) -> SearchReply:
        return self._endless()

    def multi_get(self, pattern: str, **options: Any) -> Any:
        return self._endless()

    def _endless(self) -> Any:
        with self._store.reading() as reader:
            self.begun.release()
            reader.connection.execute(ENDLESS).fetchone()
        raise AssertionError("it has ended")

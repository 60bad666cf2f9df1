"""How far the index is behind the disk: the keeper's own account, and what others read of it."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any, Literal

from qmd.ingest.keep.lock import is_locked
from qmd.system import clock
from qmd.values import Freshness

if TYPE_CHECKING:
    from qmd.store import Store

#: The entry of ``meta`` in which the leader tells the other processes.
KEY = "keeper"


class KeeperState:
    """What a keeper knows of itself. Any thread may ask and tell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.leader = False
        self.last_sync: str | None = None
        self.indexing = False
        self.files_pending = 0
        self.watch: Literal["native", "polling", "off"] = "off"
        self.directories_watched = 0
        self.embeds = False
        self._notices: dict[str, str] = {}
        self._recorded: str | None = None

    def synced(self) -> str:
        """The index is as the disk: now."""
        self.last_sync = clock.now()
        return self.last_sync

    def notice(self, topic: str, sentence: str | None) -> bool:
        """What is wrong with a topic, None for nothing; whether that is new."""
        with self._lock:
            before = self._notices.pop(topic, None)
            if sentence is not None:
                self._notices[topic] = sentence
            return sentence != before

    @property
    def notices(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._notices.values())

    @property
    def embedding(self) -> bool:
        """Whether missing vectors are being made, now or as soon as text comes."""
        with self._lock:
            return self.embeds and "embedding" not in self._notices

    def record(self, store: Store, waiting: int = 0) -> None:
        """Tell the other processes, if there is anything new."""
        values = {
            "pid": os.getpid(),
            "last_sync": self.last_sync,
            "files_pending": self.files_pending + waiting,
            "indexing": self.indexing,
            "watch": self.watch,
            "embeds": self.embedding,
            "notices": self.notices,
        }
        text = json.dumps(values, ensure_ascii=False)
        if text != self._recorded:
            store.write(lambda writer: writer.meta.put(KEY, text))
            self._recorded = text

    def forget_record(self) -> None:
        """Another process may have written its own meanwhile."""
        self._recorded = None


def read(
    store: Store,
    own: KeeperState | None = None,
    waiting: int = 0,
    *,
    embeddings_pending: int | None = None,
) -> Freshness:
    """``own``: of the keeper in this process, with the changed paths it has not looked at."""
    with store.reading() as reader:
        text = reader.meta.get(KEY)
        if embeddings_pending is None:
            embeddings_pending = reader.upkeep.count_documents_waiting()
        last_run = reader.collections.last_indexed_at()
    if own is not None and own.leader:
        return Freshness(
            last_sync=_later(own.last_sync, last_run if own.last_sync else None),
            files_pending=own.files_pending + waiting,
            embeddings_pending=embeddings_pending,
            indexing=own.indexing,
            leader=True,
            watch=own.watch,
            notices=own.notices,
            embedding=own.embedding,
        )
    told = recorded(text)
    # A leader that was killed could not say that it is gone.
    alive = told.get("watch", "off") != "off" and is_locked(store.path)
    return Freshness(
        last_sync=_later(told.get("last_sync"), last_run),
        files_pending=told.get("files_pending", 0) if alive else 0,
        embeddings_pending=embeddings_pending,
        indexing=alive and told.get("indexing", False),
        leader=False,
        watch=told["watch"] if alive else "off",
        notices=tuple(told.get("notices", ())) if alive else (),
        embedding=alive and told.get("embeds", False),
    )


def unknown(problem: str) -> Freshness:
    """For a database that cannot be asked; ``problem`` is a sentence."""
    return Freshness(
        last_sync=None,
        files_pending=0,
        embeddings_pending=0,
        indexing=False,
        leader=False,
        notices=(problem,),
    )


def recorded(text: str | None) -> dict[str, Any]:
    """The leader's last record; empty if there is none or another version wrote it."""
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def keeper_pid(store: Store) -> int | None:
    """The process that keeps the index just now, if one does."""
    if not is_locked(store.path):
        return None
    with store.reading() as reader:
        pid = recorded(reader.meta.get(KEY)).get("pid")
    return pid if isinstance(pid, int) else None


def _later(one: str | None, two: str | None) -> str | None:
    return max(filter(None, (one, two)), default=None)

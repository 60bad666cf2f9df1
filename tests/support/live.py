"""A knowledge base that keeps itself, and waiting for what it tells."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from qmd import KnowledgeBase, Settings
from qmd.ingest.events import Event
from qmd.ingest.keep.keeper import Keeper
from tests.support.embedder import HashEmbedder

WAIT_S = 60.0
"""For a busy machine; nothing ever waits for it to pass."""


def _has_events() -> bool:
    if sys.platform != "linux":
        return True
    from watchdog.observers import inotify_c

    return hasattr(inotify_c, "InotifyFD")


#: Ask a keeper for it where there are no events, and no notice tells of that.
POLLING = not _has_events()
WATCH = "polling" if POLLING else "native"
needs_events = pytest.mark.skipif(
    POLLING, reason="native events need watchdog 7 on Linux, and that Python 3.11"
)


class Told:
    """Every event, and a way to wait for one that is still to come."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._condition = threading.Condition()
        self.events: list[Event] = []
        kb.events.subscribe(self._add)

    def _add(self, event: Event) -> None:
        with self._condition:
            self.events.append(event)
            self._condition.notify_all()

    def of(self, *kinds: str, since: int = 0) -> list[Event]:
        return [event for event in self.events[since:] if event.kind in kinds]

    def wait_for(self, condition: Callable[[], object], what: str = "") -> None:
        """Until a condition holds; looked at after each event. Fails after a minute."""
        with self._condition:
            held = self._condition.wait_for(condition, WAIT_S)
        assert held, (what, [(e.kind, e.file, e.message) for e in self.events[-20:]])


def until(condition: Callable[[], object], what: str = "") -> None:
    """For what no event tells: another process's doings."""
    end = monotonic() + WAIT_S
    pause = threading.Event()
    while not condition():
        assert monotonic() < end, what
        pause.wait(0.02)


def put(path: Path, text: str) -> None:
    """Make or replace a file at once: whoever follows the disk never sees it empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


class Kept:
    """One folder of notes under a keeper."""

    def __init__(self, kb: KnowledgeBase, root: Path, told: Told, keeper: Keeper) -> None:
        self.kb = kb
        self.root = root
        self.told = told
        self.keeper = keeper

    def files(self) -> list[str]:
        return [document.path for document in self.kb.documents("notes")]

    def settles_as(self, *files: str) -> None:
        """Wait until the index holds these documents and no others."""
        self.told.wait_for(lambda: self.files() == sorted(files), f"{files} != {self.files()}")

    def finds(self, word: str, *files: str) -> None:
        """Wait until a search finds the word in these documents only."""

        def found() -> bool:
            hits = self.kb.search(f'"{word}"', limit=None).hits
            return sorted(hit.file for hit in hits) == [f"notes/{file}" for file in sorted(files)]

        self.told.wait_for(found, f"{word} in {files}")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def ids(self) -> dict[str, int]:
        with self.kb._store.reading() as reader:
            return dict(reader.connection.execute("SELECT path, id FROM documents").fetchall())


@contextmanager
def kept(
    home: Path, files: dict[str, str] | None = None, *, embed: bool = False, polling: bool = False
) -> Iterator[Kept]:
    """A new database with the collection ``notes``, synced once."""
    root = home / "notes"
    root.mkdir(parents=True)
    for name, text in (files or {}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    with KnowledgeBase.open(
        home / "kb.sqlite", Settings(embedder=HashEmbedder()), create=True
    ) as kb:
        kb.add_collection(root, name="notes")
        told = Told(kb)
        keeper = kb.keep(embed=embed, polling=polling or POLLING, poll_s=0.1)
        told.wait_for(lambda: told.of("synced"))
        yield Kept(kb, root, told, keeper)

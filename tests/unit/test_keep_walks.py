"""A walk through a large collection makes way for the files that people save meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.ingest.events import Event, EventBus
from qmd.ingest.keep.freshness import KeeperState
from qmd.ingest.keep.maintain import MOST_INTERRUPTED, KeeperOptions, Maintenance
from qmd.ingest.keep.watch import ChangedPaths
from qmd.store import open_store

#: A walk looks for changes after each thousand.
FILES = 1_001


@pytest.mark.parametrize("saves", [1, MOST_INTERRUPTED + 3])
def test_what_was_saved_meanwhile_is_indexed_first(tmp_path: Path, saves: int) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:04}.md").write_text("old")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(folder, name="notes")
    store = open_store(tmp_path / "kb.sqlite")
    with store.reading() as reader:
        (collection,) = reader.collections.all()
    changes = ChangedPaths(quiet_s=0.0)
    stop = threading.Event()
    added: list[str] = []

    def save() -> None:
        (folder / f"{len(added)} saved.md").write_text("new")
        changes.add(collection.id, [f"{len(added)} saved.md"])

    def heed(event: Event) -> None:
        if event.kind == "added":
            added.append(event.path or "")
            if len(added) < saves:
                save()
        elif event.kind == "synced":
            stop.set()

    events = EventBus()
    events.subscribe(heed)
    save()
    options = KeeperOptions(watch=False, embed=False)
    state = KeeperState(events)
    Maintenance(store, events, state, changes, options, stop, lambda: None, lambda: True).run()
    store.close()

    first = min(saves, MOST_INTERRUPTED)
    assert added[:first] == [f"{number} saved.md" for number in range(first)]
    assert len(added) == len(set(added)) == FILES + saves

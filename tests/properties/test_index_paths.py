"""Indexing the paths that changed leaves what a fresh index of everything would hold."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from qmd.ingest.collection_indexer import CollectionIndexer
from qmd.ingest.keep.watch import PollingWatch
from qmd.ingest.rules import Rules
from tests.properties.test_index_state_machine import Files, folders
from tests.support.dump import Dump, assert_sound, dump

pytestmark = pytest.mark.unmeasured  # many examples of what unit tests take


class ChangedPaths(Files):
    """As the machine of whole runs, with a watch that says which paths changed."""

    embed = None  # it runs over the whole, behind the watch's back

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[str] = {""}

    def collect(self) -> set[str]:
        collection = self.kb.collection("notes")
        if not hasattr(self, "watch"):
            rules = Rules(self.root, collection.pattern, collection.ignore)
            self.watch = PollingWatch(self.root, rules, self.changed.update, 0.0)
        self.watch.look()
        paths = set(self.changed)
        self.changed.clear()
        return paths

    @rule()
    def index(self, verify: bool = False) -> None:
        paths = self.collect()
        if paths:
            CollectionIndexer(self.kb._store, self.kb.collection("notes")).run_paths(paths)
        assert without_counts(dump(self.database)) == without_counts(dump(self.fresh()))
        assert_sound(self.database)

    @rule(data=st.data(), folder=folders, name=st.sampled_from(["moved.md", "away.md"]),
          late=st.booleans())  # fmt: skip
    def a_moved_document_keeps_its_ids(  # type: ignore[override]
        self, data: st.DataObject, folder: str, name: str, late: bool
    ) -> None:
        self.index()
        before = self.ids()
        target = self.place("/".join(filter(None, (folder, name))))
        if not before or target is None or target.exists() or target.is_symlink():
            return
        old = data.draw(st.sampled_from(sorted(before)))
        (self.root / old).rename(target)
        new = target.relative_to(self.root).as_posix()
        if late:  # the event of the old place comes after that of the new one
            CollectionIndexer(self.kb._store, self.kb.collection("notes")).run_paths([new])
        self.index()
        after = self.ids()
        (number, digest), _ = before[old]
        texts = [identity[1] for identity, _ in before.values()]
        if new in after and texts.count(digest) == 1:  # else a rule leaves out the new place
            assert after[new][0] == (number, digest)


def without_counts(found: Dump) -> Dump:
    """What the rules leave out is counted by whole runs only."""
    return {table: rows for table, rows in found.items() if table != "collections"}


TestChangedPaths = ChangedPaths.TestCase
TestChangedPaths.settings = settings(
    deadline=None,
    max_examples=settings().max_examples // 2,
    stateful_step_count=14,
    suppress_health_check=list(HealthCheck),
)

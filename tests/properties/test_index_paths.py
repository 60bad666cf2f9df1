"""Indexing the paths that changed leaves what a fresh index of everything would hold."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule

from qmd.ingest.indexer import CollectionIndexer
from qmd.ingest.rules import Rules
from qmd.ingest.watch import PollWatch
from tests.properties.test_index_state_machine import Files
from tests.support.dump import Dump, dump


class ChangedPaths(Files):
    """As the whole-collection machine, with a watch that says which paths changed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[str] = {""}

    def collect(self) -> set[str]:
        collection = self.kb.collection("notes")
        if not hasattr(self, "watch"):
            rules = Rules(self.root, collection.pattern, collection.ignore)
            self.watch = PollWatch(self.root, rules, self.changed.update, 0.0)
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


def without_counts(found: Dump) -> Dump:
    """What the rules leave out is counted by whole runs only."""
    return {table: rows for table, rows in found.items() if table != "collections"}


TestChangedPaths = ChangedPaths.TestCase
TestChangedPaths.settings = settings(
    deadline=None,
    max_examples=30,
    stateful_step_count=14,
    suppress_health_check=list(HealthCheck),
)

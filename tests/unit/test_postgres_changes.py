"""Each process with a database on a server is told what the others change."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import DatabaseUnreachableError
from qmd.ingest.events import Event
from qmd.store import open_store
from qmd.store.postgres.processes import ChangedDocument, ChangeFeed
from qmd.store.postgres.store import PostgresStore
from qmd.values.location import ServerDatabase
from tests.support.embedder import HashEmbedder
from tests.support.live import put
from tests.support.postgres import PostgresServer

WAIT_S = 20.0
NOW_S = 0.0


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    put(tmp_path / "notes" / "a.md", "# A\n")
    put(tmp_path / "notes" / "b.md", "# B\n")
    return tmp_path / "notes"


@pytest.fixture
def kb(notes: Path, postgres_database: ServerDatabase) -> Iterator[KnowledgeBase]:
    """The process that changes documents."""
    with KnowledgeBase(open_store(postgres_database)) as kb:
        kb.add_collection(notes)
        yield kb


@pytest.fixture
def feed(postgres_database: ServerDatabase) -> Iterator[ChangeFeed]:
    """What another process is told."""
    store = open_store(postgres_database)
    assert isinstance(store, PostgresStore)
    with closing(store), closing(store.change_feed()) as feed:
        assert feed.next(NOW_S) == []  # it tells what happens from now on
        yield feed


def test_changes_come_in_the_order_of_their_commits(
    kb: KnowledgeBase, notes: Path, feed: ChangeFeed
) -> None:
    kb.index()
    assert set(feed.next(WAIT_S)) == {
        ChangedDocument("added", "notes", "a.md"),
        ChangedDocument("added", "notes", "b.md"),
    }
    put(notes / "a.md", "# A\n\nmore\n")
    kb.index()
    (notes / "b.md").rename(notes / "c.md")
    kb.index()
    assert feed.next(WAIT_S) == [
        ChangedDocument("updated", "notes", "a.md"),
        ChangedDocument("moved", "notes", "c.md", "b.md"),
    ]
    kb.rename_collection("notes", "pages")
    assert sorted(feed.next(WAIT_S)) == [
        ChangedDocument("moved", "pages", "a.md"),
        ChangedDocument("moved", "pages", "c.md"),
    ]
    (notes / "c.md").unlink()
    kb.index()
    kb.remove_collection("pages")
    assert feed.next(WAIT_S) == [
        ChangedDocument("removed", "pages", "c.md"),
        ChangedDocument("removed", "pages", "a.md"),
    ]
    assert feed.next(NOW_S) == []


def test_what_changes_no_text_and_what_is_rolled_back_is_not_told(
    kb: KnowledgeBase, notes: Path, feed: ChangeFeed
) -> None:
    kb.index()
    assert len(feed.next(WAIT_S)) == 2
    put(notes / "a.md", "# A\n")
    kb.index()
    store = open_store(kb.location)
    with closing(store), pytest.raises(InterruptedError):
        store.write(lambda writer: (writer.collections.remove("notes"), _fail()))
    assert feed.next(NOW_S) == []


def _fail() -> None:
    raise InterruptedError


def test_a_listener_that_was_cut_off_misses_nothing(
    kb: KnowledgeBase,
    postgres_server: PostgresServer,
    postgres_database: ServerDatabase,
    feed: ChangeFeed,
) -> None:
    postgres_server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%changes%'"
        f" AND datname = '{postgres_database.name}'"
    )
    kb.index()
    with pytest.raises(DatabaseUnreachableError, match="was lost"):
        feed.next(WAIT_S)
    assert len(feed.next(WAIT_S)) == 2


def test_a_process_is_not_told_what_it_changed_itself(kb: KnowledgeBase) -> None:
    store = kb._store
    feed = store.change_feed()
    assert feed is not None
    with closing(feed):
        feed.next(NOW_S)
        kb.index()
        assert feed.next(NOW_S) == []


def test_the_latest_rows_are_kept(kb: KnowledgeBase, postgres_server: PostgresServer) -> None:
    assert isinstance(kb.location, ServerDatabase)
    for count in (999, 100_002):
        postgres_server.execute(
            "INSERT INTO z_document_changes (kind, collection, path, writer)"
            f" SELECT 'added', 'notes', n || '.md', '' FROM generate_series(1, {count}) n",
            kb.location.name,
        )
    kept = "SELECT min(id), max(id) FROM z_document_changes"
    assert postgres_server.execute(kept, kb.location.name) == [(1_002, 101_001)]


def test_events_of_others_are_published_and_embedded(
    kb: KnowledgeBase, notes: Path, postgres_database: ServerDatabase
) -> None:
    events: queue.Queue[Event] = queue.Queue()
    with (
        KnowledgeBase(open_store(postgres_database)) as reader,
        KnowledgeBase.open(postgres_database, Settings(embedder=HashEmbedder())) as keeper,
    ):
        reader.events.subscribe(events.put)
        reader.follow()
        reader.follow()
        kb.index()
        assert {_next(events).file, _next(events).file} == {"notes/a.md", "notes/b.md"}
        assert _next(events).kind == "synced"
        keeper.events.subscribe(events.put)
        keeper.keep(watch=False)
        while _next(events).kind != "embedding":
            pass
        put(notes / "c.md", "# C\n")
        kb.index()
        while keeper.status().needs_embedding or keeper.status().total_documents < 3:
            _next(events)


def _next(events: queue.Queue[Event]) -> Event:
    return events.get(timeout=WAIT_S)

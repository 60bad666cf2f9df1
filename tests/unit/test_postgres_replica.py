"""Reads from a streaming replica: what was written is read, and either server may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import ConfigError, DatabaseUnreachableError
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.operations.texts import status_replica
from qmd.store import open_store
from qmd.store.postgres.replicated import ReplicatedStore
from qmd.values.location import ServerDatabase
from tests.support.live import put
from tests.support.postgres import PASSWORD, PostgresServer

WAIT_S = 30.0


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    server = PostgresServer(synchronous_commit="on")
    yield server
    server.remove()


@pytest.fixture(scope="module")
def replica(primary: PostgresServer) -> Iterator[PostgresServer]:
    server = PostgresServer(primary, wal_retrieve_retry_interval="100ms")
    yield server
    server.remove()


@pytest.fixture
def database(primary: PostgresServer, replica: PostgresServer) -> ServerDatabase:
    return primary.migrated()


@pytest.fixture
def copy(database: ServerDatabase, replica: PostgresServer) -> ServerDatabase:
    """The database as the replica has it."""
    has_database = f"SELECT 1 FROM pg_database WHERE datname = '{database.name}'"
    until(lambda: bool(replica.execute(has_database)))
    return ServerDatabase(replica.url(database.name))


@pytest.fixture
def kb(tmp_path: Path, database: ServerDatabase, copy: ServerDatabase) -> Iterator[KnowledgeBase]:
    put(tmp_path / "notes" / "a.md", "# A\n\nfirst\n")
    with KnowledgeBase.open(database, Settings(replica=copy.url)) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.index()
        yield kb


def until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + WAIT_S
    while not condition():
        assert monotonic() < deadline


def answers(kb: KnowledgeBase, word: str) -> list[str]:
    return [hit.file for hit in kb.search(word).hits]


def reads_replica(kb: KnowledgeBase) -> bool:
    """Whether the replica answers now."""
    with kb._store.reading() as reader:
        row = reader.connection.execute("SELECT pg_is_in_recovery()").fetchone()  # type: ignore[attr-defined]
    return bool(row[0])


def test_what_was_written_is_read_also_while_the_replica_is_late(
    kb: KnowledgeBase, replica: PostgresServer, tmp_path: Path
) -> None:
    until(lambda: reads_replica(kb))
    assert answers(kb, "first") == ["notes/a.md"]
    replica.execute("SELECT pg_wal_replay_pause()")
    try:
        put(tmp_path / "notes" / "b.md", "# B\n\nsecond\n")
        kb.index()
        assert not reads_replica(kb)
        assert answers(kb, "second") == ["notes/b.md"]
    finally:
        replica.execute("SELECT pg_wal_replay_resume()")
    until(lambda: reads_replica(kb))
    assert answers(kb, "second") == ["notes/b.md"]
    until(lambda: kb.freshness().replica_lag_s == 0.0)
    assert "replica, 0 s behind" in (status_replica(kb.freshness()) or "")
    assert kb.freshness().notices == ()


def test_a_token_opens_its_collections_on_the_replica(kb: KnowledgeBase, tmp_path: Path) -> None:
    put(tmp_path / "closed" / "b.md", "# B\n\nfirst\n")
    kb.add_collection(tmp_path / "closed")
    kb.index()
    scope = kb.scope_of_token(kb.create_token("narrow", read=["notes"]).token)
    assert scope is not None
    part = ScopedKnowledgeBase(kb, scope)
    until(lambda: reads_replica(part))
    assert answers(part, "first") == ["notes/a.md"]
    assert reads_replica(part)


def test_changes_of_others_are_read_when_they_are_told(
    kb: KnowledgeBase, database: ServerDatabase, replica: PostgresServer, tmp_path: Path
) -> None:
    until(lambda: reads_replica(kb))
    feed = kb._store.change_feed()
    assert feed is not None
    feed.next(0.0)
    replica.execute("SELECT pg_wal_replay_pause()")
    try:
        put(tmp_path / "notes" / "c.md", "# C\n\nthird\n")
        with KnowledgeBase(open_store(database)) as other:
            other.index()
        assert len(feed.next(WAIT_S)) == 1
        assert answers(kb, "third") == ["notes/c.md"]
    finally:
        replica.execute("SELECT pg_wal_replay_resume()")
        feed.close()


def test_a_replica_that_is_far_behind_is_not_asked(
    kb: KnowledgeBase, replica: PostgresServer, primary: PostgresServer, monkeypatch
) -> None:
    monkeypatch.setattr("qmd.store.postgres.replicated.MOST_LAG_S", 0.5)
    replica.execute("SELECT pg_wal_replay_pause()")
    try:
        primary.execute("SELECT pg_switch_wal(), pg_logical_emit_message(false, 'qmd', 'x')")
        until(lambda: any("behind" in notice for notice in kb.freshness().notices))
        assert (kb.freshness().replica_lag_s or 0) > 0.5
        assert not reads_replica(kb)
    finally:
        replica.execute("SELECT pg_wal_replay_resume()")
    until(lambda: reads_replica(kb))


def test_the_primary_answers_while_the_replica_is_gone(
    kb: KnowledgeBase, replica: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "qmd.store.postgres.replicated")
    until(lambda: reads_replica(kb))
    replica.kill()
    try:
        until(lambda: not _fails(kb))
        assert answers(kb, "first") == ["notes/a.md"]
        until(lambda: any("cannot be reached" in notice for notice in kb.freshness().notices))
        assert not any(PASSWORD in notice for notice in kb.freshness().notices)
        assert all("refused. The primary" in notice for notice in kb.freshness().notices)
    finally:
        replica.start()
    until(lambda: reads_replica(kb))
    until(lambda: caplog.messages[-1] == "the replica is asked again")
    assert caplog.messages[-2].startswith("the replica is not asked: The ")
    assert caplog.records[-2].levelname == "WARNING"


def _fails(kb: KnowledgeBase) -> bool:
    """Whether a search fails: one does, that used a connection which was lost."""
    try:
        kb.search("first")
    except DatabaseUnreachableError:
        return True
    return False


def test_the_replica_answers_while_the_primary_is_gone(
    kb: KnowledgeBase,
    primary: PostgresServer,
    database: ServerDatabase,
    copy: ServerDatabase,
    tmp_path: Path,
) -> None:
    until(lambda: reads_replica(kb))
    primary.kill()
    try:
        assert answers(kb, "first") == ["notes/a.md"]
        with pytest.raises(DatabaseUnreachableError, match=r"cannot be reached|was lost"):
            kb.rename_collection("notes", "pages")
        until(lambda: any("Nothing can be written" in each for each in kb.freshness().notices))
        assert kb.status().total_documents == 1
        with KnowledgeBase.open(database, Settings(replica=copy.url)) as late:
            assert answers(late, "first") == ["notes/a.md"]
            with pytest.raises(DatabaseUnreachableError, match="cannot be reached"):
                late.rename_collection("notes", "pages")
    finally:
        primary.start()
    until(lambda: not _fails(kb))
    kb.rename_collection("notes", "pages")
    assert answers(kb, "first") == ["pages/a.md"]


def test_only_a_replica_of_the_same_database_is_taken(
    kb: KnowledgeBase,
    database: ServerDatabase,
    copy: ServerDatabase,
    postgres_database: ServerDatabase,
    tmp_path: Path,
) -> None:
    for other in (postgres_database, database):
        with pytest.raises(ConfigError, match="is no replica of"):
            open_store(database, other)
    with pytest.raises(ConfigError, match="is no replica of"):
        open_store(postgres_database, copy)
    with pytest.raises(ConfigError, match="is a file"):
        open_store(database, tmp_path / "a.sqlite")
    with pytest.raises(ConfigError, match="is a file"):
        open_store(tmp_path / "a.sqlite", copy, create=True)


def test_when_both_are_gone_the_error_says_so(primary: PostgresServer) -> None:
    nowhere = ServerDatabase("postgresql://127.0.0.1:1/none")
    with pytest.raises(DatabaseUnreachableError, match="cannot be reached"):
        ReplicatedStore(nowhere, nowhere)

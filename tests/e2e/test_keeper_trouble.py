"""What goes wrong is logged, told and tried again; the keeper never dies in silence."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import ReadOnlyError, TransientInferenceError
from qmd.ingest.events import Event, EventBus
from qmd.ingest.keep.background import EmbedderProvider
from qmd.ingest.keep.keeper import Keeper
from qmd.ingest.keep.maintain import KeeperOptions
from qmd.store import Store, open_store
from qmd.store.sqlite import library as sqlite
from tests.support.embedder import HashEmbedder
from tests.support.live import POLLING, WAIT_S, Told, kept, put, until


@pytest.fixture
def database(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("# Alpha\n\nsourdough\n")
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
    return path


class Listener:
    """The bus of a bare keeper, and waiting for what it tells."""

    def __init__(self) -> None:
        self.events = EventBus()
        self._heard: dict[str, threading.Event] = {
            kind: threading.Event() for kind in ("synced", "problem", "added")
        }
        self.messages: list[str] = []
        self.events.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        if event.message:
            self.messages.append(event.message)
        if event.kind in self._heard:
            self._heard[event.kind].set()

    def wait_for(self, kind: str) -> None:
        assert self._heard[kind].wait(WAIT_S), kind
        self._heard[kind].clear()


@contextmanager
def keeping(store: Store) -> Iterator[tuple[Keeper, Listener]]:
    listener = Listener()
    models = EmbedderProvider(lambda _: "test-hash", lambda _: False, lambda _: HashEmbedder())
    keeper = Keeper(
        lambda: store, listener.events, models, KeeperOptions(embed=False, polling=POLLING)
    )
    try:
        with keeper:
            listener.wait_for("synced")
            yield keeper, listener
    finally:
        store.close()


def test_a_database_that_another_program_locks_is_written_when_it_is_free(
    database: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with keeping(open_store(database, timeout_s=0.1)) as (keeper, listener):
        other = sqlite.connect(database, read_only=False)
        other.execute("BEGIN IMMEDIATE")
        (tmp_path / "notes/b.md").write_text("# Secret of the note\n")
        listener.wait_for("problem")
        assert any("locked" in notice for notice in keeper.state.notices)
        other.execute("ROLLBACK")
        other.close()
        listener.wait_for("added")
        listener.wait_for("synced")
        until(lambda: keeper.state.notices == ())
    assert "locked" in caplog.text
    assert "Secret" not in caplog.text


def test_a_full_disk_stops_indexing_until_there_is_room(database: Path, tmp_path: Path) -> None:
    store = open_store(database)
    with keeping(store) as (keeper, listener):
        pages = store.write_outside_transaction(
            lambda writer: writer.connection.execute("PRAGMA page_count").fetchone()[0]
        )
        limit = f"PRAGMA max_page_count = {pages + 5}"
        store.write_outside_transaction(lambda writer: writer.connection.execute(limit).fetchone())
        put(tmp_path / "notes/b.md", "# Big\n\n" + "word another text\n" * 20_000)
        listener.wait_for("problem")
        assert any("full" in notice for notice in keeper.state.notices)
        with store.reading() as reader:
            assert reader.connection.execute("SELECT count(*) FROM documents").fetchone() == (1,)
        store.write_outside_transaction(
            lambda writer: writer.connection.execute("PRAGMA max_page_count = 1000000").fetchone()
        )
        listener.wait_for("added")
        listener.wait_for("synced")


def test_a_damaged_database_is_told_and_does_not_end_the_keeper(
    database: Path, tmp_path: Path
) -> None:
    store = open_store(database)
    with keeping(store) as (keeper, listener):
        store.write(lambda writer: writer.connection.execute("DROP TABLE tags"))
        (tmp_path / "notes/b.md").write_text("# New #tagged\n")
        listener.wait_for("problem")
        assert keeper.is_leader
        assert listener.messages


def test_a_subscriber_that_fails_keeps_the_event_from_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with kept(tmp_path, {"a.md": "# A\n"}) as live:

        def fail(event: Event) -> None:
            raise RuntimeError("a stranger's mistake")

        live.kb.events.subscribe(fail)
        late = Told(live.kb)
        live.write("b.md", "# B\n")
        late.wait_for(lambda: late.of("added"))
        live.settles_as("a.md", "b.md")
    assert "a stranger's mistake" in caplog.text


class Faltering(HashEmbedder):
    """Fails until it is allowed to work."""

    def __init__(self) -> None:
        super().__init__()
        self.works = False

    def embed_passages(self, texts):  # type: ignore[no-untyped-def]
        if not self.works:
            raise TransientInferenceError("The model stumbles.", hint="Wait.")
        return super().embed_passages(texts)


def test_a_model_that_fails_takes_nothing_from_full_text_and_is_told(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("# Alpha\n\nsourdough\n")
    embedder = Faltering()
    with KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(embedder=embedder), create=True) as kb:
        kb.add_collection(root)
        told = Told(kb)
        keeper = kb.keep(polling=POLLING)
        told.wait_for(lambda: told.of("problem"))
        until(lambda: any("stumbles" in notice for notice in kb.freshness().notices))
        (root / "b.md").write_text("# Beta\n\nrye\n")
        told.wait_for(lambda: kb.search("rye").hits)
        assert kb.freshness().embeddings_pending == 2
        keeper.stop()
        embedder.works = True
        kb.keep(polling=POLLING)
        told.wait_for(lambda: kb.freshness().embeddings_pending == 0)
        until(lambda: kb.freshness().notices == ())


@pytest.mark.parametrize("embed", [True, False])
def test_other_processes_are_told_whether_the_keeper_makes_vectors(
    tmp_path: Path, embed: bool
) -> None:
    with kept(tmp_path, {"a.md": "# Alpha\n"}, embed=embed) as live:
        assert live.kb.freshness().embedding == embed
        with KnowledgeBase.open(live.kb.path) as other:
            until(lambda: other.freshness().watch != "off")
            assert other.freshness().embedding == embed
    with KnowledgeBase.open(live.kb.path) as other:
        assert not other.freshness().embedding


def test_vectors_of_another_model_are_never_thrown_away_unasked(tmp_path: Path) -> None:
    class Other(HashEmbedder):
        spec = HashEmbedder.spec.__class__("other", "other-1", 384, 512)

    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("# Alpha\n")
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root)
        kb.index()
        kb.embed()
    (root / "b.md").write_text("# Beta\n")
    with KnowledgeBase.open(path, Settings(embedder=Other())) as kb:
        told = Told(kb)
        kb.keep(polling=POLLING)
        told.wait_for(lambda: told.of("problem"))
        assert "qmd embed" in kb.freshness().notices[0]
        assert not kb.freshness().embedding
        assert kb.status().model == "test-hash"
        assert kb.status().chunks_embedded == 1


def test_without_a_model_nothing_is_downloaded_and_it_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("# Alpha\n")
    model = "BAAI/bge-small-en-v1.5"
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(model=model, cache_dir=tmp_path / "cache"), create=True
    ) as kb:
        kb.add_collection(root)
        told = Told(kb)
        kb.keep(polling=POLLING)
        told.wait_for(lambda: told.of("problem"))
        (root / "b.md").write_text("# Beta\n")
        told.wait_for(lambda: kb.search("beta").hits)
        (root / "b.md").unlink()
        told.wait_for(lambda: not kb.search("beta").hits)
        assert len(told.of("problem")) == 1
        assert "qmd embed" in kb.freshness().notices[0]
    assert not (tmp_path / "cache").exists()


def test_a_root_that_was_never_readable_is_watched_when_it_is_there(tmp_path: Path) -> None:
    with kept(tmp_path, {"a.md": "# A\n"}) as live:
        gone = tmp_path / "gone"
        gone.mkdir()
        live.kb.add_collection(gone)
        shutil.rmtree(gone)
        live.told.wait_for(lambda: live.told.of("problem"))
        gone.mkdir()
        (gone / "x.md").write_text("# X\n\nchapati\n")
        live.told.wait_for(lambda: live.kb.search("chapati").hits)
        (gone / "y.md").write_text("# Y\n\nroti\n")
        live.told.wait_for(lambda: live.kb.search("roti").hits)


def test_a_database_opened_read_only_is_not_kept(database: Path) -> None:
    with (
        KnowledgeBase.open(database, read_only=True) as kb,
        pytest.raises(ReadOnlyError),
    ):
        kb.keep()


def test_closing_while_a_first_index_runs_stops_at_once_and_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(1500):
        (root / f"{number}.md").write_text(f"# Note {number}\n")
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(root)
        told = Told(kb)
        kb.keep(embed=False, polling=POLLING)
        told.wait_for(lambda: told.of("added"))
    stored = len(told.of("added"))
    with KnowledgeBase.open(path) as kb:
        assert kb.status().total_documents == stored
        kb.index()
        assert kb.status().total_documents == 1500
    assert caplog.text == ""

"""Processes with one database on a server share the texts to embed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from qmd import KnowledgeBase
from qmd.inference.token_codes import CODE_BYTES, MARK, fit_projection, pack
from qmd.ingest import embedding
from qmd.ingest.embedding import BATCH, embed
from qmd.store import Store, open_store
from qmd.store.sql.models import StoredProjection
from qmd.values.location import ServerDatabase
from tests.support.embedder import BesideEnglish, HashEmbedder, HashTokenEmbedder
from tests.support.live import put
from tests.support.postgres import PostgresServer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.sql.models import StoredModel

NOTES = 3 * BATCH
#: The same text, title included, in so many further notes.
COPIES = 5


@pytest.fixture
def stores(tmp_path: Path, postgres_database: ServerDatabase) -> Iterator[list[Store]]:
    """Two processes' stores of a database whose notes have no vectors."""
    for number in range(NOTES):
        put(tmp_path / "notes" / f"{number}.md", f"# Note {number}\n")
    for number in range(COPIES):
        put(tmp_path / "notes" / f"copy {number}.md", "# Note 0\n")
    with KnowledgeBase(open_store(postgres_database)) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.index()
    with (
        closing(open_store(postgres_database)) as one,
        closing(open_store(postgres_database)) as other,
    ):
        yield [one, other]


def begin(store: Store) -> StoredModel:
    return store.write(lambda writer: writer.models.begin(HashEmbedder.spec))


def test_what_one_process_has_claimed_another_passes_over(stores: list[Store]) -> None:
    model = begin(stores[0])
    with (
        closing(stores[0].embedding_claims(model)) as one,
        closing(stores[1].embedding_claims(model)) as other,
    ):
        ours, theirs = one.take(BATCH), other.take(BATCH)
        assert ours is not None
        assert theirs is not None
        assert len(ours) == len(theirs) == BATCH
        assert {chunk.hash for chunk in ours}.isdisjoint(chunk.hash for chunk in theirs)
        rest = one.take(NOTES)
        assert rest is not None
        assert {chunk.id for chunk in ours} <= {chunk.id for chunk in rest}  # free again
        first = other.take(1)
        assert first is not None
        assert len(first) == 1
        assert first[0] not in rest


def test_nothing_is_handed_out_while_others_have_all_of_it(
    stores: list[Store], postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    model = begin(stores[0])
    with (
        closing(stores[0].embedding_claims(model)) as one,
        closing(stores[1].embedding_claims(model)) as other,
    ):
        assert len(one.take(NOTES + COPIES) or ()) == NOTES + COPIES
        assert other.take(BATCH) == []
        # As when the process is killed: the server sees the end of its connections.
        postgres_server.execute(
            "SELECT pg_terminate_backend(l.pid, 10000) FROM pg_locks l"
            " JOIN pg_database d ON d.oid = l.database"
            f" WHERE l.locktype = 'advisory' AND d.datname = '{postgres_database.name}'"
        )
        theirs = {chunk.hash for chunk in other.take(BATCH) or ()}
        again = {chunk.hash for chunk in one.take(NOTES + COPIES) or ()}  # connects anew
        assert theirs
        assert theirs.isdisjoint(again)
        assert len(theirs | again) == NOTES


class _InStep(HashEmbedder):
    """Computes its first batch while another computes, too."""

    def __init__(self, first: threading.Barrier) -> None:
        super().__init__()
        self._first: threading.Barrier | None = first
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        first, self._first = self._first, None
        if first is not None:
            first.wait(20)
        return super().embed_passages(texts)


def test_two_processes_embed_at_the_same_time_and_no_text_twice(stores: list[Store]) -> None:
    first = threading.Barrier(2)
    embedders = [_InStep(first), _InStep(first)]
    with ThreadPoolExecutor(2) as threads:
        reports = list(threads.map(embed, stores, embedders))
    texts = [text for embedder in embedders for text in embedder.texts]
    assert len(texts) == len(set(texts)) == NOTES
    assert all(embedder.texts for embedder in embedders)
    assert [report.remaining for report in reports] == [0, 0]
    with stores[0].reading() as reader:
        counts = reader.upkeep.counts()
    assert counts.chunks_embedded == counts.chunks == NOTES + COPIES


def test_what_a_process_that_hangs_has_claimed_is_left_to_it(
    stores: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(stores[0].embedding_claims(begin(stores[0]))) as hanging:
        claimed = hanging.take(BATCH)
        assert claimed is not None
        with monkeypatch.context() as patched:
            patched.setattr(embedding, "OTHERS_S", 0.0)
            report = embed(stores[1], HashEmbedder())
        hashes = {chunk.hash for chunk in claimed}
        assert report.embedded == NOTES - len(hashes)
        assert report.remaining >= BATCH
    # The server releases them a moment after the connection has ended.
    assert embed(stores[1], HashEmbedder()).remaining == 0


def test_english_texts_get_their_vector_of_english(
    tmp_path: Path, stores: list[Store], postgres_database: ServerDatabase
) -> None:
    put(tmp_path / "notes" / "english.md", "The boat and the wind, and this island.\n")
    with KnowledgeBase(open_store(postgres_database)) as kb:
        kb.index()
    embedder = BesideEnglish()
    model = stores[0].write(lambda writer: writer.models.begin(embedder.spec))
    projection = fit_projection(
        [HashTokenEmbedder().token_states(f"note {number} of it") for number in range(20)]
    )
    form = StoredProjection(projection.recipe, CODE_BYTES, pack(projection))
    stores[0].write(lambda writer: writer.tokens.begin(model, form))
    for store in stores:
        embed(store, embedder)
    assert embedder.english.calls == 1
    with stores[0].reading() as reader:
        (chunk,) = [each for each in reader.tokens.sample(NOTES * 2) if "island" in each.text]
        codes = reader.tokens.of_chunks(model, [chunk.id], projection.recipe)
    assert codes[chunk.id].startswith(MARK)

"""Vectors in PostgreSQL by each way of comparing them: pgvector's scan, its index, this program."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from numpy.typing import NDArray

from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.store import Store, Writer, open_store
from qmd.store.sql.vectors import pack_vectors
from qmd.values import FileState, Filters, ModelSpec
from qmd.values.location import ServerDatabase
from tests.support.postgres import PostgresServer

DIMENSION = 24
SPEC = ModelSpec("m", "m-1", DIMENSION, max_tokens=512)


def unit_vectors(count: int, seed: int) -> NDArray[np.float32]:
    values = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def fill(writer: Writer) -> None:
    """120 notes, every fourth in another collection, and their vectors."""
    collections = [
        writer.collections.add(name=name, path=f"/{name}", pattern="**", ignore=()).id
        for name in ("a", "b")
    ]
    for number in range(120):
        data = f"# Note {number}\n\nwords {number}\n".encode()
        digest = hashlib.sha256(data).hexdigest()
        parsed = parse_document("n.md", data)
        document = new_document(f"{number}.md", parsed, digest, FileState(len(data), 1, 1, 1))
        writer.files.put(collections[number % 4 == 0], document)
    model = writer.models.begin(SPEC)
    chunks = [(chunk.id, chunk.hash) for chunk in writer.embeddings.waiting(model, 1000)]
    packed = pack_vectors(unit_vectors(len(chunks), 1))
    vectors = {digest: vector for (_, digest), vector in zip(chunks, packed, strict=True)}
    assert writer.embeddings.put(model, chunks, vectors) == len(chunks) == 120


@pytest.fixture
def store(postgres_database: ServerDatabase) -> Iterator[Store]:
    with closing(open_store(postgres_database)) as opened:
        opened.write(fill)
        yield opened


def nearest(store: Store, filters: Filters = Filters(), k: int = 10) -> list[set[int]]:
    """The ids of the nearest chunks of a few questions."""
    with store.reading() as reader:
        model, selection = reader.models.active(), reader.select(filters)
        assert model is not None
        return [
            {row[0] for row in reader.vectors.nearest(model, question, k, selection)}
            for question in unit_vectors(8, 2)
        ]


def engine(store: Store) -> str:
    with store.reading() as reader:
        return reader.vectors.require_engine()


def test_an_index_of_many_vectors_answers_as_a_scan(
    store: Store, postgres_database: ServerDatabase, postgres_server: PostgresServer
) -> None:
    scanned, filtered = nearest(store), nearest(store, Filters(collections=("b",)))
    name = postgres_database.url.rpartition("/")[2]
    index = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE 'vectors_nearest%'"
    store.index_vectors()
    assert postgres_server.execute(index, name) == []  # too few
    store.index_vectors(least=100)  # type: ignore[call-arg]  # a parameter of this engine
    assert len(postgres_server.execute(index, name)) == 1
    # So few vectors would be scanned all the same, because that is faster.
    postgres_server.execute(f"ALTER DATABASE {name} SET enable_seqscan = off", name)
    postgres_server.execute(f"ALTER DATABASE {name} SET enable_sort = off", name)
    with closing(open_store(postgres_database)) as again:
        indexed = nearest(again)
        assert nearest(again, Filters(collections=("b",))) == filtered
        assert nearest(again, k=500) == [set().union(*nearest(again, k=120))] * 8
    assert sum(len(a & b) for a, b in zip(scanned, indexed, strict=True)) >= 76  # of 80
    postgres_server.execute("SELECT pg_stat_force_next_flush()", name)
    assert postgres_server.execute(index, name) != [(0,)]


def test_without_pgvector_the_program_compares_vectors(
    store: Store, postgres_database: ServerDatabase, postgres_server: PostgresServer
) -> None:
    scanned, filtered = nearest(store), nearest(store, Filters(collections=("b",)))
    assert engine(store).startswith("pgvector")
    postgres_server.execute(
        "DROP EXTENSION vector CASCADE", postgres_database.url.rpartition("/")[2]
    )
    assert "no pgvector" in engine(store)
    assert nearest(store) == scanned
    assert nearest(store, Filters(collections=("b",))) == filtered

    with closing(open_store(postgres_database)) as again:
        again.write(lambda writer: writer.models.begin(SPEC))  # as every `qmd embed`
        assert engine(again).startswith("pgvector")
        assert nearest(again) == scanned
        assert nearest(again, Filters(collections=("b",))) == filtered


def test_the_extension_may_lie_in_another_schema(postgres_server: PostgresServer) -> None:
    database = postgres_server.new_database()
    name = database.url.rpartition("/")[2]
    postgres_server.execute("CREATE SCHEMA tools; CREATE SCHEMA notes", name)
    postgres_server.execute("CREATE EXTENSION vector SCHEMA tools", name)
    location = ServerDatabase(f"{database.url}?options=-csearch_path%3Dnotes")
    with closing(open_store(location, create=True)) as store:
        store.write(fill)
        assert engine(store).startswith("pgvector")
        store.index_vectors(least=100)  # type: ignore[call-arg]  # a parameter of this engine
        assert [len(ids) for ids in nearest(store)] == [10] * 8

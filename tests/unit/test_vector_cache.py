"""Vectors and their codes in memory: they find the true nearest, and follow every change."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.search.candidates import Candidate
from qmd.search.meaning import loaded_vectors, vector_cache
from qmd.search.meaning.loaded_vectors import Codes, CodesFile
from qmd.search.meaning.nearness import bare
from qmd.search.meaning.retrieval import nearest_documents
from qmd.search.meaning.vector_cache import MOST_EXACT_BYTES, VectorCache
from qmd.store import Reader, Writer, open_store
from qmd.store.sql import document_rows, shared
from qmd.store.sql.models import StoredModel
from qmd.store.sql.vectors import pack_vectors
from qmd.values import FileState, Filters, ModelSpec, SearchRequest
from tests.support.corpus import Corpus
from tests.support.embedder import HashEmbedder

Matrix = np.ndarray[Any, np.dtype[np.float32]]

COUNT = 8_000


def units(matrix: Matrix) -> Matrix:
    unit: Matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit


def random(rng: np.random.Generator, count: int, dimension: int) -> Matrix:
    return units(rng.standard_normal((count, dimension), dtype=np.float32))


def clusters(rng: np.random.Generator, count: int, dimension: int) -> Matrix:
    """As models make them: in a narrow cone (mean cosine .8), and there in heaps."""
    mean = 2 * random(rng, 1, dimension)
    centres = random(np.random.default_rng(3), 60, dimension)
    return units(
        mean + centres[rng.integers(60, size=count)] * 0.7 + 0.7 * random(rng, count, dimension)
    )


def fill(writer: Writer, matrix: Matrix) -> StoredModel:
    """A document and a chunk a vector, with ids from 1, in collections 1 and 2 by turns."""
    dimension = matrix.shape[1]
    model = writer.models.begin(ModelSpec("m", "m", dimension, 512))
    writer.connection.execute(
        "INSERT INTO collections (id, name, path, created_at)"
        " VALUES (1, 'a', '/a', ''), (2, 'b', '/b', '')"
    )
    numbers = range(1, len(matrix) + 1)
    hashes = [number.to_bytes(16, "big") for number in numbers]
    writer.connection.executemany(
        "INSERT INTO documents (id, collection_id, path, name_key, title, hash, modified_at,"
        " bytes, mtime_ns, inode, device, encoding, parser_version, body_start, indexed_at, text)"
        " VALUES (?1, 1 + ?1 % 2, ?1, ?1, ?1, ?1, '', 0, 0, 0, 0, 'utf-8', 0, 0, '', '')",
        [(number,) for number in numbers],
    )
    chunks = list(zip(numbers, hashes, strict=True))
    writer.connection.executemany(
        "INSERT INTO chunks (id, document_id, seq, start_char, end_char, start_byte, end_byte,"
        " start_line, end_line, heading_path, hash) VALUES (?1, ?1, 0, 0, 0, 0, 0, 1, 1, '', ?2)",
        chunks,
    )
    packed = dict(zip(hashes, pack_vectors(matrix), strict=True))
    writer.embeddings.put(model, chunks, packed)
    return model


def wait_for(cache: VectorCache) -> None:
    """Wait until the thread that loads codes has ended."""
    loader = cache.loader
    if loader is not None:
        loader.join()


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("make", "dimension"),
    [
        pytest.param(random, 384, marks=pytest.mark.nightly, id="random"),
        pytest.param(clusters, 384, id="clusters"),
        pytest.param(clusters, 100, marks=pytest.mark.nightly, id="100 dimensions"),
    ],
)
def test_of_the_ten_truly_nearest_99_in_100_are_found(
    tmp_path: Path, make: Callable[[np.random.Generator, int, int], Matrix], dimension: int
) -> None:
    rng = np.random.default_rng(5)
    matrix = make(rng, COUNT + 40, dimension)
    matrix, queries = matrix[:COUNT], matrix[COUNT:]
    store = open_store(tmp_path / "k.sqlite", create=True)
    model = store.write(lambda connection: fill(connection, matrix))
    bits = VectorCache(store.reading, least=4000, exact_bytes=0)
    found = {"all": 0, "a": 0}
    with store.reading() as reader:
        one = reader.select(Filters(collections=("a",)))
        # Not at the first search; then a thread loads them.
        for is_missing in (True, True, False):
            answer = bits.nearest(reader, model, queries[0], 10, reader.all_documents)
            assert (answer is None) is is_missing
            wait_for(bits)
        for query in queries:
            cosines = matrix @ query
            for where, name in ((reader.all_documents, "all"), (one, "a")):
                assert bits.nearest(reader, model, query, 10, where) is not None
                hits = nearest_documents(reader, bare(model, query), where, 10, bits)
                assert hits == nearest_documents(reader, bare(model, query), where, 10, bits)
                step = 2 if name == "a" else 1
                mine = np.arange(COUNT)[step - 1 :: step]  # even ids are in collection a
                best = mine[np.argsort(-cosines[mine])[:10]] + 1
                found[name] += len({hit.document_id for hit in hits} & set(best.tolist()))
    store.close()
    assert min(found.values()) / (10 * len(queries)) >= 0.99


@pytest.mark.unmeasured
@pytest.mark.parametrize("make", [pytest.param(random, marks=pytest.mark.nightly), clusters])
def test_vectors_that_fit_into_memory_are_compared_exactly_from_the_first_search_on(
    tmp_path: Path, make: Callable[[np.random.Generator, int, int], Matrix]
) -> None:
    rng = np.random.default_rng(5)
    matrix = make(rng, COUNT + 10, 384)
    matrix, queries = matrix[:COUNT], matrix[COUNT:]
    store = open_store(tmp_path / "k.sqlite", create=True)
    model = store.write(lambda connection: fill(connection, matrix))
    with store.reading() as reader:
        kept = VectorCache(store.reading, least=4000)
        for query in queries:
            asked = bare(model, query)
            true = nearest_documents(reader, asked, reader.all_documents, None)[:100]
            for cache in (kept, VectorCache(store.reading, least=4000)):
                assert cache.nearest(reader, model, query, 10, reader.all_documents) is not None
                assert nearest_documents(reader, asked, reader.all_documents, 100, cache) == true
    store.close()


# --- changes -------------------------------------------------------------------------


#: Bytes that decide whether vectors are held exactly or coded.
BOTH = pytest.mark.parametrize("exact_bytes", [MOST_EXACT_BYTES, 0], ids=["exact", "coded"])


def exactly(reader: Reader, bits: VectorCache, text: str = "word 3") -> Sequence[Candidate]:
    """What is found in memory, after it was compared with an exact scan of the same snapshot."""
    model = reader.models.active()
    assert model is not None
    query = HashEmbedder().embed_query(text)
    number = reader.upkeep.counts().chunks_embedded
    for _ in range(3):  # of codes the first only asks, the second loads; many gone: loads anew
        bits.nearest(reader, model, query, 1000, reader.all_documents)
        wait_for(bits)
    coded = bits.nearest(reader, model, query, 1000, reader.all_documents)
    assert bool(coded) == (number > 0)
    mine = nearest_documents(reader, bare(model, query), reader.all_documents, 100, bits)
    true = nearest_documents(reader, bare(model, query), reader.all_documents, None)
    assert [hit.document_id for hit in mine] == [hit.document_id for hit in true]
    assert [hit.cosine for hit in mine] == pytest.approx([hit.cosine for hit in true], abs=1e-6)
    return mine


PAGES = {f"{n}.md": f"# {n}\n\nword {n} and {n * n}\n" for n in range(12)}


class OtherModel(HashEmbedder):
    """Other vectors for the same texts."""

    spec = ModelSpec(name="other", fingerprint="other-1", dimension=384, max_tokens=512)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return super().embed_passages([text[::-1] for text in texts])


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    exact_bytes=st.sampled_from([MOST_EXACT_BYTES, 10 * 4 * 384, 0]),
    steps=st.lists(
        st.one_of(
            st.sets(st.sampled_from(sorted(PAGES)), min_size=1),
            st.sampled_from(["embed", "force", "other model", "by hand", "remove", "search"]),
        ),
        max_size=10,
    ),
)
# What is held of what is gone finds nothing.
@example(exact_bytes=0, steps=[{"1.md"}, "embed", "by hand"])
@example(exact_bytes=MOST_EXACT_BYTES, steps=[{"1.md"}, "embed", "by hand"])
@pytest.mark.unmeasured
def test_after_any_changes_is_found_what_an_exact_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, exact_bytes: int, steps: list[set[str] | str]
) -> None:
    corpus = Corpus(tmp_path_factory.mktemp("changes"))
    corpus.add_collection("second")
    corpus.fill(PAGES)
    corpus.kb.embed()
    bits = VectorCache(corpus.store.reading, least=1, exact_bytes=exact_bytes)
    for step in steps:
        if isinstance(step, set):
            corpus.fill({name: PAGES[name] for name in step})
        elif step == "by hand":
            corpus.store.write(
                lambda writer: writer.connection.execute(
                    "DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)"
                )
            )
        elif step == "remove":
            if corpus.kb.collections()[-1].name == "second":
                corpus.kb.remove_collection("second")
        elif step == "other model":
            corpus.kb._embedders.custom_embedder = OtherModel()
            corpus.kb.embed()
        elif step != "search":
            corpus.kb.embed(force=step == "force")
        with corpus.store.reading() as reader:
            exactly(reader, bits)
    corpus.kb.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    made = Corpus(tmp_path)
    made.fill(PAGES)
    made.kb.embed()
    yield made
    made.kb.close()


@BOTH
def test_vectors_that_were_made_anew_take_the_place_of_the_old(
    corpus: Corpus, exact_bytes: int
) -> None:
    bits = VectorCache(corpus.store.reading, least=1, exact_bytes=exact_bytes, coded=0)
    with corpus.store.reading() as reader:
        before = exactly(reader, bits)

    class Better(HashEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            return super().embed_passages([text[::-1] for text in texts])

    corpus.kb._embedders.custom_embedder = Better()
    corpus.kb.embed(force=True)
    with corpus.store.reading() as reader:
        assert exactly(reader, bits) != before
        model = reader.models.active()
        assert model is not None
        fresh = VectorCache(corpus.store.reading, least=1, exact_bytes=exact_bytes, coded=0)
        for text in ("word 3", "word 7", "3 drow"):
            query = HashEmbedder().embed_query(text)
            for _ in range(2):
                fresh.nearest(reader, model, query, 1, reader.all_documents)
                wait_for(fresh)
            few = [
                index.nearest(reader, model, query, 3, reader.all_documents)
                for index in (bits, fresh)
            ]
            assert few[0] == few[1]


def test_every_change_of_the_index_moves_its_state_in_the_same_transaction(corpus: Corpus) -> None:
    def state() -> tuple[int, int]:
        with corpus.store.reading() as reader:
            return reader.vectors.version()

    first = state()
    corpus.kb.embed()  # nothing to do
    assert state() == first

    def fail(writer: Writer) -> None:
        document_rows.delete_chunks(writer.sql, [1])
        assert writer.vectors.version() != first
        raise KeyError

    with pytest.raises(KeyError):
        corpus.store.write(fail)
    assert state() == first
    corpus.fill(PAGES)
    second = state()
    assert second[0] == first[0]
    assert second[1] > first[1]
    corpus.kb.embed(force=True)
    assert state()[0] > second[0]


@BOTH
def test_few_chunks_are_left_to_sqlite_vec_and_all_filters_are_kept(
    corpus: Corpus, exact_bytes: int
) -> None:
    query = corpus.embedder.embed_query("word 3")
    with corpus.store.reading() as reader:
        model = reader.models.active()
        assert model is not None
        few, enough = (
            VectorCache(corpus.store.reading, least=n, exact_bytes=exact_bytes) for n in (13, 12)
        )
        tagged = reader.select(Filters(tags=("x",)))
        for _ in range(3):
            assert few.nearest(reader, model, query, 5, reader.all_documents) is None
        for _ in range(2):
            enough.nearest(reader, model, query, 5, tagged)
            wait_for(enough)
        assert enough.nearest(reader, model, query, 5, tagged) == []
        assert len(enough.nearest(reader, model, query, 5, reader.all_documents) or ()) >= 5
        enough.close()
        assert enough.nearest(reader, model, query, 5, reader.all_documents) is None


def test_codes_are_loaded_by_a_thread_and_then_follow_changes(corpus: Corpus) -> None:
    bits = VectorCache(corpus.store.reading, least=1, exact_bytes=0, coded=0)
    query = corpus.embedder.embed_query("word 3")

    def nearest(reader: Reader, filters: Filters = Filters()) -> set[int] | None:
        model = reader.models.active()
        assert model is not None
        rows = bits.nearest(reader, model, query, 20, reader.select(filters))
        return None if rows is None else {row[1] for row in rows}

    with corpus.store.reading() as reader:
        assert [nearest(reader) for _ in range(2)] == [None, None]
        wait_for(bits)
        assert len(nearest(reader) or ()) == len(PAGES)
        assert nearest(reader, Filters(path="3.md")) == {
            number for number, _, path, _ in reader.documents.identities() if path == "3.md"
        }
    corpus.kb._embedders.custom_embedder = corpus.embedder
    text = b"# New\n\nword 3 again\n"
    added = new_document(
        "new.md",
        parse_document("new.md", text),
        hashlib.sha256(text).hexdigest(),
        FileState(len(text), 1_700_000_000_000_000_000, 1, 1),
    )
    corpus.store.write(lambda writer: writer.files.put(corpus.numbers["notes"], added))
    with corpus.store.reading() as reader:
        assert len(nearest(reader) or ()) == len(PAGES), "it waits for its vector"
    corpus.kb.embed()
    with corpus.store.reading() as reader:
        assert len(nearest(reader) or ()) == len(PAGES) + 1
    remove_most = "DELETE FROM documents WHERE id > 5"
    corpus.store.write(lambda writer: writer.connection.execute(remove_most))
    corpus.store.write(lambda writer: shared.advance_vectors(writer.sql))
    with corpus.store.reading() as reader:
        assert len(nearest(reader) or ()) == 5
        assert nearest(reader) is None, "most of what is in memory is gone: it is loaded anew"
        wait_for(bits)
        assert len(nearest(reader) or ()) == 5
    bits.close()


def test_codes_are_saved_for_the_next_start(tmp_path: Path, corpus: Corpus) -> None:
    database = corpus.store.location
    assert isinstance(database, Path)
    file = CodesFile(tmp_path / "cache", database)
    query = corpus.embedder.embed_query("word 3")

    def start() -> VectorCache:
        return VectorCache(corpus.store.reading, file, least=1, exact_bytes=0)

    def nearest(cache: VectorCache) -> list[tuple[int, int, bytes]] | None:
        with corpus.store.reading() as reader:
            model = reader.models.active()
            assert model is not None
            rows = cache.nearest(reader, model, query, 20, reader.all_documents)
        wait_for(cache)
        return rows

    first = start()
    assert [nearest(first) for _ in range(2)] == [None, None], "there is no file yet"
    expected = nearest(first)
    assert expected and file.path.stat().st_mode & 0o777 == 0o600
    assert nearest(start()) == expected, "it is read by the first search"

    # Vectors that were added since are read from the database.
    corpus.kb._embedders.custom_embedder = corpus.embedder
    add = b"# New\n\nword 3 again\n"
    state = FileState(len(add), 1_700_000_000_000_000_000, 1, 1)
    digest = hashlib.sha256(add).hexdigest()
    added = new_document("new.md", parse_document("new.md", add), digest, state)
    corpus.store.write(lambda writer: writer.files.put(corpus.numbers["notes"], added))
    corpus.kb.embed()
    assert nearest(start()) is None, "more were added than is worth it"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_cache, "MOST_ADDED", 1.0)
        assert len(nearest(start()) or ()) == len(expected) + 1

    saved = file.path.read_bytes()
    damaged = [saved[:-1], saved[:500], b"", saved[:-1] + bytes([saved[-1] ^ 1]), b"[]" + saved[2:]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_cache, "MOST_ADDED", 1.0)
        for content in damaged:
            file.path.write_bytes(content)
            assert nearest(start()) is None
        file.path.write_bytes(saved)
        assert nearest(start()) is not None
        corpus.store.write(lambda writer: shared.advance_vectors(writer.sql, remade=True))
        assert nearest(start()) is None, "vectors may differ from those that were saved"
    first.close()


def test_the_high_bits_choose_what_the_whole_codes_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = clusters(np.random.default_rng(2), COUNT, 384)
    held = Codes.encode(matrix)
    whole = held.scores(matrix[7])
    monkeypatch.setattr(loaded_vectors, "TWO_STAGES", COUNT // 2)
    monkeypatch.setattr(loaded_vectors, "LEAST_PROMISING", 100)
    staged = held.scores(matrix[7])
    chosen = staged > loaded_vectors.LEAST_SCORE
    assert 100 <= chosen.sum() < 200
    # Both are on one scale, for an index may have pieces of both kinds; the chosen are more exact.
    cosines = matrix @ matrix[7]
    assert abs(np.median(staged[chosen] / whole[chosen]) - 1) < 0.2
    finer, coarser = (np.corrcoef(each[chosen], cosines[chosen])[0, 1] for each in (staged, whole))
    assert finer > coarser
    # Of many chunks and of few, the best ten of those inside are chosen, and no others.
    for share in (2, 50):
        inside = np.arange(COUNT) % share == 7 % share
        filtered = held.scores(matrix[7], inside)
        assert (filtered[~inside] == loaded_vectors.LEAST_SCORE).all()
        best = np.argsort(np.where(inside, -cosines, 1))[:10]
        assert (filtered[best] > loaded_vectors.LEAST_SCORE).all()
        assert 100 <= (filtered > loaded_vectors.LEAST_SCORE).sum() < 200


@BOTH
def test_threads_search_while_one_writes_and_all_find_what_is_there(
    corpus: Corpus, exact_bytes: int
) -> None:
    bits = VectorCache(corpus.store.reading, least=1, exact_bytes=exact_bytes)
    errors: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        query = corpus.embedder.embed_query("word 3")
        try:
            while not done.is_set():
                with corpus.store.reading() as reader:
                    model = reader.models.active()
                    assert model is not None
                    near = nearest_documents(
                        reader, bare(model, query), reader.all_documents, 100, bits
                    )
                    true = nearest_documents(reader, bare(model, query), reader.all_documents, None)
                    assert {hit.document_id for hit in near} == {hit.document_id for hit in true}
        except BaseException as error:  # noqa: BLE001  told to the test below
            errors.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(8):
        corpus.fill(dict(list(PAGES.items())[number % 3 : 9 + number % 4]))
        corpus.kb.embed()
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []


# --- what every search counts --------------------------------------------------------


def test_the_number_of_waiting_documents_follows_every_write(corpus: Corpus) -> None:
    def waiting() -> int:
        return corpus.kb.search("word").needs_embedding

    assert [waiting(), waiting()] == [0, 0]
    corpus.fill(PAGES)
    assert [waiting(), waiting()] == [12, 12]
    other = open_store(corpus.path)
    other.write(lambda writer: writer.connection.execute("DELETE FROM documents WHERE id % 2"))
    other.close()
    assert [waiting(), waiting()] == [6, 6]
    corpus.kb.embed()
    assert waiting() == 0


def test_the_words_of_a_question_are_counted_once(corpus: Corpus) -> None:
    from qmd.search.searches import search_by_words

    with corpus.store.reading() as reader:
        seen: list[str] = []
        reader.connection.set_trace_callback(seen.append)
        reply = search_by_words(reader, SearchRequest("word 3 elephant 49"))
        reader.connection.set_trace_callback(None)
    assert {hit.match for hit in reply.hits} == {"relaxed"}
    counts = [
        sql for sql in seen if "count(*)" in sql and "z_documents_fts" in sql and "MATCH" in sql
    ]
    assert len(counts) == 4

"""Both engines give the same hits, in the same order, with the same bm25."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from qmd.ingest.index import index_collections
from qmd.store import Reader, Store, open_store
from qmd.store.full_text import Combined, Expression, Phrase, TextField
from tests.support.postgres import PostgresServer

WORDS = ["the", "data", "model", "models", "run", "running", "café", "naïve", "plan", "foo", "x_y"]
WORDS += ["数据", "据库", "使用", "的", "bar2"]
LONG_WORD = "a" * 900
FIELDS: tuple[TextField, ...] = ("title", "headings", "body", "path", "extra", "description")


def write_notes(folder: Path) -> None:
    chosen = random.Random(7)
    folder.mkdir()
    for number in range(60):
        words = chosen.choices(
            [*WORDS, "数据库", "使用说明", "C++", LONG_WORD], k=chosen.randint(0, 60)
        )
        title, tag = chosen.choice(WORDS), chosen.choice(["plan", "data"])
        front = (
            f"---\ntags: [{tag}]\ndescription: {' '.join(words[:3])}\n---\n" if number % 3 else ""
        )
        text = f"{front}# {title}\n\n{' '.join(words)}\n\n## {' '.join(words[:4])}\n"
        (folder / f"{number}-{title}.md").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def readers(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[tuple[Reader, Reader]]:
    folder = tmp_path_factory.mktemp("engines")
    write_notes(folder / "notes")
    with ExitStack() as stack:

        def reader(store: Store) -> Reader:
            stack.callback(store.close)
            store.write(
                lambda writer: writer.collections.add(
                    name="notes", path=str(folder / "notes"), pattern="**/*.md", ignore=()
                )
            )
            with store.reading() as now:
                collections = now.collections.all()
            index_collections(store, collections)
            # What is replaced and deleted leaves nothing in full text.
            changed = folder / "notes" / "0-again.md"
            changed.write_text("# Again\n\nthe data model\n", encoding="utf-8")
            index_collections(store, collections)
            changed.unlink()
            index_collections(store, collections)
            return stack.enter_context(store.reading())

        sqlite = open_store(folder / "index.sqlite", create=True)
        yield reader(sqlite), reader(open_store(postgres_server.migrated()))


PHRASES = st.builds(
    Phrase,
    st.lists(st.sampled_from([*WORDS, LONG_WORD, "mod", "数", "b"]), min_size=1, max_size=3).map(
        " ".join
    ),
    st.booleans(),
    st.lists(st.sampled_from(FIELDS), unique=True, max_size=2).map(tuple),
)
EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    PHRASES,
    lambda parts: st.builds(
        Combined,
        st.sampled_from(["all", "any", "but not"]),
        st.lists(parts, min_size=2, max_size=3).map(tuple),
    ),
    max_leaves=4,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(match=EXPRESSIONS)
def test_hits_and_scores_are_the_same(readers: tuple[Reader, Reader], match: Expression) -> None:
    sqlite, postgres = (reader.full_text for reader in readers)
    ids = [reader.full_text.matching_ids(match) for reader in readers]
    paths = [
        {document_id: path for document_id, _, path, _ in reader.documents.identities()}
        for reader in readers
    ]
    named = [[each[number] for number in numbers] for each, numbers in zip(paths, ids, strict=True)]
    assert sorted(named[0]) == sorted(named[1])
    assert sqlite.count(match, 5) == postgres.count(match, 5)
    if isinstance(match, Combined) and any(isinstance(part, Combined) for part in match.parts):
        return  # FTS5 also counts phrases of a part that does not match as a whole
    scores = [
        {
            path[number]: score
            for number, score in reader.full_text.search(match, reader.all_documents, None)
        }
        for reader, path in zip(readers, paths, strict=True)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9, abs=1e-12)
    frequencies = [
        {
            path[number]: frequency
            for number, frequency in reader.full_text.frequencies(
                match, numbers, len(numbers), 60
            ).items()
        }
        for reader, path, numbers in zip(readers, paths, ids, strict=True)
    ]
    if isinstance(match, Phrase) and len(ids[0]) < 30:
        assert frequencies[0] == pytest.approx(frequencies[1], rel=1e-6)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), prefix=st.booleans(), field=st.sampled_from([(), ("body",), ("headings",)]))
def test_long_phrases_are_the_same(
    readers: tuple[Reader, Reader], data: st.DataObject, prefix: bool, field: tuple[TextField, ...]
) -> None:
    ids = [row[0] for row in readers[0].documents.identities()]
    text = readers[0].documents.searched_text(data.draw(st.sampled_from(sorted(ids))), None)
    words = text.split()
    start = data.draw(st.integers(0, max(0, len(words) - 4)))
    phrase = " ".join(words[start : start + data.draw(st.integers(4, 8))])
    if prefix:
        phrase = phrase[: -data.draw(st.integers(1, 2))]
    match = Phrase(phrase, prefix, field)
    names = [{row[0]: row[2] for row in reader.documents.identities()} for reader in readers]
    scores = [
        {
            path[number]: score
            for number, score in reader.full_text.search(match, reader.all_documents, None)
        }
        for reader, path in zip(readers, names, strict=True)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9, abs=1e-12)

"""Links, the graph, conditions on properties, and vectors are the same on both engines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.ingest.embedding import embed
from qmd.ingest.index import index_collections
from qmd.search.graph.links import broken_links, orphans
from qmd.search.meaning.nearness import bare
from qmd.search.meaning.retrieval import nearest_documents
from qmd.store import Reader, Store, open_store
from qmd.values import Filters
from tests.support.embedder import DIMENSION, HashEmbedder
from tests.support.postgres import PostgresServer

NAMES = ["plan", "Plan", "数据", "a-b", "x.y"]
TARGETS = ["plan", "PLAN#Goals", "deep/plan", "数据#见", "none", "x.y", "a%20b", "a-b^1", "#Goals"]
TARGETS += ["notes\\\\plan", "plan|shown", "deep/数据.md", "img.png", "plan#Goals#More", ""]


def write_notes(folder: Path) -> None:
    chosen = random.Random(11)
    for number in range(90):
        place = folder / chosen.choice(["one", "two"]) / chosen.choice(["", "deep", "深"])
        place.mkdir(parents=True, exist_ok=True)
        links = "\n".join(f"- [[{chosen.choice(TARGETS)}]]" for _ in range(chosen.randint(0, 5)))
        marked = f"[text]({chosen.choice(['plan.md', '../one/plan.md', 'https://a.b/c', 'q.md'])})"
        words = " ".join(chosen.choices(["red", "apple", "数据", "plan", "goal"], k=12))
        front = [f"rating: {chosen.choice([1, 2.5, 'high', '2025-03-01'])}"]
        front += [f"tags: [{chosen.choice(['work', 'work/plans', 'Home'])}]"]
        front += [f"aliases: [{chosen.choice(['The plan', '计划'])}]"] if number % 3 else []
        name = chosen.choice(NAMES) if number % 4 == 0 else f"{chosen.choice(NAMES)}-{number}"
        text = f"---\n{chr(10).join(front)}\n---\n# T{number}\n\n{words}\n\n## Goals\n\n"
        (place / f"{name}.md").write_text(f"{text}{links}\n{marked} {number}\n", encoding="utf-8")
    (folder / "one" / "img.png").write_bytes(b"\x89PNG")


@pytest.fixture(scope="module")
def readers(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[tuple[Reader, Reader]]:
    folder = tmp_path_factory.mktemp("engines")
    write_notes(folder)
    with ExitStack() as stack:

        def reader(store: Store) -> Reader:
            stack.callback(store.close)
            for name in ("one", "two"):
                store.write(
                    lambda writer, name=name: writer.collections.add(
                        name=name, path=str(folder / name), pattern="**/*.md", ignore=()
                    )
                )
            with store.reading() as now:
                collections = now.collections.all()
            index_collections(store, collections)
            embed(store, HashEmbedder())
            return stack.enter_context(store.reading())

        sqlite = open_store(folder / "index.sqlite", create=True)
        yield reader(sqlite), reader(open_store(postgres_server.migrated()))


def paths_of(reader: Reader) -> dict[int, str]:
    """The file of each document id: the ids of the engines may differ."""
    return {number: f"{name}/{path}" for number, name, path, _ in reader.documents.identities()}


@pytest.mark.parametrize("collection", ["one", "two", "none"])
def test_links_and_graph_are_the_same(readers: tuple[Reader, Reader], collection: str) -> None:
    facts = []
    for reader in readers:
        links, graph = reader.links, reader.graph
        every = list(links.in_collection(collection))
        keys = {link.target_key for link in every if link.target_key is not None}
        paths = paths_of(reader)
        files = links.files_with_keys(collection, keys)
        one_of_each = graph.one_link_to_each(collection, [*keys, "nobody"])
        in_order = [(number, each.seq) for each in every for number in [each.document_id]]
        assert in_order == sorted(in_order)
        facts.append(
            {
                "links": sorted(link[1:] for link in every),
                "to keys": [link[1:] for link in links.to_keys(collection, keys)],
                "of documents": sorted(link[1:] for link in links.of_documents(list(paths))),
                "files": sorted((path, number and paths[number]) for path, number in files),
                "folders": [links.has_folder(collection, at) for at in ("deep", "dee", "深", "x")],
                "attachments": [links.attachments(collection, limit=limit) for limit in (None, 1)],
                "alone": [document[1:] for document in graph.without_plain_links(collection)],
                "one to each": sorted(map(attrgetter("target_key"), one_of_each)),
                "paths": graph.file_paths(collection),
                "names": sorted(graph.names(collection)),
            }
        )
    assert facts[0] == facts[1]
    assert bool(facts[0]["links"] and facts[0]["alone"]) == (collection != "none")


def test_broken_links_and_orphans_are_the_same(readers: tuple[Reader, Reader]) -> None:
    broken, other_broken = (broken_links(reader, limit=1000) for reader in readers)
    alone, other_alone = (orphans(reader, limit=1000) for reader in readers)
    assert broken == other_broken
    assert {link.missing for link in broken.links} == {"note", "attachment", "section"}
    assert [each.document.path for each in alone.documents] == [
        each.document.path for each in other_alone.documents
    ]


CONDITIONS = ["rating:>1", "rating:<=2.5", "rating:high", "rating:2025-03", "-rating:1", "no:x"]
filters = st.builds(
    Filters,
    collections=st.lists(st.sampled_from(["one", "two"]), max_size=1).map(tuple),
    path=st.sampled_from([None, "deep", "one/深", "two"]),
    tags=st.lists(st.sampled_from(["work", "work/plans", "home"]), max_size=1).map(tuple),
    properties=st.lists(st.sampled_from(CONDITIONS), max_size=2).map(tuple),
)


@settings(max_examples=30)
@given(filters)
def test_conditions_select_the_same(readers: tuple[Reader, Reader], filters: Filters) -> None:
    sets = []
    for reader in readers:
        selection, paths = reader.select(filters), paths_of(reader)
        ids = set(reader.documents.selected_ids(selection))
        assert reader.documents.count_selected(selection) == len(ids)
        sets.append({paths[number] for number in ids})
    assert sets[0] == sets[1]


@settings(max_examples=30)
@given(filters, st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 200, None]))
def test_nearest_documents_are_the_same(
    readers: tuple[Reader, Reader], filters: Filters, seed: int, limit: int | None
) -> None:
    direction = np.random.default_rng(seed).normal(size=DIMENSION)
    answers = []
    for reader in readers:
        model, paths = reader.models.active(), paths_of(reader)
        assert model is not None
        question = bare(model, (direction / np.linalg.norm(direction)).astype(np.float32))
        selection = reader.select(filters)
        hits = nearest_documents(reader, question, selection, limit)
        answers.append({paths[hit.document_id]: hit.nearness for hit in hits})
    assert answers[0] == pytest.approx(answers[1], rel=1e-6)
    assert [*answers[0]][:1] == [*answers[1]][:1]

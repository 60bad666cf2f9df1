"""What a query excludes is not in any of its hits, whatever found them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from qmd import KnowledgeBase, Settings
from qmd.inference.protocols import Expansion
from qmd.values import Filters
from tests.support.corpus import Corpus
from tests.support.embedder import HashEmbedder

FILES = {
    "boat.md": "# Boat\n\nThe red boat sails to the islands.\n",
    "ship.md": "# Ship\n\nA boat of iron, v1.2, 红色的船.\n",
    "raft.md": "# Raft\n\nWood, v1 and 2, afloat.\n",
}


class Asks:
    """An expander that asks for a word and for a meaning that were excluded."""

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        return [Expansion("lex", "islands"), Expansion("vec", "the red boat")]


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    corpus = Corpus(tmp_path_factory.mktemp("excluded"))
    corpus.fill(FILES)
    corpus.kb.embed()
    corpus.kb.close()
    with KnowledgeBase.open(
        corpus.kb.path, Settings(embedder=HashEmbedder(), expander=Asks())
    ) as kb:
        yield kb


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("boat", {"boat.md", "ship.md", "raft.md"}),
        ("boat -red", {"ship.md", "raft.md"}),
        ("boat -sailing", {"ship.md", "raft.md"}),
        ('boat -"red boat"', {"ship.md", "raft.md"}),
        ("boat -v1.2", {"boat.md", "raft.md"}),
        ("boat -红色", {"boat.md", "raft.md"}),
        ("boat -isl* -path:ship", {"raft.md"}),
        ('boat -"," -red', set()),
    ],
)
def test_vectors_and_expansions_bring_no_excluded_word_back(
    kb: KnowledgeBase, query: str, left: set[str]
) -> None:
    assert {hit.path for hit in kb.query(query, limit=None).hits} == left
    assert {hit.path for hit in kb.vsearch(query, min_score=0).hits} == left


def test_the_limit_counts_what_is_left(kb: KnowledgeBase) -> None:
    (hit,) = kb.vsearch("boat sails islands -red", limit=1, min_score=0).hits
    assert hit.path != "boat.md"


def test_a_typed_line_excludes_from_its_own_list_alone(kb: KnowledgeBase) -> None:
    found = kb.query("lex: boat -red\nvec: the red boat", limit=None).hits
    assert "boat.md" in {hit.path for hit in found if hit.match == "semantic"}


# --- nothing but exclusions: what is left, the latest first --------------------------------

DATED = {
    "b.md": "---\ndate: 2025-03-01\ntags: [draft]\n---\n# Beta\n\nThe red sea, v1.2.\n",
    "a.md": "---\ndate: 2025-03-01\n---\n# Alpha\n\nRed and the sea, v1 2.\n",
    # Eastern midnight is still the day before in Greenwich, so this is before the others.
    "east.md": "---\ndate: 2025-03-01T05:00:00+08:00\n---\n# East\n\n数据库与备份, unread.\n",
    "old/z.md": "---\ndate: 2024-01-01\ntags: [draft/two]\n---\n# Zeta\n\n数据 库, islands.\n",
    "other::c.md": "---\ndate: 2026-01-01\n---\n# Gamma\n\nThe the the.\n",
}
LATEST_FIRST = ["other/c.md", "notes/a.md", "notes/b.md", "notes/east.md", "notes/old/z.md"]


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    corpus = Corpus(tmp_path_factory.mktemp("dated"))
    corpus.add_collection("other")
    corpus.fill(DATED)
    corpus.kb.embed()
    corpus.kb.close()
    with KnowledgeBase.open(
        corpus.kb.path, Settings(embedder=HashEmbedder(), reranker=Upside())
    ) as kb:
        yield kb


class Upside:
    """A reranker that would turn any order upside down."""

    name = "upside"

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        return [number / len(passages) for number in range(len(passages))]


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        ("-nowhere", ()),
        ("-red", ("a", "b")),
        ("－red", ("a", "b")),
        ('-"red sea"', ("b",)),
        ("-v1.2", ("b",)),
        ("-isl*", ("old/z",)),
        ("-数据库", ("east",)),
        ("-数据", ("east", "old/z")),
        ("-库", ("east", "old/z")),
        ("-title:alpha", ("a",)),
        ("-path:old", ("old/z",)),
        ("-tag:draft", ("b", "old/z")),
        ("-tag:draft -the", ("b", "old/z", "a", "c")),
        ("-the", ("a", "b", "c")),
        ('-","', ("a", "b", "east", "old/z")),
        ("tag:draft -islands", ("a", "east", "c", "old/z")),
        ("lex: -red", ("a", "b")),
    ],
)
def test_exclusions_alone_list_what_is_left_the_latest_first(
    dated: KnowledgeBase, query: str, gone: tuple[str, ...]
) -> None:
    left = [file for file in LATEST_FIRST if file.partition("/")[2][:-3] not in gone]
    if not query.startswith("lex"):
        assert [hit.file for hit in dated.search(query).hits] == left
        assert [hit.file for hit in dated.vsearch(query).hits] == left
        assert [hit.file for hit in dated.search(query, limit=2).hits] == left[:2]
    reply = dated.query(query)
    assert [hit.file for hit in reply.hits] == left
    assert (reply.query, reply.degraded) == (query, None)
    assert all(hit.match == "exact" and hit.snippet for hit in reply.hits)
    assert [hit.file for hit in dated.query(query, limit=1).hits] == left[:1]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (Filters(collections=("other",)), ["other/c.md"]),
        (Filters(path="old"), ["notes/old/z.md"]),
        (Filters(tags=("draft",)), ["notes/b.md", "notes/old/z.md"]),
        (Filters(after="2025-01-01", before="2025-12-31"), LATEST_FIRST[1:4]),
    ],
)
def test_filters_hold_for_what_is_left(
    dated: KnowledgeBase, filters: Filters, left: list[str]
) -> None:
    for ask in (dated.search, dated.vsearch, dated.query):
        assert [hit.file for hit in ask("-nowhere", filters=filters).hits] == left


def test_beside_a_line_with_something_to_look_for_a_list_by_date_adds_nothing(
    dated: KnowledgeBase,
) -> None:
    found = dated.query("lex: -red\nlex: islands\nvec: islands", limit=None, rerank=False)
    assert found.hits[0].file == "notes/old/z.md"
    words = dated.query("lex: -red\nlex: islands", limit=None)
    assert [hit.file for hit in words.hits] == ["notes/old/z.md"]

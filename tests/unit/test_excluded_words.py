"""What a query excludes is not in any of its hits, whatever found them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from qmd import KnowledgeBase
from qmd.inference.protocols import Expansion
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
    with KnowledgeBase.open(corpus.kb.path, embedder=HashEmbedder(), expander=Asks()) as kb:
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

"""
For all queries: the parts of an explained score add up to it, and scores order the hits.

Each score is recomputed from the JSON that ``--json --explain`` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmd.cli.render_hits import hit_object
from qmd.errors import InferenceError
from qmd.inference.protocols import Expansion
from qmd.kb import KnowledgeBase
from qmd.settings import BackendSettings, Settings
from qmd.values import Hit
from tests.support.corpus import Corpus

pytestmark = pytest.mark.unmeasured  # many examples of what unit tests take

WORDS = ["red", "boat", "sea", "island", "city", "wind", "数据库", "备份", "怎么", "the"]
FILES = {
    f"{number:03}.md": f"# {WORDS[number % 10]}\n\n"
    + " ".join(WORDS[(number * step) % 10] for step in range(1, 3 + number % 17))
    + "\n"
    for number in range(150)
}
# The words are names, too; "red" is a file, an alias and a title of many.
FILES["Red.md"] = "# Colours\n\nof the city\n"
FILES["deep/sea.md"] = "---\naliases: [wind, red]\n---\n\n# Water\n"
FILES["deep/数据库.md"] = "island island\n"
QUERIES = st.lists(
    st.one_of(
        st.sampled_from(
            [*WORDS, '"red boat"', "-sea", "isl*", "title:boat", "nowhere", "C++", "[[Red|x]]"]
        ),
        st.text(max_size=4),
    ),
    min_size=1,
    max_size=6,
).map(" ".join)
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Asks:
    """An expander that always has the same to add."""

    def expand(self, query: str, *, limit: int, timeout_s: float) -> list[Expansion]:
        return [Expansion("lex", "island wind"), Expansion("vec", "a boat at sea")]


class Judges:
    name = "lengths"

    def rerank(self, query: str, passages: list[str], *, timeout_s: float) -> list[float]:
        return [(len(passage) % 10) / 9 for passage in passages]


class Fails:
    name = "nothing"

    def rerank(self, query: str, passages: list[str], *, timeout_s: float) -> list[float]:
        raise InferenceError("it does not answer")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("explained"))
    made.fill(FILES)
    made.kb.embed()
    yield made
    made.kb.close()


def parts(hit: Hit) -> Mapping[str, Any]:
    explain = json.loads(json.dumps(hit_object(hit, None)))["explain"]
    assert isinstance(explain, dict)
    return explain


def scored_by_parts(explain: Mapping[str, Any]) -> float:
    """The blend that the parts make; that of a hit by its name may be raised from it."""
    own = explain["name"]["blend"] if "name" in explain else explain["blend"]
    assert own <= explain["blend"]
    assert isinstance(own, float)
    return own


def check_scores(hits: tuple[Hit, ...]) -> None:
    """The best hit's score is its relevance; the others' are their blends by the same factor."""
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= hit.score <= 1 and 0 <= hit.relevance <= 1 for hit in hits)
    for hit in hits:
        explain, best = parts(hit), hits[0]
        best_blend = parts(best)["blend"]
        assert explain["factor"] == (best.relevance / best_blend if best_blend else None)
        scaled = explain["blend"] * explain["factor"] if best_blend else best.relevance
        assert explain["relevance"]["value"] == hit.relevance
        assert explain["score"] == hit.score == pytest.approx(scaled, abs=0.000051)
    assert not hits or hits[0].score == hits[0].relevance


@MANY
@given(QUERIES)
def test_the_score_of_search_is_what_its_parts_make(corpus: Corpus, query: str) -> None:
    hits = corpus.kb.search(query, explain=True).hits
    check_scores(hits)
    for hit in hits:
        explain = parts(hit)
        if explain["words"]:
            assert explain["bm25"] == fsum(word["score"] for word in explain["words"])
        half = 0.5 * explain["bm25"] / (explain["bm25"] + explain["half"])
        own = scored_by_parts(explain)
        assert own == explain["base"] + half
        assert (own >= 0.5) is (hit.match == "exact")


@MANY
@given(QUERIES, st.booleans())
def test_the_score_of_vsearch_is_what_its_parts_make(
    corpus: Corpus, query: str, expanded: bool
) -> None:
    kb = KnowledgeBase(
        corpus.store,
        Settings(
            embedder=corpus.embedder,
            expander=Asks() if expanded else None,
            backends=BackendSettings(budget_s=60),
        ),
    )
    hits = kb.vsearch(query, min_score=0.0, explain=True).hits
    check_scores(hits)
    if hits and "nearness" not in parts(hits[0]):  # the query only narrows: a list
        assert hits == kb.search(query, explain=True).hits
        return
    for hit in hits:
        explain = parts(hit)
        assert explain["nearness"] == pytest.approx(explain["cosine"] - explain["shared"])
        reach = explain["high"] - explain["low"]
        own = min(1.0, max(0.0, (explain["nearness"] - explain["low"]) / reach))
        assert explain["own"] == pytest.approx(own)
        if "expansion" in explain:
            own = (2 * own + explain["expansion"]["score"]) / 3
        assert explain["blend"] == pytest.approx(own)


@MANY
@given(QUERIES, st.booleans(), st.sampled_from([None, Judges(), Fails()]), st.booleans())
def test_the_score_of_query_is_what_its_parts_make(
    corpus: Corpus, query: str, expanded: bool, judge: Judges | Fails | None, rerank: bool
) -> None:
    kb = KnowledgeBase(
        corpus.store,
        Settings(
            embedder=corpus.embedder,
            expander=Asks() if expanded else None,
            reranker=judge,
            backends=BackendSettings(budget_s=60),
        ),
    )
    hits = kb.query(query, limit=60, rerank=rerank, explain=True).hits
    check_scores(hits)
    if hits and not {"lists", "parts"} & set(parts(hits[0])):  # the query only narrows: a list
        assert hits == kb.search(query, limit=60, explain=True).hits
        return
    by_model = rerank and isinstance(judge, Judges)
    for hit in hits:
        explain = parts(hit)
        if "parts" in explain:
            assert rerank
            assert ("model" in {part["part"] for part in explain["parts"]}) is by_model
            assert ("rerank" in explain) is by_model
            contributions = [part["contribution"] for part in explain["parts"]]
            assert explain["sum"] == fsum(contributions)
            assert min(contributions) >= 0
            blend = explain["sum"] / explain["best"] if explain["best"] else 1.0
            assert scored_by_parts(explain) == pytest.approx(blend)
            continue
        total = fsum(part["contribution"] for part in explain["lists"]) + explain["bonus"]
        assert explain["rrf"] == pytest.approx(total)
        weights = explain["weights"]
        assert weights["rrf"] + weights["rerank"] == pytest.approx(1)
        blend = weights["rrf"] * explain["rrf"] + weights["rerank"] * (explain["rerank"] or 0.0)
        assert scored_by_parts(explain) == pytest.approx(blend)
        if not by_model:
            assert (explain["rerank"], weights) == (None, {"rrf": 1.0, "rerank": 0.0})


@MANY
@given(QUERIES, st.integers(1, 40))
def test_fewer_hits_are_the_first_of_more(corpus: Corpus, query: str, limit: int) -> None:
    for ask in (corpus.kb.search, corpus.kb.query):
        some, more = ask(query, limit=limit).hits, ask(query, limit=100).hits
        assert [hit.path for hit in some] == [hit.path for hit in more[:limit]]


@MANY
@given(QUERIES, st.floats(0, 1))
def test_less_relevant_hits_are_refused_before_the_limit(
    corpus: Corpus, query: str, least: float
) -> None:
    for ask in (corpus.kb.search, corpus.kb.query):
        every = [hit for hit in ask(query, limit=100).hits if hit.relevance >= least]
        some = ask(query, limit=5, min_relevance=least).hits
        # Relevance is shown with four digits.
        if all(abs(hit.relevance - least) > 1e-4 for hit in every):
            assert [hit.path for hit in some] == [hit.path for hit in every[:5]]


def test_the_words_of_an_explanation_name_their_figures(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill({"a.md": "# red\n\nboat", "b.md": "# sea\n\nboat boat", "c.md": "# sea"})
    explained = corpus.kb.search("boat", explain=True).hits[0].explain
    assert explained is not None
    (word,) = explained["words"]
    assert word == {
        "word": "boat",
        "documents": 2,
        "idf": pytest.approx(word["idf"]),
        "score": explained["bm25"],
    }
    assert set(explained) == {
        *(
            "terms",
            "words",
            "bm25",
            "match",
            "base",
            "half",
            "blend",
            "factor",
            "score",
            "relevance",
        )
    }


def test_a_hit_by_meaning_shows_the_nearest_chunk_not_the_first(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    sections = [f"# Part {part}\n\n" + f"{part} " * 400 for part in ("sea", "island", "city")]
    corpus.fill({"a.md": "\n".join(sections)})
    corpus.kb.embed()
    hits = {part: corpus.kb.vsearch(part, min_score=0).hits[0] for part in ("sea", "city")}
    assert hits["city"].line > hits["sea"].line

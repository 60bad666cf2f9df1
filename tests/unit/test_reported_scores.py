"""The reported score: the blend, scaled so that the best hit's score is its relevance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp
from operator import mul
from pathlib import Path

import pytest

from qmd.search.candidates import Candidate
from qmd.search.judge import (
    BY_CHANCE,
    LEAST_BY_EVIDENCE,
    LEAST_CONFIDENCE,
    ONE_OF_MANY,
    Grounds,
    features,
    judge,
)
from qmd.search.query import Script, parse_string
from qmd.search.words import QueryWords
from qmd.values import SearchReply, SearchRequest
from qmd.values.search import VSEARCH_MIN_SCORE
from tests.support.corpus import Corpus

NOTICE = "Nothing here seems to answer this; the nearest are:"
FILES = {
    "boat.md": "# Boat\n\nThe red boat sails to the islands.\n",
    "ship.md": "---\ntags: [sea]\n---\n# Vessel\n\nA ship for the ocean, and a boat.\n",
    "city.md": "---\ntags: [land]\n---\n# City\n\nHouses and streets.\n",
    "数据库.md": "# 数据库\n\n数据库的备份与迁移。\n",
}
#: Only "boat" is in the collection.
HOPELESS = "boat zeppelin quasar marmalade trombone glacier orchid sonata walnut monsoon"

Search = Callable[..., SearchReply]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    corpus = Corpus(tmp_path_factory.mktemp("scores"))
    corpus.fill(FILES)
    corpus.kb.embed()
    yield corpus
    corpus.kb.close()


@pytest.fixture(params=["search", "vsearch", "query"])
def search(corpus: Corpus, request: pytest.FixtureRequest) -> Search:
    return getattr(corpus.kb, request.param)  # type: ignore[no-any-return]


def least_confidence(search: Search) -> float:
    return LEAST_BY_EVIDENCE if search.__name__ == "query" else LEAST_CONFIDENCE


def document_id(corpus: Corpus, path: str) -> int:
    return next(each.id for each in corpus.kb.documents() if each.path == path)


@pytest.mark.parametrize("query", ["red boat", "数据库", "boat ocean", HOPELESS])
def test_the_score_of_the_best_hit_is_its_relevance(search: Search, query: str) -> None:
    hits = search(query, min_score=0).hits
    assert hits[0].score == hits[0].relevance
    assert all(hit.score <= hits[0].score for hit in hits)


def test_scores_depend_neither_on_the_limit_nor_on_the_minimum_score(search: Search) -> None:
    every = search("boat ocean", limit=None, min_score=0).hits
    assert len(every) > 1
    assert search("boat ocean", limit=1, min_score=0).hits == every[:1]
    for hit in every:
        some = search("boat ocean", limit=None, min_score=hit.score).hits
        assert some == tuple(each for each in every if each.score >= hit.score)


def test_a_minimum_relevance_makes_the_best_that_is_left_the_best_hit(corpus: Corpus) -> None:
    """As any filter does: a document that is not relevant enough is no hit at all."""
    ids = [document_id(corpus, path) for path in ("city.md", "boat.md", "ship.md")]
    candidates = [
        Candidate(ids[0], "semantic", blend=0.8, relative_nearness=-0.5),
        Candidate(ids[1], "exact", blend=0.6, relative_nearness=1.0),
        Candidate(ids[2], "semantic", blend=0.3, relative_nearness=1.0),
    ]
    words = QueryWords(parse_string("zeppelin"), {}, len(FILES))

    def scores(**options: float) -> list[tuple[int, float]]:
        with corpus.store.reading() as reader:
            request = SearchRequest("zeppelin", **options)  # type: ignore[arg-type]
            judged = judge(reader, request, candidates, words)
        return [(each.document_id, each.score) for each in judged]

    with corpus.store.reading() as reader:
        far, near, other = judge(reader, SearchRequest("zeppelin"), candidates, words)
    assert far.relevance < other.relevance < near.relevance
    assert far.score == far.relevance
    assert near.score == pytest.approx(far.relevance * 0.6 / 0.8, abs=1e-4)
    assert scores(min_relevance=far.relevance + 0.001) == [
        (ids[1], near.relevance),
        (ids[2], pytest.approx(near.relevance * 0.3 / 0.6, abs=1e-4)),
    ]
    assert scores(min_relevance=1.0) == []


def test_if_all_blends_are_zero_each_score_is_the_confidence(corpus: Corpus) -> None:
    ids = [document_id(corpus, path) for path in ("city.md", "boat.md")]
    candidates = [Candidate(number, "semantic", blend=0.0, relative_nearness=0.0) for number in ids]
    words = QueryWords(parse_string("zeppelin"), {}, len(FILES))
    with corpus.store.reading() as reader:
        judged = judge(reader, SearchRequest("zeppelin"), candidates, words)
    assert [each.score for each in judged] == [judged[0].relevance] * 2


@pytest.mark.parametrize("query", ["tag:sea", "-boat", "tag:land -boat", "-tag:sea"])
def test_what_a_query_without_text_lists_is_all_that_was_asked_for(
    search: Search, query: str
) -> None:
    reply = search(query, explain=True)
    assert reply.hits
    assert reply.notice is None
    for hit in reply.hits:
        assert (hit.score, hit.relevance) == (1, 1)
        assert hit.explain is not None
        assert hit.explain["blend"] * hit.explain["factor"] == 1


@pytest.mark.parametrize("query", ["sailing boats oats", "what streets are there", "数据迁移"])
def test_of_a_document_vsearch_and_query_know_the_same(corpus: Corpus, query: str) -> None:
    """But for the lead: relevance follows from these."""
    names = ("coverage", "nearness", "documents", "title", "held", "rest", "script")
    replies = (
        corpus.kb.query(query, limit=None, explain=True),
        corpus.kb.vsearch(query, limit=None, min_score=0, explain=True),
    )
    by_both, by_meaning = (
        {hit.file: [(hit.explain or {})["relevance"][name] for name in names] for hit in reply.hits}
        for reply in replies
    )
    assert by_meaning == by_both
    assert len(by_both) == len(FILES)


@pytest.mark.parametrize(
    ("query", "script"),
    [("red boat", "alphabet"), ("数据库 备份", "characters"), ("the red boat 数据", "alphabet")],
)
def test_relevance_is_computed_with_the_constants_of_the_query_s_script(
    search: Search, query: str, script: Script
) -> None:
    hits = search(query, min_score=0, explain=True).hits
    assert hits
    for hit in hits:
        assert hit.explain is not None
        shown = hit.explain["relevance"]
        assert shown["script"] == script
        grounds = Grounds(*(shown[name] for name in Grounds._fields))
        total = sum(map(mul, grounds.constants, (1.0, *features(grounds).values())))
        expected = 1 / (1 + exp(-total))
        if shown["nearness"] is None and not shown["rest"] and shown["coverage"] < ONE_OF_MANY:
            expected = min(expected, BY_CHANCE)
        assert shown["value"] == pytest.approx(expected, abs=1e-4)


def test_a_part_of_a_word_covers_nothing_of_a_query(corpus: Corpus) -> None:
    """ "oat" is in "boat", "cit" in "city"."""
    hits = corpus.kb.vsearch("oat cit", min_score=0, explain=True).hits
    assert len(hits) == len(FILES)
    for hit in hits:
        assert hit.explain is not None
        assert hit.explain["relevance"]["coverage"] == 0


# --- the notice ----------------------------------------------------------------------


def test_a_reply_that_seems_to_answer_nothing_says_so(search: Search) -> None:
    reply = search(HOPELESS, min_score=0)
    assert reply.hits
    assert reply.hits[0].score < least_confidence(search)
    assert reply.notice == NOTICE


@pytest.mark.parametrize("query", ["red boat", "数据库 备份", "The red boat sails to the islands."])
def test_a_reply_with_a_likely_answer_has_no_notice(search: Search, query: str) -> None:
    reply = search(query)
    assert reply.hits[0].score >= least_confidence(search)
    assert reply.notice is None


@pytest.mark.parametrize(
    "query",
    [
        *("the", "The to", "or the", "to it's", "的", "这是什么"),
        *("tell me about", "explain", "I want to know", "请告诉我", "我想知道", "请问", "介绍一下"),
    ],
)
def test_words_that_say_nothing_answer_nothing(search: Search, query: str) -> None:
    reply = search(query, min_score=0)
    assert all(hit.relevance <= BY_CHANCE for hit in reply.hits)
    assert reply.notice == (NOTICE if reply.hits else None)


@pytest.mark.parametrize("lines", ["lex: the\nvec: red boat", "vec: 什么\nlex: red boat"])
def test_of_typed_lines_the_first_that_says_something_counts(corpus: Corpus, lines: str) -> None:
    assert max(hit.relevance for hit in corpus.kb.query(lines).hits) > BY_CHANCE
    assert corpus.kb.query("lex: the\nvec: what is").notice == NOTICE


@pytest.mark.parametrize("query", ["", "zeppelin", HOPELESS])
def test_a_reply_without_hits_has_no_notice(search: Search, query: str) -> None:
    reply = search(query, min_score=1)
    assert (reply.hits, reply.notice) == ((), None)


def test_the_documentation_names_the_figures_of_the_code() -> None:
    docs = Path(__file__).parents[2] / "docs"
    search, mcp = (docs.joinpath(page).read_text("utf-8") for page in ("search.md", "mcp.md"))
    thresholds = (
        f"below {LEAST_CONFIDENCE} (in `query` with vectors {LEAST_BY_EVIDENCE}), the reply"
    )
    assert f"relevance of every hit is {thresholds} has a `notice`" in search
    assert f"The default of `--min-score` is 0, and {VSEARCH_MIN_SCORE} in `vsearch`" in search
    assert f"| 0; vsearch {VSEARCH_MIN_SCORE} |" in mcp


def test_the_notice_does_not_depend_on_the_limit(search: Search) -> None:
    assert search(HOPELESS, limit=1, min_score=0).notice == NOTICE
    assert search("red boat", limit=None, min_score=0).notice is None

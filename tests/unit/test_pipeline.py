"""Vectors, and `query` over both retrievers, with its hooks and what it says when parts fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from qmd import KnowledgeBase
from qmd.errors import (
    InferenceError,
    ModelMismatchError,
    TransientInferenceError,
    VectorIndexMissingError,
)
from qmd.inference.protocols import Expander, Expansion, Reranker
from qmd.search.evidence import WEIGHTS
from qmd.search.meaning.nearness import bare
from qmd.search.meaning.retrieval import nearest_documents, require_index
from qmd.search.question import RUN_DEPTH
from qmd.search.rank import BEFORE
from qmd.settings import BackendSettings, Settings
from qmd.store import Writer
from qmd.store.sql.vectors import pack_vectors
from qmd.values import Filters, ModelSpec
from tests.support.corpus import Corpus
from tests.support.embedder import HashEmbedder

FILES = {
    "boat.md": "# Boat\n\nThe red boat sails to the islands.\n",
    "ship.md": "# Vessel\n\nA ship for the ocean.\n",
    "city.md": "# City\n\nHouses and streets.\n",
    "数据库.md": "# 数据库\n\n数据库的备份与迁移。\n",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    made = Corpus(tmp_path)
    made.fill(FILES)
    yield made
    made.kb.close()


@dataclass
class Words:
    """An expander that answers with given expansions, or fails."""

    answer: Sequence[Expansion] = ()
    error: InferenceError | None = None
    asked: list[str] = field(default_factory=list)

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        self.asked.append(query)
        if self.error is not None:
            raise self.error
        return self.answer[:limit]


@dataclass
class Judge:
    """A reranker that gives ``high`` to passages with a word and ``low`` to others, or fails."""

    word: str
    high: float = 1.0
    low: float = 0.0
    error: InferenceError | None = None
    lost: int = 0
    seen: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "judge"

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        self.seen.append((query, list(passages)))
        if self.error is not None:
            raise self.error
        scores = [self.high if self.word in passage else self.low for passage in passages]
        return scores[self.lost :]


def with_models(
    corpus: Corpus, expander: Expander | None = None, reranker: Reranker | None = None
) -> KnowledgeBase:
    return KnowledgeBase(
        corpus.store,
        Settings(
            embedder=corpus.embedder,
            expander=expander,
            reranker=reranker,
            backends=BackendSettings(budget_s=60),
        ),
    )


# --- vectors -------------------------------------------------------------------------


def test_without_vectors_vsearch_says_what_to_do(corpus: Corpus) -> None:
    with pytest.raises(VectorIndexMissingError) as caught:
        corpus.kb.vsearch("boat")
    assert str(caught.value) == (
        "Vector index not found. Run 'qmd embed' first to create embeddings."
    )


def test_without_collections_vsearch_says_how_to_add_one(tmp_path: Path) -> None:
    with (
        KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb,
        pytest.raises(VectorIndexMissingError) as caught,
    ):
        kb.vsearch("boat")
    assert "qmd up FOLDER" in str(caught.value.hint)


def test_without_vectors_query_answers_from_full_text_and_says_so(corpus: Corpus) -> None:
    reply = corpus.kb.query("red boat")
    assert reply.degraded == (
        "Answered from full text alone:"
        " Vector index not found. Run 'qmd embed' first to create embeddings."
    )
    assert reply.needs_embedding == len(FILES)
    assert [hit.path for hit in reply.hits][:1] == ["boat.md"]


class OtherModel(HashEmbedder):
    spec = ModelSpec(name="other", fingerprint="other-1", dimension=384, max_tokens=512)


def test_vectors_of_another_model_never_mix(corpus: Corpus) -> None:
    corpus.kb.embed()
    other = KnowledgeBase(corpus.store, Settings(embedder=OtherModel()))
    with pytest.raises(ModelMismatchError, match="test-hash, not with other"):
        other.vsearch("boat")
    reply = other.query("boat")
    assert reply.degraded
    assert "test-hash" in reply.degraded
    assert reply.hits[0].path == "boat.md"


def test_a_meaning_hit_is_marked_and_its_blend_is_its_mapped_cosine(corpus: Corpus) -> None:
    corpus.kb.embed()
    reply = corpus.kb.vsearch("the red boat sails", min_score=0.0, explain=True)
    best = reply.hits[0]
    assert (best.path, best.match) == ("boat.md", "semantic")
    assert best.explain is not None
    assert best.explain["blend"] == pytest.approx(best.explain["cosine"], abs=1e-3)
    assert best.score == best.relevance
    assert reply.needs_embedding == 0


def test_min_score_holds_and_an_explicit_0_is_honoured(corpus: Corpus) -> None:
    corpus.kb.embed()
    every = corpus.kb.vsearch("red boat", limit=None, min_score=0.0).hits
    assert len(every) == len(FILES)
    some = corpus.kb.vsearch("red boat", limit=None, min_score=0.2).hits
    assert [hit.file for hit in some] == [hit.file for hit in every if hit.score >= 0.2]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """600 documents in three collections with random vectors, written straight to the store."""
    made = Corpus(tmp_path_factory.mktemp("crowd"))
    names = ["notes", "second", "third"]
    made.add_collection("second")
    made.add_collection("third")
    made.fill({f"{names[n % 3]}::{n}.md": f"# {n}\n\nbody of {n}\n" for n in range(600)})
    random = np.random.default_rng(7)

    def run(writer: Writer) -> None:
        model = writer.models.begin(made.embedder.spec)
        waiting = writer.embeddings.waiting(model, 1000)
        matrix = random.normal(size=(len(waiting), 384)).astype(np.float32)
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        packed = pack_vectors(matrix)
        writer.embeddings.put(
            model,
            [(chunk.id, chunk.hash) for chunk in waiting],
            {chunk.hash: vector for chunk, vector in zip(waiting, packed, strict=True)},
        )

    made.store.write(run)
    yield made
    made.kb.close()


@pytest.mark.parametrize("names", [(), ("second",), ("second", "third")])
def test_the_int8_index_with_exact_rescoring_finds_the_true_nearest(
    crowd: Corpus, names: tuple[str, ...]
) -> None:

    random = np.random.default_rng(11)
    found = 0
    with crowd.store.reading() as reader:
        model = require_index(reader, crowd.embedder.spec)
        where = reader.select(Filters(collections=names))
        for _ in range(30):
            query = random.normal(size=384).astype(np.float32)
            query /= np.linalg.norm(query)
            near = nearest_documents(reader, bare(model, query), where, 10)
            true = nearest_documents(reader, bare(model, query), where, None)
            assert len(true) == 200 * (len(names) or 3)
            assert [hit.cosine for hit in near] == sorted(
                (hit.cosine for hit in near), reverse=True
            )
            found += len({hit.document_id for hit in near} & {hit.document_id for hit in true[:10]})
    assert found / 300 >= 0.99


def test_a_limit_beyond_what_the_index_gives_is_still_filled(crowd: Corpus) -> None:
    assert len(crowd.kb.vsearch("body", limit=1000, min_score=0.0).hits) == len(
        crowd.kb.vsearch("body", limit=None, min_score=0.0).hits
    )


def test_a_long_document_does_not_crowd_out_the_others(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    paragraph = "The red boat sails to the islands again and again. " * 25
    long = "\n\n".join(f"## Part {n}\n\n{n} {paragraph}" for n in range(300))
    corpus.fill({"long.md": long, **{f"{n}.md": f"# {n}\n\nother words\n" for n in range(5)}})
    corpus.kb.embed()
    hits = corpus.kb.vsearch("red boat islands", limit=6, min_score=0.0).hits
    assert len({hit.path for hit in hits}) == 6
    assert hits[0].path == "long.md"
    corpus.kb.close()


# --- query ---------------------------------------------------------------------------


def test_the_parts_of_an_explained_score_add_up(corpus: Corpus) -> None:
    kb = with_models(corpus, Words([Expansion("lex", "ship")]), Judge("ocean"))
    reply = kb.query("red boat", limit=None, explain=True)  # without vectors
    assert len(reply.hits) >= 2
    for hit in reply.hits:
        assert hit.explain is not None
        parts, weights = hit.explain, hit.explain["weights"]
        total = sum(part["contribution"] for part in parts["lists"]) + parts["bonus"]
        assert parts["rrf"] == pytest.approx(total)
        blend = weights["rrf"] * parts["rrf"] + weights["rerank"] * (parts["rerank"] or 0.0)
        assert parts["blend"] == pytest.approx(blend)
        assert hit.score == pytest.approx(blend * parts["factor"], abs=1e-4)


def test_without_explain_there_is_no_explanation(corpus: Corpus) -> None:
    assert {hit.explain for hit in corpus.kb.query("boat").hits} == {None}


def test_expansions_are_searched_with_weight_1_and_marked(corpus: Corpus) -> None:
    corpus.kb.embed()
    expander = Words([Expansion("lex", "ship"), Expansion("vec", "houses and streets")])
    kb = with_models(corpus, expander)
    reply = kb.query("red boat", limit=None, rerank=False, explain=True)
    assert expander.asked == ["red boat"]
    lists = [part for hit in reply.hits for part in (hit.explain or {})["lists"]]
    assert {(p["source"], p["query"], p["type"], p["weight"]) for p in lists} >= {
        ("fts", "red boat", "original", 2.0),
        ("vec", "red boat", "original", 2.0),
        ("fts", "ship", "expansion", 1.0),
        ("vec", "houses and streets", "expansion", 1.0),
    }
    assert "ship.md" in {hit.path for hit in reply.hits}
    assert reply.degraded is None


@pytest.mark.parametrize("search", ["vsearch", "query", "query --no-rerank"])
def test_an_expansion_makes_no_hit_more_relevant(corpus: Corpus, search: str) -> None:
    """A made-up answer resembles some document, however hopeless the question is."""
    corpus.kb.embed()
    expander = Words([Expansion("lex", "ship"), Expansion("hyde", "A ship for the ocean.")])

    def relevances(expand: bool) -> dict[str, float]:
        kb, options = with_models(corpus, expander), {"expand": expand, "min_score": 0}
        if search == "vsearch":
            hits = kb.vsearch("zeppelin quasar", **options).hits
        else:
            hits = kb.query("zeppelin quasar", rerank=search == "query", **options).hits
        return {hit.path: hit.relevance for hit in hits}

    assert relevances(True) == relevances(False)
    assert len(relevances(True)) == len(FILES)


def test_as_evidence_all_expansions_of_a_retriever_count_half_as_much_as_the_question(
    corpus: Corpus,
) -> None:
    corpus.kb.embed()
    expander = Words([Expansion("lex", "ship"), Expansion("lex", "houses"), Expansion("vec", "x")])
    reply = with_models(corpus, expander).query("red boat", limit=None, explain=True)
    assert len(reply.hits) == len(FILES)
    for hit in reply.hits:
        weights = [
            (part["part"], part["query"], part["type"], part["weight"])
            for part in (hit.explain or {})["parts"]
        ]
        assert weights[:5] == [
            ("words", "red boat", "original", WEIGHTS["words"]),
            ("words", "ship", "expansion", WEIGHTS["words"] / 4),
            ("words", "houses", "expansion", WEIGHTS["words"] / 4),
            ("nearest", "red boat", "original", WEIGHTS["nearest"]),
            ("nearest", "x", "expansion", WEIGHTS["nearest"] / 2),
        ]


def test_an_expansion_obeys_the_filters(corpus: Corpus) -> None:
    expander = Words([Expansion("lex", "ship"), Expansion("vec", "ship")])
    corpus.kb.embed()
    reply = with_models(corpus, expander).query("red boat", filters=Filters(path="boat.md"))
    assert [hit.path for hit in reply.hits] == ["boat.md"]


def test_the_reranker_sees_the_best_candidates_and_changes_the_order(corpus: Corpus) -> None:
    corpus.kb.embed()
    plain = [hit.path for hit in corpus.kb.query("red boat").hits]
    assert plain[0] == "boat.md"
    judge = Judge("ocean")
    kb = with_models(corpus, reranker=judge)
    reply = kb.query("red boat", candidates=3, intent="about vessels", explain=True)
    ((asked, passages),) = judge.seen
    assert asked == "about vessels\nred boat"
    assert len(passages) == 3
    assert passages[0].startswith("Boat\n")
    assert reply.degraded is None
    scores = {hit.path: (hit.explain or {})["rerank"] for hit in reply.hits}
    assert sum(score is not None for score in scores.values()) == 3
    assert scores["boat.md"] == 0.0


def test_while_the_vectors_of_the_best_by_words_are_coming_ranks_decide(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(RUN_DEPTH):
        (notes / f"old {number}.md").write_text(f"# Old {number}\n\nslow log\n")
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        kb.embed()
        for number in range(3):
            (notes / f"new {number}.md").write_text("# Zebra\n\nThe zebra crossing.\n")
        kb.index()
        first, *_ = kb.query("zebra crossing", explain=True).hits
        assert first.path.startswith("new")
        assert first.relevance > 0.5
        assert "rrf" in (first.explain or {})
        kb.embed()
        first, *_ = kb.query("zebra crossing", explain=True).hits
        assert "parts" in (first.explain or {})


def test_without_vectors_the_reranker_sees_the_lines_around_the_words(tmp_path: Path) -> None:
    lines = [
        f"Line {number} tells nothing of it at all, as many others do.\n" for number in range(300)
    ]
    lines[200] = "The zebra lives here.\n"
    judge = Judge("zebra")
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", create=True, settings=Settings(reranker=judge)
    ) as kb:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "long.md").write_text("# Long\n\n" + "".join(lines))
        kb.add_collection(tmp_path / "notes", name="notes")
        kb.index()
        kb.query("zebra")
    ((_, (passage,)),) = judge.seen
    title, before, after = passage.partition("The zebra lives here.\n")[0].partition("\n")
    assert (title, before) == ("Long", "\n")
    assert 100 < len(after) <= BEFORE


def test_the_hooks_can_be_switched_off(corpus: Corpus) -> None:
    expander, judge = Words([Expansion("lex", "ship")]), Judge("ocean")
    with_models(corpus, expander, judge).query("boat", rerank=False, expand=False)
    assert expander.asked == []
    assert judge.seen == []


@pytest.mark.parametrize(("high", "low"), [(50.0, -3.0), (float("inf"), float("nan"))])
def test_a_reranker_whose_scores_are_out_of_range_is_left_out(
    corpus: Corpus, high: float, low: float
) -> None:
    plain = corpus.kb.query("red boat houses ship")
    kb = with_models(corpus, reranker=Judge("red", high=high, low=low))
    reply = kb.query("red boat houses ship")
    assert "between 0 and 1" in (reply.degraded or "")
    assert [hit.file for hit in reply.hits] == [hit.file for hit in plain.hits]


@pytest.mark.parametrize("lost", [1, 2])
def test_a_reranker_that_loses_scores_is_left_out(corpus: Corpus, lost: int) -> None:
    plain = corpus.kb.query("red boat houses ship")
    reply = with_models(corpus, reranker=Judge("red", lost=lost)).query("red boat houses ship")
    assert reply.degraded
    assert [hit.file for hit in reply.hits] == [hit.file for hit in plain.hits]


def test_failing_hooks_take_away_their_own_part_alone(corpus: Corpus) -> None:
    corpus.kb.embed()
    plain = corpus.kb.query("red boat")
    error = TransientInferenceError("the server does not answer")
    for kb in (
        with_models(corpus, expander=Words(error=error)),
        with_models(corpus, reranker=Judge("x", error=error)),
    ):
        reply = kb.query("red boat")
        assert reply.degraded
        assert "the server does not answer" in reply.degraded
        assert reply.hits == plain.hits


def test_an_embedder_that_fails_leaves_full_text(corpus: Corpus) -> None:
    class Broken(HashEmbedder):
        def embed_query(self, text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
            raise TransientInferenceError("no memory")

    corpus.kb.embed()
    reply = KnowledgeBase(corpus.store, Settings(embedder=Broken())).query("red boat")
    assert reply.degraded == "Answered from full text alone: no memory"
    assert [hit.path for hit in reply.hits][:1] == ["boat.md"]


@pytest.mark.parametrize("query", ["", "  ", '""'])
def test_a_blank_query_finds_nothing_and_is_no_error(corpus: Corpus, query: str) -> None:
    corpus.kb.embed()
    for command in (corpus.kb.search, corpus.kb.vsearch, corpus.kb.query):
        assert command(query).hits == ()


def test_a_hit_carries_the_contexts_above_it(corpus: Corpus) -> None:
    corpus.kb.add_context("/", "everything")
    corpus.kb.add_context("qmd://notes", "my notes")
    corpus.kb.add_context("qmd://notes/boa", "no component")
    (hit,) = corpus.kb.search('"red boat"').hits
    assert hit.context == "everything\n\nmy notes"


# --- lines ---------------------------------------------------------------------------


def test_lines_address_each_retriever_and_no_expander_is_asked(corpus: Corpus) -> None:
    corpus.kb.embed()
    expander, judge = Words([Expansion("lex", "city")]), Judge("ocean")
    query = "intent: water\nlex: ship -red\nvec: houses and\n  streets\nhyde: a boat\nlex: 迁移"
    reply = with_models(corpus, expander, judge).query(query, limit=None, explain=True)
    assert expander.asked == []
    assert judge.seen[0][0] == "water\nship"
    parts = [part for hit in reply.hits for part in (hit.explain or {})["parts"]]
    assert {(p["part"], p["query"], p["type"]) for p in parts} == {
        ("words", "ship -red", "original"),
        ("words", "迁移", "expansion"),
        ("nearest", "houses and streets", "original"),
        ("nearest", "a boat", "expansion"),
        ("whole", "houses and streets", "original"),
        ("opening", "houses and streets", "original"),
        ("model", "water\nship", "original"),
    }
    assert reply.query == query


@pytest.mark.parametrize(
    ("query", "sources"),
    [("lex: red boat", {"fts"}), ("vec: red boat", {"vec"}), ("hyde: red boat", {"vec"})],
)
def test_a_line_for_one_retriever_asks_that_one_alone(
    corpus: Corpus, query: str, sources: set[str]
) -> None:
    corpus.kb.embed()
    reply = corpus.kb.query(query, explain=True, rerank=False)
    assert reply.hits[0].path == "boat.md"
    assert {p["source"] for hit in reply.hits for p in (hit.explain or {})["lists"]} == sources


@pytest.mark.parametrize("query", ["lex:", "boat\nlex: city", "flex: boat"])
def test_what_is_not_written_in_lines_is_an_ordinary_query(corpus: Corpus, query: str) -> None:
    reply = corpus.kb.query(query, explain=True, rerank=False)
    queries = {p["query"] for hit in reply.hits for p in (hit.explain or {})["lists"]}
    assert queries <= {query}


def test_an_intent_alone_is_what_is_asked_for(corpus: Corpus) -> None:
    corpus.kb.embed()
    reply = corpus.kb.query("intent: boat", explain=True, rerank=False)
    queries = {p["query"] for hit in reply.hits for p in (hit.explain or {})["lists"]}
    assert (reply.hits[0].path, queries) == ("boat.md", {"boat"})


@pytest.mark.parametrize(
    "query",
    [
        "LEX: ship\r\n\r\nVec: houses\r\n",
        "\n \n  Lex:ship\nhYDe: houses",
        "lex：ship\nvec： houses",
    ],
)
def test_lines_are_read_whatever_their_case_ends_and_blanks(corpus: Corpus, query: str) -> None:
    corpus.kb.embed()
    reply = corpus.kb.query(query, limit=None, explain=True, rerank=False)
    lists = [part for hit in reply.hits for part in (hit.explain or {})["lists"]]
    assert {(p["source"], p["query"]) for p in lists} == {("fts", "ship"), ("vec", "houses")}


@pytest.mark.parametrize("query", ["vec: red boat", "hyde: red boat", "intent: red boat"])
def test_what_only_vectors_were_asked_is_asked_of_full_text_without_them(
    corpus: Corpus, query: str
) -> None:
    reply = corpus.kb.query(query)
    assert reply.hits[0].path == "boat.md"
    assert reply.degraded


def test_lines_without_vectors_answer_from_full_text(corpus: Corpus) -> None:
    reply = corpus.kb.query("lex: boat\nvec: houses")
    assert [hit.path for hit in reply.hits] == ["boat.md"]
    assert reply.degraded

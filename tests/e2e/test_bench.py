"""`qmd bench`: figures of a small vault that can be checked by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from qmd import KnowledgeBase, Settings
from qmd.cli.bench import render_bench
from qmd.evaluate.fixtures import JudgedQuestion, Judgments
from qmd.evaluate.run import SYSTEMS, WITHOUT, BenchReport, Measured, Relevance, run
from qmd.inference.protocols import Expansion
from qmd.values.search import EvidencePart
from tests.support.cli import Scratch, filled
from tests.support.embedder import HashEmbedder
from tests.support.tiny_onnx import write_cross_encoder

QUERIES = [
    {"id": "plan", "query": "road map", "relevant": {"notes/plan.md": 1}},
    {"id": "second", "query": "parser", "file": "api.md"},
    {"id": "backup", "query": "备份", "file": "zh/备份.md"},
    {"id": "absent", "query": "quantum gravity", "relevant": {}},
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    scratch = filled(tmp_path_factory.mktemp("bench"))
    scratch.write("questions.json", json.dumps({"queries": QUERIES}))
    scratch.write("one.json", json.dumps([QUERIES[0]]))
    return scratch


def report(scratch: Scratch, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = scratch.ok("bench", "--json", *args).json()
    return found


def test_all_systems_are_measured_side_by_side(scratch: Scratch) -> None:
    found = report(scratch, "questions.json")
    assert (found["questions"], found["answerable"], found["documents"]) == (4, 3, 5)
    # Nothing was embedded, so there is no evidence to leave out.
    assert list(found["systems"]) == ["search", "query", "query --no-rerank"]
    assert list(found["left_out"]) == ["vsearch"]
    search = found["systems"]["search"]
    ranks = {answer["id"]: answer["rank"] for answer in search["answers"]}
    assert ranks["plan"] == ranks["backup"] == 1
    assert ranks["absent"] is None
    mrr = sum(1 / ranks[name] for name in ("plan", "second", "backup")) / 3
    assert search["metrics"]["MRR@10"] == pytest.approx(mrr, abs=1e-6)
    assert search["metrics"]["recall@100"] == 1
    assert set(search["differences"]["MRR@10"]) == {"mean", "low", "high"}
    assert found["systems"]["query"]["differences"] == {}  # the baseline
    assert "full text alone" in found["systems"]["query"]["notes"][0]


def test_it_says_the_same_every_time(scratch: Scratch) -> None:
    def timeless() -> str:
        found = report(scratch, "questions.json")
        for system in found["systems"].values():
            del system["median_ms"]
            for answer in system["answers"]:
                del answer["ms"]
        return json.dumps(found)

    assert timeless() == timeless()


def test_the_table_has_a_row_for_each_system_and_says_how_sure_it_is(scratch: Scratch) -> None:
    result = scratch.ok("bench", "questions.json", "--system", "search")
    lines = result.out.splitlines()
    assert lines[0] == "questions.json: 4 questions, 5 documents"
    assert lines[2].split() == ["nDCG@10", "MRR@10", "S@1", "S@10", "R@100", "ms"]
    assert [line.split()[0] for line in lines[3:5]] == ["search", "query"]
    assert "Difference from query, 95 % interval (* leaves out 0)" in lines
    assert "3 questions: too few to rely on intervals." in lines
    assert "Relevance of the best hit (1 question without an answer)" in lines
    assert result.err == ""


def test_the_baseline_is_chosen_and_always_takes_part(scratch: Scratch) -> None:
    found = report(scratch, "questions.json", "--baseline", "search", "--system", "query")
    assert (found["baseline"], list(found["systems"])) == ("search", ["search", "query"])
    assert found["systems"]["search"]["differences"] == {}


def test_a_baseline_that_cannot_answer_is_replaced(scratch: Scratch) -> None:
    args = ("questions.json", "--baseline", "vsearch", "--system", "search")
    assert report(scratch, *args)["baseline"] == "search"
    assert "left out vsearch" in scratch.call("bench", *args).err


def test_a_collection_and_a_limit_narrow_it_down(scratch: Scratch) -> None:
    found = report(scratch, "questions.json", "-c", "notes", "-n", "2", "--system", "search")
    assert (found["documents"], found["questions"]) == (3, 2)
    result = scratch.call("bench", "questions.json", "-c", "notes")
    assert "not in the database, so counted as not found: 1 judged document (api.md)" in result.err


def test_topics_and_qrels_of_trec_are_read(scratch: Scratch) -> None:
    scratch.write("topics.tsv", "t1\troad map\n")
    scratch.write("qrels.txt", "t1 0 notes/plan.md 1\n")
    found = report(scratch, "topics.tsv", "--qrels", "qrels.txt", "--system", "search")
    assert found["systems"]["search"]["metrics"]["nDCG@10"] == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["missing.json"], "There is no file missing.json"),
        (["foreign.json"], "None of the documents that foreign.json names is in the database"),
        (["own.json", "-c", "notes"], "-c has no meaning"),
        (["questions.json", "-c", "nets"], "Collection not found: nets"),
        (["questions.json", "--system", "ask"], "'ask' is not one of"),
        (["questions.json", "-n", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_measured_is_said(scratch: Scratch, args: list[str], said: str) -> None:
    scratch.write("foreign.json", '[{"query": "q", "file": "elsewhere.md"}]')
    scratch.write("own.json", '{"queries": [{"query": "q", "file": "a"}], "documents": {"a": "q"}}')
    result = scratch.call("bench", *args)
    assert result.code in (1, 2)
    assert said in result.err


def test_documents_of_the_fixture_are_asked_and_nothing_else(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    fixture = {
        "queries": [{"query": "sourdough", "file": "bread"}, {"query": "酵母", "file": "bread"}],
        "documents": {
            "bread": "# Bread\n\nSourdough 酵母",
            "boat": "# Boat\n\nSail",
            "\ud800": "x",
        },
    }
    scratch.write("own.json", json.dumps(fixture))
    words = ("--system", "search", "--baseline", "search")
    for _ in range(2):  # the second time what was kept is used again
        found = report(scratch, "own.json", "--keep", "kept", *words)
        assert found["systems"]["search"]["metrics"]["MRR@10"] == 1
        assert (found["documents"], found["unknown"]) == (3, [])
    (database,) = (tmp_path / "kept").glob("*.sqlite")
    assert database.name.startswith("own.json-")
    assert not scratch.database.exists()
    assert report(scratch, "own.json", *words)["documents"] == 3
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home", "kept", "own.json"]


ANIMALS = ("boat", "bread", "birch")


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[tuple[Path, Judgments]]:
    """A database with vectors, and questions about it."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ANIMALS:
        # A question that is the name of a note would have it first, whatever a model says.
        text = f"# The {name}\n\nAll about the {name}.\n"
        (notes / f"a {name}.md").write_text(text, encoding="utf-8")
    questions = tuple(JudgedQuestion(name, name, {f"a {name}.md": 1}) for name in ANIMALS[:2])
    with KnowledgeBase.open(
        tmp_path / "i.sqlite", Settings(embedder=HashEmbedder()), create=True
    ) as kb:
        kb.add_collection(notes)
        kb.index()
        kb.embed()
    yield tmp_path / "i.sqlite", Judgments("j", questions)


PARTS = [WITHOUT + part for part in get_args(EvidencePart)]


def test_with_vectors_each_part_of_the_evidence_is_left_out_in_turn(
    embedded: tuple[Path, Judgments],
) -> None:
    database, judgments = embedded
    ticks = []
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        found = run(kb, judgments, progress=ticks.append)
    assert list(found.systems) == ["search", "vsearch", "query", *PARTS, "query --no-rerank"]
    assert found.left_out == {}
    assert all(each.means["MRR@10"] == 1 for each in found.systems.values())
    assert all(not d.sure for each in found.systems.values() for d in each.differences.values())
    answers = len(found.systems) * len(judgments.questions)
    assert [tick.done for tick in ticks] == list(range(answers))
    assert {tick.total for tick in ticks} == {answers}


class Judge:
    """A reranker that thinks that birch is the answer to everything."""

    name = "judge"

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> list[float]:
        return [float("birch" in passage) for passage in passages]


class Talker:
    def expand(self, query: str, *, limit: int, timeout_s: float) -> list[Expansion]:
        return [Expansion("lex", "birch")]


def test_with_models_query_is_measured_without_them(embedded: tuple[Path, Judgments]) -> None:
    database, judgments = embedded
    settings = Settings(embedder=HashEmbedder(), reranker=Judge(), expander=Talker())
    with KnowledgeBase.open(database, settings) as kb:
        found = run(kb, judgments)
        named = run(kb, judgments, systems=PARTS[:1])
    assert [name for name in SYSTEMS if name not in found.systems] == PARTS
    assert list(named.systems) == PARTS[:1]  # who asks for it gets it
    with_model = found.systems["query"].means["MRR@10"]
    without = found.systems["query --without model"]
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder(), expander=Talker())) as kb:
        plain = run(kb, judgments, systems=["query"]).systems["query"]
    assert [each.rank for each in without.answers] == [each.rank for each in plain.answers]
    # It agrees with nothing, so it is not trusted.
    assert without.differences["MRR@10"].mean == without.means["MRR@10"] - with_model == 0


def test_with_a_cross_encoder_it_prints_what_that_gains(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    judge = write_cross_encoder(tmp_path / "judge", {"good": 9.0, "bad": -9.0})
    for number in range(12):
        scratch.write(f"notes/{number}.md", f"# {number}\n\nred boat, a bad one\n")
    scratch.write("notes/gold.md", f"# Gold\n\nred boat, a good one{', and so on' * 40}\n")
    scratch.write("questions.json", '[{"query": "red boat", "file": "gold.md"}]')
    scratch.ok("collection", "add", "notes")
    scratch.ok("index", "--no-embed")
    with_judge = scratch.with_env(QMD_RERANKER=str(judge), QMD_MODEL_BUDGET="60")
    found = with_judge.ok("bench", "questions.json", "--json").json()
    assert "query --without model" in found["systems"]
    ranks = [
        found["systems"][name]["answers"][0]["rank"] for name in ("query", "query --without model")
    ]
    assert ranks == [2, 13]
    lines = with_judge.ok("bench", "questions.json").out.splitlines()
    title = lines.index("What each part of query gains, beside query --without it")
    name, gain, *_ = lines[title + 2].split()
    assert name == "model"
    assert gain == "+.500"
    other = with_judge.ok("bench", "questions.json", "--baseline", "search").out
    assert "What each part" not in other  # the differences are those from search
    assert max(map(len, lines[: title + 3])) <= 80


def test_many_notes_are_not_all_printed(capsys: pytest.CaptureFixture[str]) -> None:
    system = Measured({}, {}, Relevance(None, None), 0.0, tuple(f"note {n}" for n in range(5)), ())
    render_bench(BenchReport("j", 1, 0, 1, "query", {"query": system}, {}, ()))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4:] == [
        *(f"query: note {n}" for n in range(3)),
        "query: and 2 other notes; --json has them all",
    ]

"""The fixtures and figures of `benchmarks/agent.py`, against figures worked out by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.agent.citations import Citation, Status
from qmd.errors import InputError
from qmd.inference.llm.answer import MAX_TOKENS, Usage, usage_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from agent_bench import fixture, metrics

EXAMPLE = Path(__file__).parents[2] / "docs" / "example-questions.json"
NAMES = ("a/x.md", "a/y.md", "b/z.md")


def cited(file: str, status: Status = "ok") -> Citation:
    return Citation(1, file, 1, 1, "", status, "", 0, 1)


def facts(folder: Path, *sources: str) -> tuple[fixture.Fact, ...]:
    path = folder / "facts.json"
    path.write_text(json.dumps([{"question": "?", "files": [], "must": sources}]), "utf-8")
    return fixture.read(path).questions[0].facts


def test_a_citation_is_right_if_it_passes_and_names_a_note_that_answers() -> None:
    citations = [cited("a/x.md"), cited("a/x.md"), cited("a/y.md", "not_found"), cited("b/z.md")]
    files = {"a/x.md", "a/y.md"}
    assert metrics.citation_precision(citations, files) == 0.5
    assert metrics.citation_recall(citations, files) == 0.5
    assert metrics.citation_precision([cited("a/x.md")], set()) == 0  # nothing answers it
    assert metrics.citation_recall([cited("a/x.md")], set()) is None
    assert metrics.citation_precision([], files) is None
    assert metrics.citation_recall([], files) == 0


@given(
    st.lists(st.builds(cited, st.sampled_from(NAMES), st.sampled_from(("ok", "not_found")))),
    st.sets(st.sampled_from(NAMES)),
)
def test_shares_lie_between_0_and_1(citations: list[Citation], files: set[str]) -> None:
    for figure in (
        metrics.citation_precision(citations, files),
        metrics.citation_recall(citations, files),
    ):
        assert figure is None or 0 <= figure <= 1


@given(st.lists(st.none() | st.floats(0, 1)))
def test_a_mean_leaves_out_what_is_not_defined(values: list[float | None]) -> None:
    mean = metrics.mean_of(values)
    assert (mean is None) == all(value is None for value in values)
    assert mean is None or -1e-9 <= mean <= 1 + 1e-9


def test_facts_are_words_or_regular_expressions(tmp_path: Path) -> None:
    sources = ("every tuesday", "/9(:00| a\\.m)/", "a.b", "三十天", "/")
    found = metrics.present("Every\n Tuesday at 9 A.M., aXb, 保留三十天", facts(tmp_path, *sources))
    assert [fact.source for fact in found] == ["every tuesday", "/9(:00| a\\.m)/", "三十天"]


def test_json_lines_and_lists_are_read_and_limited_evenly(tmp_path: Path) -> None:
    entries = [{"question": f"q{n}", "files": "a.md"} for n in range(4)]
    lines = tmp_path / "q.jsonl"
    lines.write_text("\n".join(map(json.dumps, entries)), "utf-8")
    one = tmp_path / "one.jsonl"
    one.write_text(json.dumps(entries[0]), "utf-8")
    read = fixture.read(lines)
    assert [question.id for question in read.questions] == ["1", "2", "3", "4"]
    assert [question.id for question in read.first(2).questions] == ["1", "3"]
    assert read.first(9) is read
    assert fixture.read(one).questions == read.questions[:1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("[]", "questions"),
        ("[" * 100_000, "no JSON"),
        ('[{"files": []}]', 'no "question"'),
        ('[{"question": " ", "files": []}]', 'no "question"'),
        ('[{"question": "?"}]', '"files"'),
        ('[{"question": "?", "files": [1]}]', '"files"'),
        ('[{"question": "?", "files": [], "id": []}]', '"id"'),
        ('[{"question": "?", "files": [], "must": "/(/"}]', "no regular expression"),
        (json.dumps([{"question": "?", "files": [], "must": "x" * 501}]), "longer than 500"),
        ('[{"question":"?","files":[],"id":1},{"question":"?","files":[],"id":"1"}]', "twice"),
    ],
)
def test_a_wrong_fixture_is_refused_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"^wrong\.json") as caught:
        fixture.read(path)
    assert problem in str(caught.value)


def test_the_fixture_of_the_example_names_its_notes_and_asks_in_both_languages() -> None:
    questions = fixture.read(EXAMPLE).questions
    notes = {path.name for path in (EXAMPLE.parent / "example").iterdir()}
    assert len(questions) >= 8
    assert {name for question in questions for name in question.files} == notes
    assert any(not question.files for question in questions)
    assert {question.text.isascii() for question in questions} == {True, False}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2}, Usage(3, 2)),
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": True, "completion_tokens": 2}, None),
        ({"prompt_tokens": MAX_TOKENS + 1, "completion_tokens": 2}, None),
        ({"prompt_tokens": 3}, None),
        ("many", None),
        (None, None),
    ],
)
def test_only_plausible_counts_of_tokens_are_believed(
    usage: object, expected: Usage | None
) -> None:
    assert usage_of({"usage": usage}) == expected

"""Our own judgments can be read, and what is tuned on is apart from what is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmd.evaluate import fixtures
from qmd.evaluate.fixtures import Judgments

FOLDER = Path(__file__).parents[2] / "benchmarks" / "judgments"
FILES = sorted(path.name for path in FOLDER.glob("*.json"))


def read(name: str) -> Judgments:
    return fixtures.read(FOLDER / name)


def files(judgments: Judgments) -> set[str]:
    return {file for question in judgments.questions for file in question.relevant}


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_read_and_every_question_is_asked_once(name: str) -> None:
    questions = read(name).questions
    assert questions
    assert len({question.text for question in questions}) == len(questions)
    if "notes" not in name:
        assert all(bool(question.relevant) != ("absent" in name) for question in questions)


@pytest.mark.parametrize("name", [name for name in FILES if "notes" in name])
def test_notes_answer_some_of_their_questions(name: str) -> None:
    judgments = read(name)
    assert files(judgments) <= set(judgments.documents or ())
    assert {bool(question.relevant) for question in judgments.questions} == {True, False}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", ["absent", "absent-vaults", "notes"])
def test_no_question_without_a_corpus_is_both_tuned_on_and_reported(
    kind: str, language: str
) -> None:
    tuned, reported = (read(f"{purpose}-{kind}-{language}.json") for purpose in ("tune", "report"))
    assert not {question.text for question in tuned.questions} & {
        question.text for question in reported.questions
    }
    assert not set((tuned.documents or {}).values()) & set((reported.documents or {}).values())


@pytest.mark.parametrize(
    ("tuned", "reported"),
    [
        *(("en", "en"), ("en-2", "en"), ("en-3", "en"), ("en-4", "en"), ("en-keywords", "en")),
        *(("zh", "zh"), ("zh-2", "zh"), ("zh-3", "zh"), ("zh-4", "zh")),
        *(("zh-keywords", "zh-keywords"), ("zh-keywords-3", "zh-keywords")),
        *(("vault-help", "vault-help"), ("vault-garden", "vault-garden")),
    ],
)
def test_no_page_is_both_tuned_on_and_reported(tuned: str, reported: str) -> None:
    assert not files(read(f"tune-{tuned}.json")) & files(read(f"report-{reported}.json"))

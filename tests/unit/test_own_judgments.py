"""Our own judgments can be read, and what is tuned on is apart from what is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmd.evaluate import fixtures
from qmd.evaluate.judgments import Judgments

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
    assert all(bool(question.relevant) != ("absent" in name) for question in questions)


@pytest.mark.parametrize(
    ("tuned", "reported"),
    [("en", "en"), ("en-2", "en"), ("zh", "zh"), ("zh-2", "zh"), ("zh-keywords", "zh-keywords")],
)
def test_no_page_is_both_tuned_on_and_reported(tuned: str, reported: str) -> None:
    assert not files(read(f"tune-{tuned}.json")) & files(read(f"report-{reported}.json"))

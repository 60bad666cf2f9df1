"""Which questions go to the model of English, and which texts get its vector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmd.values.text import is_english, is_english_question, may_be_english

JUDGMENTS = Path(__file__).parents[2] / "benchmarks" / "judgments"


@pytest.mark.parametrize(
    "question",
    [
        "Wo liegt die Datenbank",
        "wie kann ich eine Sicherung wiederherstellen",
        "comment installer le programme",
        "sauvegarde de la base",
        "donde esta la configuracion",
        "dove si trova il file di configurazione",
        "onde fica o arquivo",
        "wat is de beste manier om te zoeken",
        "hvordan gendanner jeg en sikkerhedskopi",
        "varfor startar inte servern",
        "gdzie jest plik konfiguracyjny",
        "怎么恢复备份",
        "12 + 30",
        "",
    ],
)
def test_a_question_with_common_words_of_another_language_alone_is_not_english(
    question: str,
) -> None:
    assert not is_english_question(question)


@pytest.mark.parametrize(
    "question",
    [
        "How do I restore a backup?",
        "what does 'wie geht es' mean",
        "backup restore",
        "van der Waals forces",
        "de facto standard",
        "MIT license text",
        "jest mock module",
        "comment pragma",
        "Los Angeles hotels",
        "die casting",
        "Bjørn's restore notes from Tuesday",
    ],
)
def test_names_and_loans_make_no_other_language(question: str) -> None:
    assert is_english_question(question)


def questions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("query"), str):
            yield value["query"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from questions(each)


def test_no_judged_question_of_english_letters_is_taken_for_another_language() -> None:
    judged = {
        question
        for path in JUDGMENTS.glob("*.json")
        for question in questions(json.loads(path.read_text("utf-8")))
        if may_be_english(question)
    }
    assert len(judged) > 500
    assert [question for question in judged if not is_english_question(question)] == []


def test_a_text_is_english_by_its_common_words() -> None:
    assert is_english("The boat and the wind, and this island.")
    assert not is_english("Das Boot und der Wind, und diese Insel.")

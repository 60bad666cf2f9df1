"""docs/rest.md says what the interface is, and shows what its examples really answer."""

from __future__ import annotations

import runpy
from pathlib import Path

GENERATOR = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate_rest.py"))
DOCUMENT: str = GENERATOR["DOCUMENT"].read_text(encoding="utf-8")


def test_the_rest_document_is_fresh() -> None:
    assert GENERATOR["document"]() == DOCUMENT, "run: .venv-tests/bin/python docs/generate_rest.py"


def test_no_example_shows_a_failure_but_the_one_that_means_to() -> None:
    assert DOCUMENT.count('"detail": ') == 2  # in the introduction, and of the missing name
    assert DOCUMENT.count("$ curl") == len(GENERATOR["EXAMPLES"])

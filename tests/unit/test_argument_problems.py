"""What is wrong with the arguments of a call, as values."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field

from qmd.operations.problems import (
    InvalidArgumentsError,
    ProblemKind,
    invalid_arguments,
    parameter_sentences,
)
from qmd.tools.arguments import Arguments, Integer, TextAsSent, validate


class Box(Arguments):
    inner_label: TextAsSent | None = None
    tags: list[TextAsSent] | None = None


class Order(Arguments):
    file_path: TextAsSent
    box: Box | None = None
    count: Integer = Field(1, ge=1, le=9)
    mode: Literal["slow", "fast"] = "slow"


def problems(arguments: dict[str, Any]) -> list[tuple[tuple[str, ...], ProblemKind]]:
    with pytest.raises(InvalidArgumentsError) as caught:
        validate(Order, arguments)
    return [(each.path, each.kind) for each in caught.value.problems]


@pytest.mark.parametrize(
    ("arguments", "path", "kind"),
    [
        ({"filePath": None}, ("filePath",), "missing"),
        ({"filePath": 5}, ("filePath",), "type"),
        ({"count": "1"}, ("count",), "type"),
        ({"count": 1.5}, ("count",), "type"),
        ({"count": 10}, ("count",), "value"),
        ({"mode": "later"}, ("mode",), "choice"),
        ({"mode": "\ud800"}, ("mode",), "choice"),
        ({"mode": 1}, ("mode",), "type"),
        ({"file_path": "x"}, ("file_path",), "unknown"),
        ({"box": []}, ("box",), "type"),
        ({"box": {"label": "x"}}, ("box", "label"), "unknown"),
        ({"box": {"innerLabel": 1}}, ("box", "innerLabel"), "type"),
        ({"box": {"tags": ["a", 1, 2]}}, ("box", "tags"), "value"),
    ],
)
def test_each_problem_has_a_path_and_a_kind(
    arguments: dict[str, Any], path: tuple[str, ...], kind: str
) -> None:
    assert problems({"filePath": "x", **arguments}) == [(path, kind)]


def test_what_is_required_must_be_there() -> None:
    assert problems({}) == [(("filePath",), "missing")]


def test_half_a_surrogate_pair_is_left_to_the_engine() -> None:
    assert validate(Order, {"filePath": "\ud800"}).file_path == "\ud800"


def test_null_is_absent_where_nothing_is_required() -> None:
    order = validate(Order, {"filePath": "x", "count": None, "mode": None, "box": None})
    assert order == validate(Order, {"filePath": "x"})


def test_the_wordings_are_made_of_the_same_problems() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        validate(Order, {"mode": "later", "count": 0, "wrong": 1, "box": {"tags": 1}})
    assert parameter_sentences(caught.value.problems) == [
        "Missing required parameter: filePath",
        "Parameter 'mode' must be one of: slow, fast",
    ]
    assert str(invalid_arguments("order", caught.value)) == (
        'Invalid arguments for order: unknown argument "wrong"; filePath is required (a string); '
        "tags must be a list of strings, got 1; count must be an integer from 1 to 9, got 0; "
        'mode must be "slow" or "fast", got "later"; '
        "known arguments: filePath, box, count, mode"
    )

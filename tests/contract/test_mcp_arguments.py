"""What the tools accept is what their JSON Schemas say, and a refusal says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from qmd.errors import InputError
from qmd.tools.arguments import input_schema, parse_arguments
from qmd.tools.toolsets import tools_of
from qmd.values.search import VSEARCH_MIN_SCORE

TOOLS = tools_of("qmd", alone=True)

BY_NAME = {tool.name: tool for tool in TOOLS}


def parse(name: str, arguments: dict[str, Any]) -> Any:
    return parse_arguments(name, BY_NAME[name].arguments, arguments)


def refusal(name: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        parse(name, arguments)
    return str(caught.value)


@pytest.mark.parametrize("name", ["search", "query"])
def test_search_defaults_are_the_sources(name: str) -> None:
    arguments = parse(name, {"query": "x"})
    assert (arguments.limit, arguments.min_score, arguments.collection) == (10, 0, None)


def test_vsearch_has_a_min_score_of_its_own_and_honours_an_explicit_zero() -> None:
    assert parse("vsearch", {"query": "x"}).min_score == VSEARCH_MIN_SCORE
    assert parse("vsearch", {"query": "x", "minScore": 0}).min_score == 0


def test_get_and_multi_get_defaults_are_the_sources() -> None:
    get = parse("get", {"file": "x"})
    assert (get.from_line, get.max_lines, get.line_numbers) == (None, None, False)
    multi_get = parse("multi_get", {"pattern": "*"})
    assert (multi_get.max_lines, multi_get.max_bytes, multi_get.line_numbers) == (
        None,
        10240,
        False,
    )


def test_a_from_line_below_one_is_no_error() -> None:
    assert parse("get", {"file": "x", "fromLine": -3}).from_line == -3


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("search", {}, "query is required (a string)"),
        ("search", {"query": 5}, "query must be a string, got 5"),
        (
            "search",
            {"query": "x", "limit": 0},
            "limit must be an integer from 1 to 1000, got 0",
        ),
        (
            "query",
            {"query": "x", "limit": 1001},
            "limit must be an integer from 1 to 1000, got 1001",
        ),
        (
            "search",
            {"query": "x", "limit": "5"},
            'limit must be an integer from 1 to 1000, got "5"',
        ),
        (
            "search",
            {"query": "x", "limit": True},
            "limit must be an integer from 1 to 1000, got true",
        ),
        (
            "vsearch",
            {"query": "x", "minScore": 1.5},
            "minScore must be a number from 0 to 1, got 1.5",
        ),
        (
            "search",
            {"query": "x", "minScore": float("nan")},
            "minScore must be a number from 0 to 1, got NaN",
        ),
        (
            "search",
            {"query": "x", "tags": [1, 2]},
            "tags must be a list of strings, got [1, 2]",
        ),
        (
            "search",
            {"query": "x", "explain": "yes"},
            'explain must be true or false, got "yes"',
        ),
        (
            "search",
            {"query": "x", "after": "2025-02-30"},
            'after must be a date such as 2026-11-20, or a span such as 7d, got "2025-02-30"',
        ),
        (
            "get",
            {"file": "x", "maxLines": 0},
            "maxLines must be an integer of at least 1, got 0",
        ),
        (
            "multi_get",
            {"pattern": "x", "maxBytes": -1},
            "maxBytes must be an integer of at least 1, got -1",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_expected(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    assert refusal(name, arguments) == f"Invalid arguments for {name}: {message}"


def test_an_unknown_argument_is_refused_with_the_list_of_known_ones() -> None:
    assert refusal("get", {"file": "x", "from_lines": 3}) == (
        'Invalid arguments for get: unknown argument "from_lines" (did you mean fromLine?); '
        "known arguments: file, fromLine, maxLines, maxTokens, lineNumbers"
    )
    assert refusal("status", {"verbose": None}) == (
        'Invalid arguments for status: unknown argument "verbose"; known arguments: collection'
    )


def test_a_name_in_the_other_case_is_that_of_the_argument() -> None:
    assert parse("get", {"file": "x", "from_line": 3}).from_line == 3
    assert 'unknown argument "from_line"' in refusal(
        "get", {"file": "x", "from_line": 3, "fromLine": 4}
    )


def test_all_that_is_wrong_is_said_at_once() -> None:
    message = refusal("search", {"limit": -1, "foo": 1})
    assert "foo" in message
    assert "limit must be" in message
    assert "query is required" in message


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(refusal("search", {"query": "x", "limit": "9" * 10_000})) < 200


@pytest.mark.parametrize(
    "absent", [{"collection": None}, {"collection": ""}, {"limit": None}, {"tags": None}]
)
def test_null_or_blank_for_an_optional_argument_counts_as_absent(absent: dict[str, Any]) -> None:
    assert parse("search", {"query": "x", **absent}) == parse("search", {"query": "x"})


@pytest.mark.parametrize(
    ("given_date", "meant"),
    [
        ("2025", "2025-01-01"),
        ("2025-03", "2025-03-01"),
        ("2025-03-09", "2025-03-09"),
        ("2025-03-09T10:00:00+08:00", "2025-03-09T10:00:00+08:00"),
    ],
)
def test_a_year_or_month_stands_for_its_first_day(given_date: str, meant: str) -> None:
    assert parse("search", {"query": "x", "after": given_date}).after == meant


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2000, 2000)
    | st.floats(-2, 2000, allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(deadline=None)
@given(data=st.data())
def test_the_schema_tells_the_truth_about_what_is_accepted(data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(TOOLS))
    schema = input_schema(tool.arguments)
    names = [*schema["properties"], "surprise"]
    arguments = data.draw(st.dictionaries(st.sampled_from(names), json_values, max_size=4))
    for date in ("after", "before"):  # JSON Schema does not check formats
        arguments.pop(date, None)
    # Beyond its schema a tool accepts null for what may be absent, and nothing else.
    checked = {
        name: value
        for name, value in arguments.items()
        if value is not None or name in schema.get("required", ()) or name == "surprise"
    }
    valid = Draft202012Validator(schema).is_valid(checked)
    try:
        parse_arguments(tool.name, tool.arguments, arguments)
    except InputError:
        assert not valid, (tool.name, arguments)
    else:
        assert valid, (tool.name, arguments)

"""A plain search is read and answered without click, exactly as click would have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.cli import plain
from qmd.cli.main import cli
from qmd.cli.session import Session
from qmd.operations import searches
from qmd.system.session import SERVES_ONLY
from tests.support.cli import Scratch, filled

PLAIN = [
    ("search", "parser"),
    ("search", "parser", "tree", "-n", "1"),
    ("search", "parser", "--limit", "2", "--json"),
    ("search", "--json", "-c", "docs", "parser"),
    ("search", "-c", "notes", "parser", "--collection", "docs", "-n", "1", "--limit", "9"),
    ("search", "数据库"),
    ("search", 'title:plan "road map"'),
    ("search", "nothing-like-this"),
    ("search", "parsr", "--json"),
    ("search", "nothing like this", "--json"),
    ("search", "tag:team OR tag:none"),
    ("search", "search", "-n", "3"),
    ("search", "parser", "-c", "nowhere"),
    ("search", "parser", "-c", "nowhere", "--json"),
    ("--db", "none.sqlite", "search", "parser"),
    ("search", "parser", "--index", "other", "--json"),
    ("--index", "../other", "search", "parser"),
]
LEFT_TO_CLICK = [
    (),
    ("search",),
    ("search", ""),
    ("search", "--help"),
    ("search", "parser", "-n", "0"),
    ("search", "parser", "-n", "1001"),
    ("search", "parser", "-n", "²"),
    ("search", "parser", "-n"),
    ("search", "parser", "-n5"),
    ("search", "parser", "--limit=5"),
    ("search", "parser", "-c", ""),
    ("search", "parser", "-tree"),
    ("search", "--", "parser"),
    ("search", "\ue000parser"),
    ("search", "parser", "--csv"),
    ("--json", "search", "parser"),
    ("-n", "3", "search", "parser"),
    ("query", "search"),
    ("note", "search", "parser"),
    ("--db", "-", "search", "parser"),
    ("--db", "a.sqlite", "search", "--index", "b", "parser"),
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return filled(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("line", PLAIN, ids=" ".join)
def test_the_answer_is_that_of_the_general_way(line: tuple[str, ...], scratch: Scratch) -> None:
    assert plain.read(line) is not None
    assert scratch.run(*line) == scratch.call(*line)


@pytest.mark.parametrize("line", LEFT_TO_CLICK, ids=" ".join)
def test_what_is_not_plain_is_left_alone(line: tuple[str, ...]) -> None:
    assert plain.search(line) is None


@pytest.mark.parametrize("name", ["_QMD_COMPLETE", SERVES_ONLY])
def test_a_program_that_wants_something_else_gets_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    assert plain.search(("search", "parser")) is None


OPTIONS = ("--db", "--index", "-n", "--limit", "-c", "--collection", "--json", "--", "--all", "-x")
WORDS = ("search", "query", "word", "3", "0", "1001", "٣", "", " ", "a,b", "\ue000", "-", "+1")
ARGUMENTS = st.lists(st.sampled_from(OPTIONS + WORDS), max_size=5)


@given(ARGUMENTS, ARGUMENTS)
def test_what_is_plain_is_read_as_click_reads_it(before: list[str], behind: list[str]) -> None:
    args = [*before, "search", *behind]
    read = plain.read(args)
    if read is None:
        return
    ours, request, as_json = read
    theirs = Session()
    seen: dict[str, object] = {}

    def keep(operation: object, arguments: dict[str, object], **options: object) -> None:
        seen.update(arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qmd.cli.search.answer", keep)
        with cli.make_context("qmd", args, obj=theirs) as ctx:
            cli.invoke(ctx)
    assert (ours.db, ours.index, ours.command) == (theirs.db, theirs.index, theirs.command)
    names = ("output", "mode", "full", "line_numbers", "full_path")
    assert [seen.pop(name) for name in names] == [
        "json" if as_json else "cli",
        "auto",
        *3 * [False],
    ]
    assert searches.search.gathered(seen)["request"] == request

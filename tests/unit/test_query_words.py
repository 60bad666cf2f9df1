"""Words that begin with a minus are words of a query, and options stay options."""

from __future__ import annotations

import click
import pytest

from qmd.cli.operations import command_of
from qmd.cli.session import Session
from qmd.operations import posts, searches

search, query = command_of(searches.search), command_of(searches.query)
posts_search = command_of(posts.search)


def words_of(command: click.Command, *args: str) -> list[str]:
    """The query as the command gets it."""
    with command.make_context("qmd", list(args), obj=Session()) as ctx:
        return list(ctx.params["query"])


@pytest.mark.parametrize("command", [search, query, posts_search])
@pytest.mark.parametrize(
    "args",
    [
        ["backup", "-weekly"],
        ["-weekly", "backup"],
        ["tag:work", "OR", "tag:home", "-tag:draft"],
        ["plan", "-news"],  # -n takes numbers
        ["数据库", "-备份"],
        ["a", "-'b c'"],
    ],
)
def test_a_word_with_a_minus_is_part_of_the_query(command: click.Command, args: list[str]) -> None:
    assert words_of(command, *args) == args


@pytest.mark.parametrize(
    ("args", "name", "value"),
    [
        (["a", "-n5"], "limit", 5),
        (["a", "-n", "5"], "limit", 5),
        (["a", "-cnotes"], "collections", ("notes",)),
        (["a", "-pstatus:draft"], "properties", ("status:draft",)),
        (["a", "--sort", "-date"], "sort", "-date"),
        (["a", "--intent", "-x-"], "intent", "-x-"),
    ],
)
def test_options_stay_options(args: list[str], name: str, value: object) -> None:
    with search.make_context("qmd", args) as ctx:
        assert ctx.params["query"] == ("a",)
        assert ctx.params[name] == value


def test_what_stands_behind_two_minus_is_the_query_as_it_is() -> None:
    assert words_of(search, "--", "-n", "-weekly", "--all") == ["-n", "-weekly", "--all"]


@pytest.mark.parametrize("args", [["a", "--weekly"], ["a", "-x"]])
def test_an_unknown_option_is_still_an_error(args: list[str]) -> None:
    with pytest.raises(click.NoSuchOption):
        search.make_context("qmd", args)

"""What qmd says to a command that it does not have: never "Did you mean" one that destroys."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from qmd.cli.command import Group
from qmd.cli.main import cli, main

#: Each removes or replaces something without a question.
DESTROYING = {
    *("chat delete", "cleanup", "collection remove", "context rm"),
    *("rescue", "restore", "restore-db", "rm", "service uninstall", "undo"),
}


def groups(group: Group, path: str = "") -> Iterator[tuple[str, Group, click.Context]]:
    ctx = click.Context(group, info_name=path or "qmd")
    yield path, group, ctx
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, Group):
            yield from groups(command, f"{path} {name}".strip())


def misspelled(name: str) -> Iterator[str]:
    for at in range(len(name)):
        yield name[:at] + name[at + 1 :]
        yield name[:at] + name[at] * 2 + name[at + 1 :]
        yield name[:at] + "x" + name[at + 1 :]


def test_the_commands_that_destroy_are_these() -> None:
    destroying = {
        f"{path} {name}".strip()
        for path, group, ctx in groups(cli)
        for name in group.list_commands(ctx)
        if getattr(group.get_command(ctx, name), "destroys", False)
    }
    assert destroying == DESTROYING


def test_no_misspelling_leads_to_one_of_them() -> None:
    suggested = set()
    for path, group, ctx in groups(cli):
        names = [*group.list_commands(ctx), *group.lazy, *group.aliases]
        words = {word for name in names for word in misspelled(name)} - {*names}
        for word in words:
            with pytest.raises(click.UsageError) as caught:
                group.resolve_command(ctx, [word])
            hint = getattr(caught.value, "hint", "")
            if hint.startswith("Did you mean: "):
                name = hint.removeprefix("Did you mean: ")
                suggested.add(f"{path} {group.aliases.get(name, name)}".strip())
    assert suggested & DESTROYING == set()
    assert {"search", "collection list", "models use"} <= suggested


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("serch plan", "Did you mean: search"),
        ("collection remov notes", "Run 'qmd collection --help'."),
        ("init", "qmd up FOLDER"),
        ("trust", "nothing to approve"),
        ("collection update-cmd notes x", "qmd update --pull"),
    ],
)
def test_the_hint_says_what_to_do_here(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    assert hint in capsys.readouterr().err

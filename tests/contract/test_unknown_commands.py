"""What qmd says to a command that it does not have: never "Did you mean" one that destroys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from qmd.cli.command import Group
from qmd.cli.main import cli, main
from tests.support.cli import filled

#: Each removes or replaces something without a question.
DESTROYING = {
    *("chat delete", "collection remove", "context rm", "db cleanup", "db rescue", "db restore"),
    *("forget", "restore", "rm", "server service uninstall", "server token revoke", "undo"),
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


@pytest.mark.unmeasured
@pytest.mark.nightly
def test_no_misspelling_leads_to_one_of_them() -> None:
    suggested = set()
    for path, group, ctx in groups(cli):
        names = [*group.list_commands(ctx), *group.all_aliases()]
        words = {word for name in names for word in misspelled(name)} - {*names}
        for word in words:
            with pytest.raises(click.UsageError) as caught:
                group.resolve_command(ctx, [word])
            hint = getattr(caught.value, "hint", "")
            if hint.startswith("Did you mean: "):
                name = hint.removeprefix("Did you mean: ")
                suggested.add(f"{path} {group.all_aliases().get(name, name)}".strip())
    assert suggested & DESTROYING == set()
    assert {"search", "collection list", "models use"} <= suggested


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("serch plan", "Did you mean: search"),
        ("collection remov notes", "Run 'qmd collection --help'."),
        ("init", "qmd up FOLDER"),
        ("index ~/notes", "qmd up FOLDER"),
        ("embed ~/notes", "qmd up FOLDER"),
        ("delete notes", "qmd collection remove NAME"),
        ("install", "qmd server service install"),
        ("cat plan", "qmd get NOTE"),
        ("show plan", "qmd get NOTE"),
        ("grep plan", "qmd search WORDS"),
        ("new idea", "qmd note create"),
        ("ignore Private", ".qmdignore"),
        ("upgrade", "docs/install.md"),
        ("uninstall", "docs/first-hour.md"),
        ("bakcup x", "Did you mean: db backup"),
        ("backlink plan", "Did you mean: links backlinks"),
        ("search plan --tga x", "Did you mean: --tag"),
        ("trust", "nothing to approve"),
        ("collection update-cmd notes x", "qmd update --pull"),
        ("skill install", "docs/mcp.md"),
        ("import notes.zip", "qmd import markdown-zip notes.zip FOLDER"),
        ("import .qmd/index.yml", "qmd import tobi .qmd/index.yml"),
        ("import tobii", "Did you mean: tobi"),
        ("query plan --no-gpu", "run on the processor"),
        ("embed --max-batch-mb 5", "same memory"),
        ("embed --timeout 5", "Ctrl-C loses nothing"),
        ("pull --refresh", "by itself"),
    ],
)
def test_the_hint_says_what_to_do_here(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("help", "Usage: qmd [OPTIONS] COMMAND"),
        ("help db restore", "Usage: qmd db restore"),
        ("help restore-db", "Usage: qmd restore-db"),
        ("help search", "Usage: qmd search"),
        ("help collection add", "Usage: qmd collection add"),
        ("collection help add", "Usage: qmd collection add"),
    ],
)
def test_help_is_a_command_too(line: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 0
    assert capsys.readouterr().out.startswith(usage)


#: Command lines of tobi/qmd 2.8.3 that mean the same here, by its README and help.
OF_TOBI = (
    "embed -f -c notes",
    "query plan -C 10",
    "query plan --candidate-limit 10 --no-rerank --explain --json",
    "query plan --intent deploys -c notes -c docs",
    "search plan -n 3 --all --min-score 0.1 --full --line-numbers --full-path",
    *(f"search plan --format {name}" for name in ("cli", "json", "csv", "md", "xml", "files")),
    *(f"search plan --{name}" for name in ("json", "csv", "md", "xml", "files")),
    "vector-search plan",
    "deep-search plan",
    "get notes/plan.md:1:2",
    "get notes/plan.md -l 5 --from 1 --no-line-numbers --full-path",
    "multi-get notes/*.md -l 5 --max-bytes 1000 --format json",
    "ls",
    "ls notes",
    "status",
    "update",
    "cleanup --dry-run",
    "context add qmd://notes words",
    "context list",
    "context rm qmd://notes",
    "collection exclude notes",
    "collection include notes",
    "collection info notes",
    "collection mv notes work",
    "collection rm work",
    "mcp stop",
)


@pytest.mark.unmeasured
def test_command_lines_of_tobi_are_understood(tmp_path: Path, model_cache: Path) -> None:
    scratch = filled(tmp_path).with_env(QMD_CACHE_DIR=str(model_cache))
    refused = {line: result.err for line in OF_TOBI if (result := scratch.call(*line.split())).code}
    assert list(refused) == ["mcp stop"], refused
    assert "'qmd mcp --http --daemon' starts one" in refused["mcp stop"]

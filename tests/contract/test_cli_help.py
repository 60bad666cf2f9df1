"""The help of every command, the reference made from it, and what asking for help costs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import unicodedata
from pathlib import Path
from types import ModuleType

import click
import pytest

from qmd import __version__
from qmd.cli.command import Command, Group, all_commands
from qmd.cli.commands import FIRST, entries, other_names
from qmd.cli.main import cli, main
from qmd.config import SETTINGS

DOCS = Path(__file__).parents[2] / "docs"
HEAVY = ("numpy", "onnxruntime", "fastembed", "pydantic", "mcp", "sqlite_utils", "rich", "httpx2")
#: Modules of the standard library that `qmd search` does without: each takes 1 to 10 ms to load.
SLOW = (
    *("asyncio", "concurrent.futures", "difflib", "email", "http.client", "importlib.metadata"),
    *("logging", "platformdirs", "shlex", "shutil", "tempfile", "tomllib"),
    *(("subprocess",) if sys.version_info >= (3, 11) else ()),  # the uuid of 3.10 loads it
)
#: Modules of qmd that it does without: those of other capabilities and commands.
UNUSED = (
    *("qmd.store.sql.access", "qmd.store.sql.links", "qmd.store.sql.revisions"),
    *("qmd.values.access", "qmd.values.chats", "qmd.values.documents", "qmd.values.photos"),
    *("qmd.values.reports", "qmd.values.writing", "qmd.values.reports", "qmd.search.rank"),
)
#: Packages of which it loads at most the names of their modules.
NAMES_ONLY = (
    *("qmd.files.", "qmd.health.", "qmd.inference.", "qmd.ingest.", "qmd.search.graph."),
    *("qmd.search.lookup.", "qmd.search.meaning.", "qmd.store.postgres", "qmd.transfer."),
)
#: How many modules of qmd it may load: each takes a tenth of a millisecond, or far more.
MOST_MODULES = 132

# The commands of the contract; one that vanishes breaks someone's script.
CONTRACT = [
    "up",
    "index",
    "update",
    "embed",
    "watch",
    "search",
    "vsearch",
    "query",
    "get",
    "multi-get",
    "ls",
    "ask",
    "posts",
    "posts.authors",
    "posts.list",
    "posts.read",
    "posts.search",
    "status",
    "why",
    "cleanup",
    "doctor",
    "config",
    "backup",
    "restore-db",
    "rescue",
    "bench",
    "models",
    "models.list",
    "models.pull",
    "models.use",
    "summary",
    "history",
    "restore",
    "mcp",
    "open",
    "server",
    "collection",
    "collection.add",
    "collection.list",
    "collection.show",
    "collection.remove",
    "collection.rename",
    "context",
    "context.add",
    "context.list",
    "context.rm",
    "collection.include",
    "collection.exclude",
    "import",
    "import.tobi",
    "import.basic-memory",
    "import.obsidian",
    "import.markdown-zip",
    "import.qmd",
    "export",
    "mcp.stop",
    "note",
    "note.read",
    "note.create",
    "note.list",
    "image",
    "image.tag",
    "image.show",
]
READING = [
    "search",
    "vsearch",
    "query",
    "get",
    "multi-get",
    "ls",
    "ask",
    "posts.authors",
    "posts.list",
    "posts.read",
    "posts.search",
    "status",
    "why",
    "doctor",
    "config",
    "bench",
    "models.list",
    "history",
    "collection.list",
    "collection.show",
    "context.list",
    "note.read",
    "note.list",
    "image.show",
]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_cli", DOCS / "generate_cli.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMANDS = {
    name.removeprefix("qmd").strip().replace(" ", "."): command
    for name, command in all_commands("qmd", cli)
}


def command_of(words: str) -> click.Command | None:
    """What ``qmd WORDS`` runs."""
    command: click.Command | None = cli
    for word in words.split("."):
        assert isinstance(command, Group), words
        command = command.get_command(click.Context(command), word)
    return command


@pytest.mark.parametrize("name", CONTRACT)
def test_every_command_of_the_contract_is_there(name: str) -> None:
    assert command_of(name) is not None


@pytest.mark.parametrize(("other", "name"), sorted(other_names().items()))
def test_the_other_names_of_a_command_are_the_same_command(other: str, name: str) -> None:
    assert cli.get_command(click.Context(cli), other) is COMMANDS[name.replace(" ", ".")]


def test_the_help_describes_a_dozen_commands_and_names_all_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    commands, rest = capsys.readouterr().out.split("Commands:\n")[1].split("More,")
    assert [line.split()[0] for line in commands.strip().splitlines()] == list(FIRST)
    words = set(rest.split("Options:")[0].replace(",", " ").split())
    for entry in entries():
        assert entry.name in FIRST or entry.name.split()[-1] in words, entry


@pytest.mark.parametrize("line", ["help --all", "--help --all", "-h --all"])
def test_the_help_of_all_describes_each_command(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    for entry in entries():
        assert any(each.startswith(f"  {entry.name}  ") for each in lines), entry


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.unmeasured
def test_a_help_shows_few_options_first(name: str) -> None:
    command = COMMANDS[name]
    text = command.get_help(click.Context(command, info_name="qmd", terminal_width=80))
    first = text.partition("\nMore options:\n")[0].partition("\nOptions:\n")[2]
    assert len([line for line in first.splitlines() if line.startswith("  -")]) <= 15
    for param in command.params:
        record = param.get_help_record(click.Context(command))
        assert not isinstance(param, click.Option) or not record or record[0].split()[0] in text


def test_the_version_has_three_spellings(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("--version", "-V", "version"):
        assert main([line]) == 0
        assert capsys.readouterr().out == f"qmd, version {__version__}\n"


def test_the_page_about_the_command_line_has_every_setting() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name in SETTINGS:
        assert f"`{name}`" in text
        assert f"`QMD_{name.upper()}`" in text


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.unmeasured
def test_every_help_has_a_first_line_and_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command | Group)
    text = command.get_help(click.Context(command, info_name="qmd"))
    assert "Example" in text
    assert all("qmd" in example for example in command.examples)
    assert command.get_short_help_str(70).rstrip(".") != ""
    if name:
        assert not command.get_short_help_str(66).endswith("..."), "too long for the overview"


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.unmeasured
def test_every_help_fits_a_terminal_of_80_columns(name: str) -> None:
    context = click.Context(COMMANDS[name], info_name=f"qmd {name}".strip(), terminal_width=80)
    for line in COMMANDS[name].get_help(context).splitlines():
        wide = sum(unicodedata.east_asian_width(character) in "WF" for character in line)
        assert len(line) + wide <= 80, line


@pytest.mark.parametrize("name", READING)
def test_every_command_that_reads_has_json(name: str) -> None:
    command = command_of(name)
    assert command is not None
    assert "--json" in [option for param in command.params for option in param.opts]


@pytest.mark.parametrize("name", sorted(set(COMMANDS)))
def test_the_database_can_be_named_before_and_behind_every_command(name: str) -> None:
    options = {option for param in COMMANDS[name].params for option in param.opts}
    assert {"--db", "--index"} <= options


def test_the_reference_is_up_to_date() -> None:
    document = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert generator().fresh(document) == document, (
        "run: .venv-tests/bin/python docs/generate_cli.py"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import qmd.cli.main",
        "from qmd.cli.main import main; assert main(['--help']) == 0",
        "from qmd.cli.main import main; assert main(['search', '--help']) == 0",
        "from qmd.cli.main import main; assert main(['--db', 'none', 'search', 'x']) == 1",
    ],
)
def test_help_and_errors_load_nothing_heavy(code: str, tmp_path: Path) -> None:
    report = f"import json, sys; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []


def is_package(module: str) -> bool:
    """Whether a module of qmd is a package, which lists its modules and loads none."""
    return (DOCS.parent / module.replace(".", "/") / "__init__.py").exists()


def modules_after(folder: Path, *arguments: str) -> list[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import json, sys\n"
        "from qmd.cli.main import main\n"
        f"assert main(['--db', 'a.sqlite', *{arguments!r}]) == 0\n"
        "print(); print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loaded


@pytest.mark.unmeasured
def test_a_search_loads_nothing_slow(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("boats and harbours", encoding="utf-8")
    code = (
        "import json, sys\n"
        "from qmd import KnowledgeBase\n"
        "with KnowledgeBase.open('a.sqlite', create=True) as kb:\n"
        "    kb.add_collection('.', name='a')\n"
        "    kb.index()\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    loaded = modules_after(tmp_path, "search", "boats", "--json")
    reindexed = modules_after(tmp_path, "index", "--no-embed")
    unneeded = (*HEAVY, "qmd.health.status", "qmd.parse.markdown", "filelock")
    assert [name for name in reindexed if name in unneeded] == []
    assert [name for name in loaded if name in HEAVY + SLOW + UNUSED] == []
    of_others = [name for name in loaded if name.startswith(NAMES_ONLY)]
    assert [name for name in of_others if not is_package(name)] == []
    assert len([name for name in loaded if name.startswith("qmd")]) <= MOST_MODULES

"""The Tab key in a real bash, zsh and fish, and what is offered for which argument."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete

from qmd.cli.command import all_commands
from qmd.cli.main import cli
from qmd.cli.shell_completion import _Bash
from tests.contract.test_cli_help import HEAVY
from tests.support.cli import TIMEOUT_S, Scratch, filled, installed_command

posix = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")

NOTES = {
    "notes/plan.md": "---\ntags: [team/web, review]\nstatus: in review\n---\n# Plan\n",
    "notes/2025/my plan.md": "# Mine\n",
    "notes/2025/a: b, c.md": "# Punctuation\n",
    "notes/2025/备份.md": "# 备份方案\n",
    "work notes/todo.md": "---\nrating: 4\n---\n# To do\n",
}

#: What is typed before Tab, and the arguments that the shell then has.
TYPED = {
    "qmd compl": ["completion"],
    "qmd get no": ["get", "notes/"],
    "qmd get notes/2025/my": ["get", "notes/2025/my plan.md"],
    "qmd get 'notes/2025/my p": ["get", "notes/2025/my plan.md"],
    "qmd get notes/2025/a:": ["get", "notes/2025/a: b, c.md"],
    "qmd get notes/2025/备": ["get", "notes/2025/备份.md"],
    "qmd search -c work": ["search", "-c", "work notes"],
    "qmd search --collection=no": ["search", "--collection=notes"],
    "qmd search -p stat": ["search", "-p", "status:"],
    "qmd search -p status:in": ["search", "-p", "status:in review"],
}

START = {
    "bash": (["bash", "--norc", "-i"], 'eval "$(qmd completion bash)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -U compinit; compinit -u -D; eval "$(qmd completion zsh)"',
    ),
    "fish": (["fish", "--no-config", "-i"], "qmd completion fish | source"),
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    scratch = filled(tmp_path_factory.mktemp("completion"), NOTES)
    (scratch.database.with_name("work.sqlite")).write_bytes(b"")
    return scratch


class Terminal:
    """A shell at a terminal of its own."""

    def __init__(self, command: Sequence[str], scratch: Scratch) -> None:
        import pty

        path = f"{Path(installed_command()[0]).parent}{os.pathsep}{os.environ['PATH']}"
        environment = scratch.environment | {"PATH": path, "TERM": "xterm", "LANG": "C.UTF-8"}
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(scratch.root)
            os.execvpe(command[0], list(command), environment)
        self._output = b""

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def output_until(self, mark: str) -> str:
        """All output up to and with a mark, which is taken away."""
        deadline = time.monotonic() + TIMEOUT_S
        while mark.encode() not in self._output:
            ready, _, _ = select.select([self._terminal], [], [], deadline - time.monotonic())
            assert ready, f"no {mark!r} in {self._output!r}"
            self._output += os.read(self._terminal, 65536)
        before, _, self._output = self._output.partition(mark.encode())
        return (before + mark.encode()).decode(errors="replace")

    def close(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


@posix
@pytest.mark.unmeasured
@pytest.mark.parametrize("shell", sorted(START))
def test_tab_completes_in_a_real_shell(shell: str, scratch: Scratch) -> None:
    command, source = START[shell]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {shell} here")
    echo = scratch.write("echo.py", "import sys\nprint('<' + '|'.join(sys.argv[1:]) + '>')\n")
    terminal = Terminal(command, scratch)
    completed = {}
    try:
        terminal.type(f"{source}\n")
        for line in TYPED:
            # Ctrl-A: the completed line becomes the arguments of a program that prints them. The X
            # is an argument of its own if the shell has put a space behind the completion.
            terminal.type(f"{line}\tX\x01{sys.executable} -I -S {echo} \x05\n")
            printed = terminal.output_until(">\r\n")
            completed[line] = printed.rpartition("<")[2].removesuffix(">\r\n").split("|")[1:]
    finally:
        terminal.close()
    assert completed == {
        line: [*words, "X"] if words[-1][-1] not in "/:" else [*words[:-1], f"{words[-1]}X"]
        for line, words in TYPED.items()
    }


def offered(scratch: Scratch, line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is offered behind a line whose last word is incomplete."""
    return [item.value for item in items(scratch, line, monkeypatch)]


def items(
    scratch: Scratch, line: str, monkeypatch: pytest.MonkeyPatch
) -> list[CompletionItem[str]]:
    for name, value in scratch.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(scratch.root)
    *args, incomplete = line.split(" ")[1:]
    return ShellComplete(cli, {}, "qmd", "_QMD_COMPLETE").get_completions(args, incomplete)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("qmd get notes/", ["notes/2025/", "notes/plan.md"]),
        ("qmd get qmd://notes/p", ["qmd://notes/plan.md"]),
        ("qmd get n", ["notes/"]),
        ("qmd get PLAN", ["plan.md"]),
        ("qmd get nothing", []),
        ("qmd get notes/../", []),
        ("qmd links backlinks notes/p", ["notes/plan.md"]),
        ("qmd mv notes/p", ["notes/plan.md"]),
        ("qmd multi-get notes/plan.md notes/p", ["notes/plan.md"]),
        ("qmd ls w", ["work notes/"]),
        ("qmd ls --group-by st", ["status"]),
        ("qmd ls --sort t", ["title", "tags"]),
        ("qmd ls -p RAT", ["rating:"]),
        ("qmd query -p rating:", ["rating:4"]),
        ("qmd query -p nothing:", []),
        ("qmd vsearch --path notes/2", ["notes/2025/"]),
        ("qmd tags te", ["team", "team/web"]),
        ("qmd search --tag #te", ["#team", "#team/web"]),
        ("qmd properties ra", ["rating"]),
        ("qmd collection rename n", ["notes"]),
        ("qmd links orphans -c ", ["notes", "work notes"]),
        ("qmd chat show ", []),
        ("qmd models use multiling", ["multilingual-e5-small-int8"]),
        ("qmd multi", ["multi-get"]),
        ("qmd history notes/p", ["notes/plan.md"]),
        ("qmd index -c n", ["notes"]),
        ("qmd edit --editor vsc", ["vscode", "vscode-insiders", "vscodium"]),
        ("qmd mcp --toolset qmd,gr", ["qmd,graph"]),
        ("qmd --index w", ["work"]),
        ("qmd server service install --read", ["--read-only"]),
        ("qmd server service install --dry", ["--dry-run"]),
        ("qmd search --mode l", ["local"]),
    ],
)
def test_arguments_are_completed_from_the_database(
    line: str, values: list[str], scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(scratch, line, monkeypatch) == values


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("qmd get ./no", "file"),
        ("qmd get /", "file"),
        ("qmd history nothing", "file"),
        ("qmd --db no", "file"),
        ("qmd db restore no", "file"),
        ("qmd collection add no", "dir"),
        ("qmd server --vault no", "dir"),
    ],
)
def test_paths_on_the_disk_are_left_to_the_shell(
    line: str, kind: str, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (item,) = items(scratch, line, monkeypatch)
    assert (item.type, item.value) == (kind, line.rpartition(" ")[2])


def test_the_database_of_the_line_is_asked(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch.ok("--db", "other.sqlite", "collection", "add", "work notes", "--name", "other")
    for line in ("qmd --db other.sqlite get o", "qmd get --db other.sqlite o"):
        assert offered(scratch, line, monkeypatch) == ["other/"]


def test_without_a_database_nothing_is_offered_and_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = Scratch(tmp_path)
    for line in ("qmd get n", "qmd search --tag x", "qmd models use m", "qmd --db '' get n"):
        assert offered(scratch, line, monkeypatch) == []
    assert not scratch.database.exists()


def test_names_with_control_characters_are_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = filled(tmp_path, {"notes/a\x1b[31m.md": "# Red\n", "notes/b.md": "# B\n"})
    assert offered(scratch, "qmd get notes/", monkeypatch) == ["notes/b.md"]


def test_every_parameter_that_names_a_collection_or_a_file_completes_it() -> None:
    names = {"collection", "collections", "file", "files"}
    bare = [
        (name, param.name)
        for name, command in all_commands("qmd", cli)
        for param in command.params
        if param.name in names
        and type(param).shell_complete is click.Parameter.shell_complete
        and param._custom_shell_complete is None
        and not isinstance(param.type, click.Path)
    ]
    assert bare == []


def test_an_unknown_shell_is_wrong_usage(scratch: Scratch) -> None:
    result = scratch.call("completion", "tcsh")
    assert result.code == 2
    assert "bash" in result.err


def test_completing_loads_nothing_heavy(scratch: Scratch) -> None:
    scratch.write(
        "probe.py",
        "import atexit, sys\n"
        f"atexit.register(lambda: print([m for m in {HEAVY!r} if m in sys.modules]))\n"
        "from qmd.cli.main import main\nmain([])\n",
    )
    for line in ("qmd ", "qmd get notes/", "qmd search --tag t", "qmd search -p s"):
        probe = scratch.with_env(_QMD_COMPLETE="bash_complete", COMP_LINE=line, COMP_WORD="")
        done = child_output(probe)
        assert done.splitlines()[-1] == "[]", line
        assert len(done.splitlines()) > 1, line


def child_output(scratch: Scratch) -> str:
    import subprocess

    return subprocess.run(
        [sys.executable, "probe.py"],
        cwd=scratch.root,
        env=scratch.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    ).stdout


@posix
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_bash_runs_nothing_of_a_completed_value(quote: str) -> None:
    value = "a$(echo ran)`echo ran`\\b'c\"d;e"
    item: CompletionItem[str] = CompletionItem(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMP_LINE", f"qmd search --tag {quote}a")
        patch.setenv("COMP_WORD", f"{quote}a")
        kind, _, text = (
            _Bash(cli, {}, "qmd", "_QMD_COMPLETE").format_completion(item).partition(",")
        )
    shown = subprocess.run(
        ["bash", "-c", f"printf %s {quote}{text}{quote}"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (kind, shown.stdout) == ("plain", value)

"""The manual page has every command, option and setting, and checkers of such pages accept it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from qmd.cli.command import all_commands
from qmd.cli.main import cli
from qmd.cli.man import EXIT_CODES, man_page
from qmd.config import SETTINGS
from tests.e2e.test_cli_terminal import on_terminal
from tests.support.cli import TIMEOUT_S, Scratch

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("man") / "qmd.1"
    file.write_text(man_page(cli), encoding="utf-8")
    return file


def checked(*command: str, **variables: str) -> tuple[str, str]:
    """What a program prints and complains about; skips the test where it is missing."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"} | variables,
        check=False,
    )
    return done.stdout, done.stderr


def test_mandoc_has_no_complaint(page: Path) -> None:
    complaints, _ = checked("mandoc", "-Tlint", "-W", "warning", str(page))
    # A page that is made anew each time has no date.
    assert [line for line in complaints.splitlines() if "missing date" not in line] == []


def test_man_has_no_warning(page: Path) -> None:
    shown, warnings = checked("man", "--warnings", "-E", "UTF-8", "-l", str(page))
    # A file of the system, which some systems leave out.
    assert [line for line in warnings.splitlines() if "'man.local'" not in line] == []
    assert "数据库" in shown


def test_every_command_option_and_setting_stands_in_it(page: Path) -> None:
    shown, _ = checked("mandoc", "-Tutf8", "-O", "width=300", str(page))
    text = re.sub(".\b", "", shown)  # bold is written by going back
    lines = {line.strip() for line in text.splitlines()}
    for name, command in all_commands("qmd", cli):
        if command.hidden:
            continue
        assert name == "qmd" or name in lines
        context = click.Context(command, info_name=name)
        for param in command.params:
            record = param.get_help_record(context) if isinstance(param, click.Option) else None
            if record is not None:
                assert record[0] in text, (name, record[0])
    for setting in SETTINGS.values():
        assert setting.variable in lines or any(line.startswith(setting.variable) for line in lines)


def test_the_exit_codes_are_those_of_the_documentation() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == list(
        EXIT_CODES
    )


def test_a_pipe_gets_the_source(tmp_path: Path) -> None:
    assert Scratch(tmp_path).ok("man").out == man_page(cli)


@pytest.mark.unmeasured
def test_the_page_is_made_with_click_alone() -> None:
    """Where pip builds the wheel, none of the other requirements is installed."""
    code = (
        "import runpy, sys\n"
        "class Refused:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] not in {*sys.stdlib_module_names, 'click', 'qmd'}:\n"
        "            raise ModuleNotFoundError(f'{name} is not required for a build')\n"
        "sys.meta_path.insert(0, Refused())\n"
        "sys.argv = ['qmd', 'man']\n"
        "runpy.run_module('qmd', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_a_terminal_shows_the_page(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    program = scratch.write("bin/man", '#!/bin/sh\necho "shown: $(head -c 9 "$2")"\n')
    program.chmod(0o755)
    path = scratch.with_env(PATH=f"{program.parent}:/usr/bin:/bin")
    assert on_terminal(path, "man") == (0, "shown: .TH QMD 1\n")
    program.write_text("#!/bin/sh\nexit 1\n")
    code, shown = on_terminal(path, "man")
    assert code == 0
    assert ".SH NAME" in shown


def test_a_line_that_begins_with_a_dot_is_no_macro() -> None:
    @click.command("x", help=".qmdignore files, 'quotes' and back\\slashes\n\n.SH no section")
    def command() -> None: ...

    from qmd.cli.command import Group

    root = Group("qmd", commands={"x": command}, help="Text.")
    source = man_page(root)
    assert "\n\\&.qmdignore files, 'quotes' and back\\eslashes\n" in source
    assert "\n\\&.SH no section\n" in source

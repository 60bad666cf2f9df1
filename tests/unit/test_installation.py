"""Hints name the commands that reach the environment in which qmd runs."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from qmd.system import installation
from qmd.system.installation import Installation
from tests.support.source_trees import source_trees

ROOT = Path(__file__).parents[2]
PYTHON = "/usr/bin/python3"
FOLDER = {"url": "file:///home/ada/qmd%20notes", "dir_info": {}}
EDITABLE = {"url": "file:///home/ada/qmd", "dir_info": {"editable": True}}
WHEEL = {"url": "file:///tmp/qmd_python-1.3.0-py3-none-any.whl", "archive_info": {}}
REPOSITORY = {"url": "https://example.org/qmd.git", "vcs_info": {"vcs": "git", "commit_id": "1a"}}


def environment(tmp_path: Path, manager: str) -> Path:
    """A folder that looks as each program leaves it."""
    prefix = tmp_path / ("archive-v0" if manager == "uvx" else "environments") / "qmd-python"
    prefix.mkdir(parents=True)
    uv = "" if manager == "pip" else "uv = 0.13.9\n"
    (prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nimplementation = CPython\n{uv}")
    if manager == "uv tool":
        (prefix / "uv-receipt.toml").write_text("[tool]\n")
    if manager == "docker":
        (prefix / "qmd-image").touch()
    if manager == "pipx":
        (prefix / "pipx_metadata.json").write_text("{}")
    return prefix


@pytest.mark.parametrize(
    ("manager", "install", "reinstall"),
    [
        (
            "pip",
            f"{PYTHON} -m pip install onnx",
            f"{PYTHON} -m pip install --force-reinstall --no-deps '/home/ada/qmd notes'",
        ),
        (
            "uv pip",
            f"uv pip install --python {PYTHON} onnx",
            f"uv pip install --python {PYTHON} --force-reinstall --no-deps '/home/ada/qmd notes'",
        ),
        (
            "uv tool",
            "uv tool install --with onnx '/home/ada/qmd notes'",
            "uv tool install --reinstall '/home/ada/qmd notes'",
        ),
        (
            "uvx",
            "uvx --with onnx --from '/home/ada/qmd notes' qmd …",
            "uvx --refresh --from '/home/ada/qmd notes' qmd …",
        ),
        (
            "pipx",
            "pipx inject qmd-python onnx",
            "pipx install --force '/home/ada/qmd notes'",
        ),
    ],
)
def test_each_program_has_its_commands(
    manager: str, install: str, reinstall: str, tmp_path: Path
) -> None:
    here = installation.read(environment(tmp_path, manager), PYTHON, FOLDER)
    assert here.manager == manager
    assert (here.install("onnx"), here.reinstall()) == (install, reinstall)


@pytest.mark.parametrize(
    ("manager", "direct_url", "upgrade"),
    [
        ("pip", None, f"{PYTHON} -m pip install --upgrade qmd-python"),
        ("uv tool", None, "uv tool upgrade qmd-python"),
        ("pipx", None, "pipx upgrade qmd-python"),
        ("uvx", None, "uvx --from qmd-python@latest qmd …"),
        (
            "uv tool",
            FOLDER,
            "get the newer version into /home/ada/qmd notes, then "
            "uv tool install --reinstall '/home/ada/qmd notes'",
        ),
        (
            "pip",
            EDITABLE,
            "get the newer version into /home/ada/qmd, then "
            f"{PYTHON} -m pip install --upgrade --editable /home/ada/qmd",
        ),
        (
            "pipx",
            WHEEL,
            "pipx install --force /tmp/qmd_python-1.3.0-py3-none-any.whl, "
            "with a newer file instead of this one",
        ),
        (
            "pip",
            REPOSITORY,
            f"{PYTHON} -m pip install --upgrade git+https://example.org/qmd.git",
        ),
    ],
)
def test_a_newer_version_comes_from_where_this_one_came(
    manager: str, direct_url: dict[str, Any] | None, upgrade: str, tmp_path: Path
) -> None:
    here = installation.read(environment(tmp_path, manager), PYTHON, direct_url)
    assert here.upgrade() == upgrade


def test_in_an_image_nothing_is_installed(tmp_path: Path) -> None:
    here = installation.read(environment(tmp_path, "docker"), PYTHON, FOLDER)
    assert {here.install("onnx"), here.reinstall(), here.upgrade()} == {
        "build the image again from the newest version (integrations/docker/Dockerfile)"
    }


def test_a_clone_is_pulled(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    here = Installation("uv tool", "folder", str(tmp_path), editable=False, python=PYTHON)
    assert here.upgrade() == (
        f"git -C {shlex.quote(str(tmp_path))} pull, then "
        f"uv tool install --reinstall {shlex.quote(str(tmp_path))}"
    )


def test_what_is_no_statement_of_an_installer_counts_as_an_index(tmp_path: Path) -> None:
    assert installation.read(tmp_path, PYTHON, {"url": 7}).source == "qmd-python"
    assert installation.read(tmp_path / "missing", PYTHON, None).manager == "pip"


def test_this_process_names_its_own_interpreter_and_the_folder_of_the_tests() -> None:
    here = installation.current()
    assert here.python == sys.executable
    assert here.origin != "folder" or here.editable is False or Path(here.source) == ROOT


def test_without_metadata_the_folder_of_the_code_is_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installation, "DISTRIBUTION", "qmd-of-another-name")
    here = installation.current()
    assert (Path(here.source), here.editable) == (ROOT, True)


def strings(tree: ast.Module) -> list[str]:
    """The texts of a module, its docstrings left out."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


@pytest.mark.unmeasured
def test_no_other_module_writes_such_a_command_itself() -> None:
    command = re.compile(
        r"\b(pip3?|pipx|uv pip|uv tool) (install|upgrade|inject)\b|(install|upgrade).* qmd-python",
        re.I,
    )
    elsewhere = {
        f"{name}: {text}"
        for name, tree in source_trees().items()
        if not name.endswith("/installation.py")
        for text in strings(tree)
        if command.search(text) and text != "qmd-python"  # the name of the cache directory
    }
    assert elsewhere == set()


def test_the_name_of_the_distribution_is_that_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"name = {json.dumps(installation.DISTRIBUTION)}\n" in project

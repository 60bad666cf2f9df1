"""The sdist, the wheel, and the programs that install qmd from a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from packages.conftest import ROOT, Run, needs

import qmd

VERSION = f"qmd, version {qmd.__version__}\n"
HINTS = """
from qmd.system import installation
here = installation.current()
print(here.manager, here.origin, here.source)
print(here.upgrade())
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    import subprocess

    directory = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT]
    subprocess.run(command, capture_output=True, check=True)
    return sorted(directory.iterdir())


def test_an_index_would_accept_both(dist: list[Path], run: Run) -> None:
    assert [path.suffix for path in dist] == [".whl", ".gz"]
    run("twine", "check", "--strict", *dist)


def test_the_wheel_has_no_file_that_a_wheel_should_not_have(dist: list[Path], run: Run) -> None:
    run("check-wheel-contents", "--config", ROOT / "pyproject.toml", dist[0])


SYSTEMS = {
    "x86_64-unknown-linux-gnu": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    "aarch64-unknown-linux-gnu": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    "aarch64-apple-darwin": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    # No version of onnxruntime has a wheel for Python 3.14 on Macs with processors of Intel.
    "x86_64-apple-darwin": ("3.10", "3.11", "3.12", "3.13"),
    "x86_64-pc-windows-msvc": ("3.10", "3.11", "3.12", "3.13", "3.14"),
}


@needs("uv")
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_constraints_have_wheels_for_each_system_and_python(system: str, run: Run) -> None:
    """The versions exist, fit together, and nothing has to be compiled. Nothing is installed."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = {line.partition(" ;")[0] for line in constraints.splitlines()}
    for python in SYSTEMS[system]:
        resolved = run(
            *("uv", "pip", "compile", ROOT / "pyproject.toml", "--all-extras", "--quiet"),
            *("--no-header", "--no-annotate", "--only-binary", ":all:"),
            *("--python-version", python, "--python-platform", system),
            *("--constraints", ROOT / "constraints.txt"),
            env={"MACOSX_DEPLOYMENT_TARGET": "14.0"},
        )
        assert set(resolved.splitlines()) <= pins, python


@needs("uv")
def test_uv_tool_installs_it_from_a_folder(run: Run, tmp_path: Path) -> None:
    env = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    constraints = ("--constraints", ROOT / "constraints.txt")
    run("uv", "tool", "install", "--python", sys.executable, *constraints, ROOT, env=env)
    assert run(tmp_path / "bin/qmd", "--version") == VERSION
    manager, upgrade = run(tmp_path / "tools/qmd-python/bin/python", "-c", HINTS).splitlines()
    assert manager == f"uv tool folder {ROOT}"
    assert upgrade.endswith(f"uv tool install --reinstall {ROOT}")


@needs("uvx")
def test_uvx_runs_it_from_a_folder(run: Run) -> None:
    command = ("uvx", "--python", sys.executable, "--from", ROOT)
    assert run(*command, "qmd", "--version") == VERSION
    assert run(*command, "python", "-c", HINTS).startswith(f"uvx folder {ROOT}\n")


@needs("pipx")
def test_pipx_installs_it_from_a_folder(run: Run, tmp_path: Path) -> None:
    env = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    run("pipx", "install", "--python", sys.executable, ROOT, env=env)
    assert run(tmp_path / "bin/qmd", "--version") == VERSION
    (python,) = (tmp_path / "pipx/venvs").glob("*/bin/python")
    assert run(python, "-c", HINTS).startswith(f"pipx folder {ROOT}\n")


def test_pip_installs_it_from_the_wheel(dist: list[Path], run: Run, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", dist[0])
    assert run(python, "-c", HINTS).startswith(f"pip file {dist[0]}\n")
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json"))
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = {line.partition(" ;")[0] for line in constraints.splitlines()}
    outside = {f"{each['name'].lower()}=={each['version']}" for each in listed} - pins
    names = {pin.partition("==")[0] for pin in outside}
    assert names <= {"pip", "setuptools", "qmd-python", "pyjwt", "sqlean.py"} | {
        name for name in names if f"{name.replace('_', '-').replace('.', '-')}==" in constraints
    }

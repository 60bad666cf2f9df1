"""Tests with foreign programs, which tests/packages.sh installs and runs; no other run has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300
#: Variables by which a program finds the package index, or is told about this machine.
_KEPT = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")

collect_ignore_glob = [] if "QMD_TEST_PACKAGES" in os.environ else ["test_*.py"]

Run = Callable[..., str]


def needs(program: str) -> pytest.MarkDecorator:
    """Skip a test whose program could not be installed here."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def run(tmp_path: Path, home: Path) -> Run:
    """Runs a command that must succeed, with a home of its own; returns what it printed."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(("PIP_", "UV_"))
    }
    base = inherited | {
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.environ.get("PIP_CONFIG_FILE", _user_pip_config()),
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
    }

    def run_command(
        *command: str | Path, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> str:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=base | dict(env or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run_command


def _user_pip_config() -> str:
    """The file of pip's settings of the person who runs the tests: it may name the index."""
    for name in (".config/pip/pip.conf", ".pip/pip.conf"):
        if (path := Path.home() / name).exists():
            return str(path)
    return os.devnull

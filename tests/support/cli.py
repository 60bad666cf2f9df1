"""
The command line in a scratch directory: real files, a real database, no one's settings.

`Scratch.run` runs the command as a process; `Scratch.call` runs the same entry point in this
process, which is faster and sees the same streams and environment.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from qmd.cli.main import main
from qmd.system import telemetry
from tests.support.warm import warm

TIMEOUT_S = 60


def installed_command() -> list[str]:
    """The ``qmd`` beside this Python, as pip put it there."""
    found = shutil.which("qmd", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-m", "qmd"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def error(self) -> dict[str, str]:
        """The JSON error on stderr."""
        error: dict[str, str] = json.loads(self.err)["error"]
        return error


@dataclass(frozen=True)
class Scratch:
    """A directory with a home of its own, where nothing of this machine's user is seen."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "home").mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        home = str(self.root / "home")
        kept = (
            "PATH",
            "SYSTEMROOT",
            "TEMP",
            "TMP",
            "LANG",
            "LD_LIBRARY_PATH",
            "COVERAGE_PROCESS_CONFIG",
        )
        inherited = {name: os.environ[name] for name in kept if name in os.environ}
        return inherited | {"HOME": home, "USERPROFILE": home, "PYTHONUTF8": "1"} | self.extra

    def with_env(self, **extra: str) -> Scratch:
        return Scratch(self.root, self.extra | extra)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file below the scratch directory; text goes out as it is, in UTF-8."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    @property
    def database(self) -> Path:
        return self.root / "home/.local/share/qmd/index.sqlite"

    def start(self, *args: str, **options: Any) -> Any:
        """A process; ``options`` and what is returned: as of `subprocess.Popen`."""
        command = [*installed_command(), *args]
        return warm.popen(command, cwd=self.root, env=self.environment, **options)

    def run_raw(self, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [*installed_command(), *args]
        return warm.run(command, data=stdin, timeout=TIMEOUT_S, cwd=self.root, env=self.environment)

    def run(self, *args: str) -> Result:
        """The command, as a process of its own."""
        done = self.run_raw(*args)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def call(self, *args: str) -> Result:
        """The same command line in this process."""
        out, err = io.StringIO(), io.StringIO()
        with (
            self._here(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(args)
        return Result(code, out.getvalue(), err.getvalue())

    def ok(self, *args: str) -> Result:
        """`call`, for a command that must succeed."""
        result = self.call(*args)
        assert result.code == 0, (args, result)
        return result

    @contextlib.contextmanager
    def _here(self) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.root)
        try:
            # A process of its own would have set the switches when it imported qmd.
            environment = self.environment | telemetry.VARIABLES
            with mock.patch.dict(os.environ, environment, clear=True):
                yield
        finally:
            os.chdir(before)


NOTES = {
    "notes/plan.md": "# Road map\n\nWe deploy the parser in March.\n\nThe database is SQLite.\n",
    "notes/2025/retro.md": "---\ntags: [team, review]\ndate: 2025-03-01\n---\n"
    "# Retro\n\nDeploying took long.\n",
    "notes/zh/备份.md": "# 备份方案\n\n每天备份数据库。\n\n恢复时先停止写入。\n",
    "docs/api.md": "# API\n\nThe parser returns a tree; C++ callers get a pointer.\n",
    "docs/long.md": "# Long\n\n" + "".join(f"line {number}\n" for number in range(3, 61)),
}


def filled(root: Path, notes: Mapping[str, str] = NOTES) -> Scratch:
    """Notes, indexed without vectors; each folder is a collection, such as ``notes``, ``docs``."""
    scratch = Scratch(root)
    for name, text in notes.items():
        scratch.write(name, text)
    for name in dict.fromkeys(name.partition("/")[0] for name in notes):
        scratch.ok("collection", "add", name)
    return scratch

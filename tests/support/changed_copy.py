"""A copy of qmd with what a stranger adds to it, and the commands of that copy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.cli import Result, Scratch
from tests.support.http_server import Serving

REPOSITORY = Path(__file__).parents[2]

#: ``python -m qmd`` would take the package of the current directory.
_IMPORT = "import sys; sys.path.insert(0, {!r})\n"
COMMAND = "from qmd.__main__ import run; run()"
#: Each line is a command line, run in this process: to start one takes a second.
_COMMANDS = """
import io, json
from contextlib import redirect_stderr, redirect_stdout
from qmd.cli.main import main
for line in sys.stdin:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(json.loads(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


class ChangedCopy:
    """
    The copy, with an empty home in ``scratch``.

    Attributes:
        folder: Where its ``qmd`` lies.
    """

    def __init__(self, folder: Path, scratch: Scratch, added: Mapping[str, str]) -> None:
        """``added``: file → what is added at its end."""
        for name in ("qmd", "migrations"):
            shutil.copytree(REPOSITORY / name, folder / name)  # with what is compiled
        for name, text in added.items():
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write(text)
        self.folder = folder
        self.scratch = scratch
        self._commands: subprocess.Popen[str] | None = None

    def __enter__(self) -> ChangedCopy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._commands is not None:
            self._commands.communicate(timeout=60)

    def python(self, code: str) -> list[str]:
        """The command that runs code with the copy."""
        return [sys.executable, "-c", _IMPORT.format(str(self.folder)) + code]

    def run(self, *arguments: str) -> Result:
        """A command line of the copy."""
        if self._commands is None:
            self._commands = subprocess.Popen(
                self.python(_COMMANDS),
                cwd=self.scratch.root,
                env=self.scratch.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._commands.stdin is not None
        assert self._commands.stdout is not None
        self._commands.stdin.write(json.dumps(arguments) + "\n")
        self._commands.stdin.flush()
        return Result(*json.loads(self._commands.stdout.readline()))

    def ok(self, *arguments: str) -> str:
        """What a command line prints that must succeed."""
        result = self.run(*arguments)
        assert result.code == 0, (arguments, result)
        return result.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def serve(self, *options: str) -> Serving:
        """Its server, in a process of its own."""
        command = self.python(COMMAND)
        arguments = ["server", "--transport", "http", "--port", "0", *options]
        return Serving(
            [*command, "--db", str(self.scratch.database), *arguments],
            environment=self.scratch.environment,
        )

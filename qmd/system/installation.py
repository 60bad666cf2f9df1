"""
Says which commands change the installation of qmd that runs: by pip, uv or pipx, from where.

Hints take their commands from here, so that each command works where it is read: `uv tool` and
`pipx` keep qmd in an environment of its own, which a plain `pip install` does not reach, and a
package index is named only if qmd was installed from one. What is read was written by the
installers: `direct_url.json` (PEP 610), `uv-receipt.toml`, `pipx_metadata.json`, `pyvenv.cfg`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from qmd import libraries

DISTRIBUTION = "qmd-python"

_NEW_IMAGE = "build the image again from the newest version (integrations/docker/Dockerfile)"
# The parts of uv's cache in which uvx makes environments.
_UV_CACHE = re.compile(r"(archive|environments)-v\d+")

Manager = Literal["pip", "uv pip", "uv tool", "uvx", "pipx", "docker"]
Origin = Literal["index", "folder", "file", "repository"]


@dataclass(frozen=True, slots=True)
class Installation:
    """
    How qmd came to this machine.

    Args:
        manager: The program that installed it.
        origin: What kind of place it was installed from.
        source: What to name to install it again: a package, a folder, a file or a URL.
        editable: Whether it runs from that folder, so that a change there needs no installation.
        python: The interpreter that qmd runs in.
    """

    manager: Manager
    origin: Origin
    source: str
    editable: bool
    python: str

    def install(self, package: str) -> str:
        """The command that adds a package to those that qmd can import."""
        match self.manager:
            case "uv tool":
                return _line("uv", "tool", "install", "--with", package, *self._named())
            case "uvx":
                return _line("uvx", "--with", package, "--from", self.source, "qmd") + " …"
            case "pipx":
                return _line("pipx", "inject", DISTRIBUTION, package)
            case "docker":
                return _NEW_IMAGE
            case _:
                return _line(*self._pip(), package)

    def reinstall(self, package: str = "") -> str:
        """The command that installs qmd again, or a package that it uses."""
        match self.manager:
            case "uv tool":
                return _line("uv", "tool", "install", "--reinstall", *self._named())
            case "uvx":
                return _line("uvx", "--refresh", "--from", self.source, "qmd") + " …"
            case "pipx":
                return _line("pipx", "install", "--force", *self._named())
            case "docker":
                return _NEW_IMAGE
            case _:
                again = [package] if package else self._named()
                return _line(*self._pip(), "--force-reinstall", "--no-deps", *again)

    def upgrade(self) -> str:
        """The command, or the steps, that install a newer qmd."""
        if self.manager == "docker":
            return _NEW_IMAGE
        if self.origin == "index":
            return self._upgrade_from_index()
        if self.origin == "file":
            return f"{self._install_new()}, with a newer file instead of this one"
        if self.origin == "repository":
            return self._install_new()
        if (Path(self.source) / ".git").exists():
            pull = _line("git", "-C", self.source, "pull")
        else:
            pull = f"get the newer version into {self.source}"
        return f"{pull}, then {self._install_new()}"

    def _upgrade_from_index(self) -> str:
        match self.manager:
            case "uv tool" | "pipx":
                return _line(*self.manager.split(), "upgrade", self.source)
            case "uvx":
                return _line("uvx", "--from", f"{self.source}@latest", "qmd") + " …"
            case _:
                return _line(*self._pip(), "--upgrade", self.source)

    def _install_new(self) -> str:
        """Install what is at the source now, with the packages that it needs."""
        if self.manager in ("pip", "uv pip"):
            return _line(*self._pip(), "--upgrade", *self._named())
        return self.reinstall()

    def _named(self) -> list[str]:
        return ["--editable", self.source] if self.editable else [self.source]

    def _pip(self) -> list[str]:
        if self.manager == "uv pip":
            return ["uv", "pip", "install", "--python", self.python]
        return [self.python, "-m", "pip", "install"]


def current() -> Installation:
    """The installation that this process runs in."""
    return read(Path(sys.prefix), sys.executable, _direct_url())


def program() -> tuple[str, ...]:
    """The command that starts this qmd from anywhere: the full path of its program."""
    scripts = Path(sys.executable).parent
    for name in ("qmd", "qmd.exe"):
        if (scripts / name).is_file():
            return (str(scripts / name),)
    # Without -P or -I, Python would take a folder "qmd" in the working directory for the package.
    return (sys.executable, "-I", "-m", "qmd")


def read(prefix: Path, python: str, direct_url: dict[str, Any] | None) -> Installation:
    """
    What the files of an environment say.

    Args:
        prefix: The environment's folder.
        python: Its interpreter.
        direct_url: The content of `direct_url.json`; None if qmd came from a package index.
    """
    origin, source, editable = _source(direct_url)
    return Installation(_manager(prefix), origin, source, editable, python)


def _manager(prefix: Path) -> Manager:
    if (prefix / "uv-receipt.toml").is_file():
        return "uv tool"
    if (prefix / "qmd-image").is_file():  # the Dockerfile makes it
        return "docker"
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx"
    if _UV_CACHE.fullmatch(prefix.parent.name):
        return "uvx"
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return "pip"
    return "uv pip" if any(line.startswith("uv =") for line in lines) else "pip"


def _direct_url() -> dict[str, Any] | None:
    try:
        text = libraries.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        content = json.loads(text) if text else None
    except (
        libraries.metadata.PackageNotFoundError
    ):  # it runs from a folder that was never installed
        folder = Path(__file__).resolve().parents[2]
        return {"url": folder.as_uri(), "dir_info": {"editable": True}}
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _source(direct_url: dict[str, Any] | None) -> tuple[Origin, str, bool]:
    """Where qmd was installed from, what to name to do so again, and whether it is editable."""
    url = direct_url.get("url") if direct_url else None
    if direct_url is None or not isinstance(url, str):
        return "index", DISTRIBUTION, False
    vcs, folder = direct_url.get("vcs_info"), direct_url.get("dir_info")
    if isinstance(vcs, dict):
        return "repository", f"{vcs.get('vcs', 'git')}+{url}", False
    editable = isinstance(folder, dict) and folder.get("editable") is True
    return ("folder" if isinstance(folder, dict) else "file"), _path(url), editable


def _path(url: str) -> str:
    """The path of a file URL; any other URL as it is."""
    parts = urlsplit(url)
    return libraries.request.url2pathname(parts.path) if parts.scheme == "file" else url


def _line(*words: str) -> str:
    """A command as a person types it in the shell of this system."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

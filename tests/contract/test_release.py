"""The version has one home, a release forgets nothing, and the constraints fit the project."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import qmd
from tests import release

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
MATRIX = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("win32", "AMD64")]
PYTHONS = [
    text.rpartition(" ")[2]
    for text in PROJECT["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", text)
]


def test_the_version_has_one_home() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "qmd/__init__.py"
    assert release.version() == qmd.__version__


def test_whatever_repeats_the_version_has_the_same() -> None:
    assert set(release.repeated().values()) == {release.version()}


def test_no_other_file_repeats_it() -> None:
    """In the files that other programs read; a new one belongs into `release.REPEATED`."""
    repeated = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("integrations/**/*", ".claude-plugin/*", ".github/**/*", "pyproject.toml")
        for path in ROOT.glob(pattern)
        if path.is_file()
        and path.suffix in {".json", ".toml", ".yml", ".py", ""}
        and qmd.__version__ in path.read_text(encoding="utf-8")
    }
    assert repeated == set(release.REPEATED)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files that a release writes, in place of the project's."""
    for name in ("qmd/__init__.py", "CHANGELOG.md", *release.REPEATED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## 1.0.0 - 2026-01-01\n\nOld.\n"
    )
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "HOME", tmp_path / "qmd/__init__.py")
    monkeypatch.setattr(release, "CHANGELOG", tmp_path / "CHANGELOG.md")
    return tmp_path


def test_a_release_writes_the_version_everywhere(copy: Path) -> None:
    release.prepare("9.8.7", "2027-02-03")
    assert {release.version(), *release.repeated().values()} == {"9.8.7"}
    assert release.section("9.8.7") == "### Added\n\n- A thing."
    assert "## Unreleased\n\n## 9.8.7 - 2027-02-03\n" in (copy / "CHANGELOG.md").read_text()
    assert release.problems("v9.8.7") == []


def test_a_second_run_changes_nothing(copy: Path) -> None:
    release.prepare("9.8.7", "2027-02-03")
    files = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    release.prepare("9.8.7", "2027-02-04")
    assert files == {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}


def test_what_a_release_forgot_is_named(copy: Path) -> None:
    release.prepare("9.8.7", "2027-02-03")
    plugin = copy / next(iter(release.REPEATED))
    plugin.write_text(plugin.read_text().replace("9.8.7", "9.8.6"))
    changelog = release.CHANGELOG
    changelog.write_text(changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n- x\n"))
    text = "\n".join(release.problems("v9.9.9"))
    assert "The tag is v9.9.9" in text
    assert "plugin.json has the version 9.8.6" in text
    assert "lines below 'Unreleased'" in text
    changelog.write_text("# Changelog\n\n## Unreleased\n")
    assert "no section '## 9.8.7" in "\n".join(release.problems("v9.8.7"))


@pytest.mark.parametrize("number", ["1.4", "v1.4.0", "1.4.0-beta"])
def test_what_is_no_version_is_refused(number: str) -> None:
    script = ROOT / "tests/release.py"
    done = subprocess.run(
        [sys.executable, script, "prepare", number], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "is no version" in done.stderr


def constraints() -> list[Requirement]:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return [Requirement(line) for line in text.splitlines() if not line.startswith("#")]


def environment(python: str, system: str, machine: str) -> dict[str, str]:
    """What markers see on another machine."""
    return {
        **{name: str(value) for name, value in default_environment().items()},
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system],
        "os_name": "nt" if system == "win32" else "posix",
    }


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(("system", "machine"), MATRIX)
def test_the_constraints_have_a_version_for_each_dependency(
    python: str, system: str, machine: str
) -> None:
    """One that the project allows: pip finds no solution otherwise."""
    here = environment(python, system, machine)
    pins: dict[str, list[SpecifierSet]] = {}
    for pin in constraints():
        if pin.marker is None or pin.marker.evaluate(here):
            pins.setdefault(canonicalize_name(pin.name), []).append(pin.specifier)
    extras = PROJECT["optional-dependencies"].values()
    for line in (*PROJECT["dependencies"], *itertools.chain(*extras)):
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate(here):
            continue
        (specifier,) = pins[canonicalize_name(requirement.name)]
        (pin,) = specifier
        assert pin.operator == "=="
        assert requirement.specifier.contains(Version(pin.version)), line


def test_each_python_that_the_project_names_is_one_that_it_allows() -> None:
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert [python for python in PYTHONS if f"{python}.0" not in allowed] == []
    assert PYTHONS[0] == "3.10"
    assert allowed == SpecifierSet(f">={PYTHONS[0]}")

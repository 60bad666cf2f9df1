"""What a newer Python accepts and the oldest that qmd supports does not; CI runs all of them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, get_type_hints

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import pytest

pytestmark = pytest.mark.unmeasured  # reads the code and runs none of it

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OLDEST = PYPROJECT["project"]["requires-python"].removeprefix(">=")
#: Modules of the standard library that it lacks.
NEWER_MODULES = {"tomllib"}


def sources(word: str = "") -> Iterator[tuple[str, ast.Module]]:
    """The files that hold a word."""
    for folder in ("qmd", "tests", "migrations", "docs", "integrations", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if word in text:
                tree = ast.parse(text, feature_version=(3, 10))
                yield path.relative_to(ROOT).as_posix(), tree


def test_the_checkers_look_at_the_code_as_the_oldest_python_does() -> None:
    assert PYPROJECT["tool"]["mypy"]["python_version"] == OLDEST
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py" + OLDEST.replace(".", "")


def bare_class_variables(tree: ast.Module) -> list[int]:
    """The lines with an annotation ``ClassVar``, which `get_type_hints` of Python 3.10 refuses."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.annotation, ast.Name)
        and node.annotation.id == "ClassVar"
    ]


def test_annotations_can_be_read_by_python_3_10() -> None:
    """REST and the page read the types of values; they did not start on Python 3.10."""
    assert bare_class_variables(ast.parse("class A:\n    names: ClassVar = ()")) == [2]
    lines = {file: bare_class_variables(tree) for file, tree in sources("ClassVar")}
    assert {file: numbers for file, numbers in lines.items() if numbers} == {}


def test_a_class_variable_with_a_type_can_be_read() -> None:
    class Value:
        names: ClassVar[tuple[str, ...]] = ()

    assert "names" in get_type_hints(Value)


def test_modules_that_it_lacks_are_imported_behind_a_condition() -> None:
    unconditional = {
        f"{file}:{node.lineno}"
        for module in NEWER_MODULES
        for file, tree in sources(module)
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == module
    }
    assert unconditional == set()

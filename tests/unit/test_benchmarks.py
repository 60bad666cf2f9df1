"""The benchmarks, which no test runs, still fit each other and the package."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest
from support.source_trees import ROOT, nodes

SCRIPTS = {path.stem: path for path in sorted((ROOT / "benchmarks").rglob("*.py"))}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_benchmark_imports_exists(script: str) -> None:
    module = tree(SCRIPTS[script])
    older = optional_imports(module)
    for node in nodes(module):
        if not isinstance(node, ast.ImportFrom) or node.module is None or node in older:
            continue
        if node.module in SCRIPTS:
            defined = top_names(tree(SCRIPTS[node.module]))
            missing = {alias.name for alias in node.names} - defined
        elif node.module.split(".")[0] == "qmd":
            package = importlib.import_module(node.module)
            missing = {alias.name for alias in node.names if not has(package, alias.name)}
        else:
            continue
        assert not missing, f"{node.module} has no {', '.join(sorted(missing))}"


def optional_imports(module: ast.Module) -> set[ast.AST]:
    """Those inside `try`: for versions of the package that do not have a name."""
    return {below for node in nodes(module) if isinstance(node, ast.Try) for below in nodes(node)}


def top_names(module: ast.Module) -> set[str]:
    """What another script can import."""
    names: set[str] = set()
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            names |= {each.id for each in nodes(node) if isinstance(each, ast.Name)}
    return names


def has(package: ModuleType, name: str) -> bool:
    if hasattr(package, name):
        return True
    try:
        importlib.import_module(f"{package.__name__}.{name}")
    except ModuleNotFoundError:
        return False
    return True

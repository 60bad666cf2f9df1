"""What ARCHITECTURE.md promises of the code, read from the code."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import pytest

from tests.support import source_trees as code
from tests.support.source_trees import source_trees

pytestmark = pytest.mark.unmeasured  # reads the code and runs none of it

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "qmd"

SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|DELETE\s+FROM|UPDATE\s+\w+\s+SET"
    r"|CREATE\s+(VIRTUAL\s+)?(TABLE|VIEW|INDEX|TRIGGER)|DROP\s+TABLE|ALTER\s+TABLE|PRAGMA\s)",
    re.DOTALL,
)


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for name, of_module in code.source_nodes().items():
        for node in of_module:
            yield name, node


def strings(of_module: Sequence[ast.AST]) -> Iterator[str]:
    """Every string in a module but the docstrings; the fixed parts of f-strings, too."""
    docstrings: set[int] = set()
    for node in of_module:
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            docstrings.add(id(body[0].value))
    for node in of_module:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value


@functools.cache
def sql() -> Sequence[tuple[str, str]]:
    return [
        (name, text)
        for name, of_module in code.source_nodes().items()
        for text in strings(of_module)
        if SQL.search(text)
    ]


def test_sql_is_written_in_the_store_alone() -> None:
    # sqlite.py opens files, and the settings of a connection are part of that.
    found = [
        (name, text)
        for name, text in sql()
        if not name.startswith("qmd/store/")
        and not (name == "qmd/store/sqlite/library.py" and text.startswith("PRAGMA "))
    ]
    assert found == []


def test_the_scan_for_sql_finds_the_sql_of_the_store() -> None:
    names = {"sql/documents", "sql/collections", "sqlite/vectors", "postgres/full_text"}
    assert {f"qmd/store/{name}.py" for name in names} <= {name for name, _ in sql()}


def test_nothing_is_left_for_later() -> None:
    raised = [
        (name, node.lineno)
        for name, node in nodes()
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and ast.unparse(node.exc).startswith("NotImplementedError")
    ]
    marked = [
        (name, line)
        for name, path in code.source_files().items()
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"#.*\b(TODO|FIXME|XXX|HACK)\b", line)
    ]
    assert (raised, marked) == ([], [])


def test_only_the_faces_touch_the_standard_streams() -> None:
    streams = ("print", "stdout", "stderr", "stdin")
    found = [
        (name, node.lineno)
        for name, node in nodes()
        if not name.startswith(("qmd/cli/", "qmd/server/"))
        and isinstance(node, ast.Name | ast.Attribute)
        and getattr(node, "id", getattr(node, "attr", "")) in streams
        and ast.unparse(node) in {"print", *(f"sys.{stream}" for stream in streams)}
    ]
    assert found == []


def test_only_the_command_line_reads_the_settings() -> None:
    found = [
        name
        for name, node in nodes()
        if not name.startswith(("qmd/cli/", "qmd/config/"))
        and (
            (isinstance(node, ast.ImportFrom) and node.module == "qmd.config")
            or (isinstance(node, ast.alias) and node.name == "qmd.config")
        )
    ]
    assert found == []


def test_no_error_is_swallowed() -> None:
    """Whoever catches everything raises it again, or hands it on by name."""
    found = [
        (name, node.lineno)
        for name, node in nodes()
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        and not any(
            isinstance(inner, ast.Raise)
            or (isinstance(inner, ast.Name) and inner.id == node.name and node.name is not None)
            for inner in code.nodes(node)
        )
    ]
    assert found == []


def test_modules_are_named_for_what_they_hold_and_say_it() -> None:
    vague = {"utils", "util", "helpers", "manager", "common", "misc", "base"}
    assert [name for name in source_trees() if Path(name).stem in vague] == []
    silent = [
        name
        for name, tree in source_trees().items()
        if Path(name).name != "__main__.py" and not ast.get_docstring(tree)
    ]
    assert silent == []


def test_no_module_is_longer_than_can_be_read() -> None:
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in code.source_files().items()
    }
    assert {name: length for name, length in lengths.items() if length > 800} == {}


def top() -> set[str]:
    """The packages and modules right below qmd."""
    return {
        path.stem
        for path in PACKAGE.iterdir()
        if (path / "__init__.py").exists()
        or (path.suffix == ".py" and not path.stem.startswith("__"))
    }


def test_every_module_has_its_place_among_the_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    order, store = settings["tool"]["importlinter"]["contracts"]
    layers = [[name.strip() for name in layer.split("|")] for layer in order["layers"]]
    assert {name for layer in layers for name in layer} == {f"qmd.{name}" for name in top()}
    (level,) = [place for place, layer in enumerate(layers) if "qmd.store" in layer]
    above = {name for layer in layers[:level] for name in layer}
    assert set(store["source_modules"]) == above


def test_every_module_has_its_place_in_architecture_md() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    missing = {
        name for name in top() if not re.search(rf"^(## {name}: |- `{name}\b)", text, re.MULTILINE)
    }
    assert missing == set()


def test_no_migration_needs_more_than_a_stock_sqlite() -> None:
    scripts = list((ROOT / "migrations").glob("*.sql"))
    assert scripts
    for script in scripts:
        # An external content must be the view of the segmented text: over raw text a rebuild
        # would lose all Chinese.
        text = re.sub(
            r"content = '(v_searchable|(z_)?documents_fts_text)'|content=\"documents\"",
            "",
            script.read_text("utf-8"),
        )
        assert not re.search(r"vec0|contentless_delete|content\s*=", text)

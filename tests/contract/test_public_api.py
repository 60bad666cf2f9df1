"""What a program that imports qmd may rely on."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import qmd
from qmd import errors
from qmd.values.search import VSEARCH_MIN_SCORE

HEAVY = ("click", "mcp", "numpy", "onnxruntime", "fastembed", "pydantic", "sqlite_utils", "yaml")


def loaded_after(code: str) -> set[str]:
    """The top-level modules of a new Python that ran ``code``."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, timeout=60
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_all_that_is_exported_can_be_had() -> None:
    assert sorted(qmd.__all__) == qmd.__all__
    for name in qmd.__all__:
        value = getattr(qmd, name)
        assert value is getattr(qmd, name)
        if inspect.isclass(value):
            assert value.__name__ == name
            assert inspect.getdoc(value)


def test_star_import_brings_exactly_what_is_exported() -> None:
    names: dict[str, object] = {}
    exec("from qmd import *", names)
    assert sorted(set(names) - {"__builtins__"}) == qmd.__all__


def test_what_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = qmd.Nonsense  # type: ignore[attr-defined]


def test_the_version_is_that_of_the_distribution() -> None:
    assert qmd.__version__ == metadata.version("qmd-python")


@pytest.mark.unmeasured
def test_importing_qmd_loads_nothing_of_it() -> None:
    everything = loaded_after("import qmd, sys; assert 'qmd.kb' not in sys.modules")
    assert not everything & {*HEAVY, "sqlite3", "pysqlite3"}


@pytest.mark.unmeasured
def test_importing_qmd_takes_no_time() -> None:
    """What loads with it comes before the command line heeds Ctrl-C, and slows every start."""
    script = "import sys; before = {*sys.modules}; import qmd; print(*({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    allowed = {"qmd", "qmd.lazy", "qmd.system", "qmd.system.telemetry", "__future__"}
    assert set(done.stdout.decode().split()) <= allowed


def test_opening_and_searching_loads_nothing_heavy(tmp_path: object) -> None:
    code = (
        "from qmd import KnowledgeBase\n"
        f"with KnowledgeBase.open({str(tmp_path)!r} + '/a.sqlite', create={{}}) as kb:\n"
        "    kb.search('word')"
    )
    loaded_after(code.format(True))  # makes the file, which takes sqlite_utils
    assert not loaded_after(code.format(False)) & set(HEAVY)


def test_every_public_method_says_what_it_does() -> None:
    undocumented = [
        name
        for name, member in inspect.getmembers(qmd.KnowledgeBase)
        if not name.startswith("_")
        and not inspect.getdoc(member)
        and name not in {"status"}  # its value says it all
    ]
    assert not undocumented


def every_error(root: type[errors.QmdError] = errors.QmdError) -> set[type[errors.QmdError]]:
    return {root}.union(*(every_error(child) for child in root.__subclasses__()))


def drawn_tree() -> dict[str, str | None]:
    """Name → parent, as the docstring of qmd.errors draws it."""
    parents: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([ │├└─]*)(\w+Error)\b", line)
        if match is None or not (match[1] or not parents):
            continue
        depth = len(match[1])
        path = [entry for entry in path if entry[0] < depth]
        parents[match[2]] = path[-1][1] if path else None
        path.append((depth, match[2]))
    return parents


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    real = {
        kind.__name__: None if kind is errors.QmdError else kind.__mro__[1].__name__
        for kind in every_error()
        if kind.__module__ == "qmd.errors"
    }
    assert drawn_tree() == real


def test_no_error_is_defined_elsewhere() -> None:
    assert {kind.__module__ for kind in every_error()} == {"qmd.errors"}


def test_every_error_says_how_a_face_shows_it() -> None:
    for kind in every_error():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code), kind
        assert kind.exit_code in {1, 2}, kind
        assert 400 <= kind.http_status < 600, kind


def test_a_search_takes_the_options_of_its_command_and_no_others(tmp_path: Path) -> None:
    options = {
        name: set(inspect.signature(getattr(qmd.KnowledgeBase, name)).parameters)
        for name in ("search", "vsearch", "query")
    }
    assert {"self", "query", "limit", "filters"} <= options["search"]
    assert options["vsearch"] - options["search"] == {"expand", "intent"}
    assert options["query"] - options["vsearch"] == {"rerank", "candidates", "without"}
    defaults = inspect.signature(qmd.KnowledgeBase.vsearch).parameters
    assert defaults["min_score"].default == VSEARCH_MIN_SCORE
    with qmd.KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        with pytest.raises(TypeError, match="rerank"):
            kb.search("word", rerank=False)
        with pytest.raises(TypeError, match="positional"):
            kb.search("word", 5)  # type: ignore[misc]

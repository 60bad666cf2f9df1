"""How the code is to read: names, complexity, imports and types, checked in the code."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.source_trees import nodes, source_nodes, source_trees

pytestmark = pytest.mark.unmeasured  # reads the code and runs none of it

ROOT = Path(__file__).parents[2]

#: They say that a value came from somewhere, never what it is.
VAGUE_NAMES = {
    "asked", "everything", "found", "given", "its", "known", "made", "of", "own", "said", "told",
    "wanted",
}  # fmt: skip
MAX_COMPLEXITY = 15

Function = ast.FunctionDef | ast.AsyncFunctionDef


def bound_names(of_module: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Every name that a module gives to something, with its line."""
    for node in of_module:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, Function | ast.ClassDef):
            yield node.name, node.lineno


def test_names_say_what_a_thing_is() -> None:
    vague = [
        f"{file}:{line} {name}"
        for file, of_module in source_nodes().items()
        for name, line in bound_names(of_module)
        if name.strip("_").lower() in VAGUE_NAMES
    ]
    assert not vague, f"say what the thing is; these names do not: {', '.join(sorted(VAGUE_NAMES))}"


def functions(of_module: Iterable[ast.AST]) -> Iterator[Function]:
    return (node for node in of_module if isinstance(node, Function))


def complexity(function: Function) -> int:
    """
    The number of paths through a function as radon counts them, those of functions inside it
    left out: one, and one more for each decision, ``and``/``or``, and part of a comprehension.
    """
    paths = 1
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, Function):
            continue
        if isinstance(node, ast.If | ast.IfExp | ast.Assert | ast.Lambda):
            paths += 1
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            paths += 1 + bool(node.orelse)
        elif isinstance(node, ast.Try):
            paths += len(node.handlers) + bool(node.orelse)
        elif isinstance(node, ast.comprehension):
            paths += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            paths += len(node.values) - 1
        elif isinstance(node, ast.match_case):
            paths += 1
        pending.extend(ast.iter_child_nodes(node))
    return paths


def test_the_complexity_of_a_function_is_counted() -> None:
    (function,) = functions(
        nodes(ast.parse("def f(a, b):\n  if a and b: return [c for c in a if c]\n  return b or 0"))
    )
    assert complexity(function) == 1 + 1 + 1 + 2 + 1


def test_no_function_has_more_paths_than_a_reader_can_follow() -> None:
    complex_functions = {
        f"{file}:{function.lineno} {function.name}": paths
        for file, of_module in source_nodes().items()
        for function in functions(of_module)
        if (paths := complexity(function)) > MAX_COMPLEXITY
    }
    assert not complex_functions, f"more than {MAX_COMPLEXITY} paths: make functions of parts"


def module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_modules(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """The modules of qmd that a module imports when it runs, in its functions too."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module
        pending.extend(ast.iter_child_nodes(node))


def test_no_module_imports_in_a_circle() -> None:
    names = {module_name(file) for file in source_trees()}
    imports = {
        module_name(file): {*imported_modules(tree, names)} & names - {module_name(file)}
        for file, tree in source_trees().items()
    }
    # What imports nothing of the rest, or is imported by none of it, is in no circle.
    while True:
        imported = set().union(*imports.values())
        free = {name for name in imports if name not in imported or not imports[name]}
        if not free:
            break
        imports = {name: targets - free for name, targets in imports.items() if name not in free}
    assert not imports, "these modules import each other in a circle"


def attributes_of_packages(
    of_module: Sequence[ast.AST], packages: set[str]
) -> Iterator[tuple[str, str]]:
    """The packages of qmd that a module imports whole, each with an attribute that it uses."""
    names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in of_module
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in packages
    }
    for node in of_module:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in names:
                yield names[name], attribute
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=name), attr=inner), attr=attribute
            ) if f"{names.get(name)}.{inner}" in packages:
                yield f"{names[name]}.{inner}", attribute


def offers(package: ModuleType, name: str) -> bool:
    """Whether a package has an attribute, also when nobody has loaded the module of that name."""
    value = vars(package).get(name)
    if value is not None and not isinstance(value, ModuleType):
        return True
    try:
        return package.__getattr__(name) is not None
    except AttributeError:
        return False


def test_a_package_has_what_others_use_of_it() -> None:
    """A type checker takes any module for an attribute of its package, listed there or not."""
    packages = {module_name(file) for file in source_trees() if file.endswith("__init__.py")}
    missing = [
        f"{file}: {package}.{name}"
        for file, of_module in source_nodes().items()
        for package, name in sorted(
            {*attributes_of_packages(of_module, {*packages, "qmd.libraries"})}
        )
        if not offers(importlib.import_module(package), name)
    ]
    assert not missing, "neither a module nor an attribute of the package"


def public_annotations(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The types in the signatures of public functions and methods, and of public fields."""
    scopes: list[ast.Module | ast.ClassDef] = [tree]
    while scopes:
        for node in scopes.pop().body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                scopes.append(node)
            elif isinstance(node, Function) and not node.name.startswith("_"):
                arguments = node.args
                every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                every += [each for each in (arguments.vararg, arguments.kwarg) if each]
                yield from ((node.name, each.annotation) for each in every if each.annotation)
                if node.returns:
                    yield node.name, node.returns
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, node.annotation


def test_public_signatures_name_their_types() -> None:
    untyped = [
        f"{file}: {name}"
        for file, tree in source_trees().items()
        if file.startswith(("qmd/kb/", "qmd/values/", "qmd/store/"))
        for name, annotation in public_annotations(tree)
        if any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))
    ]
    assert not untyped, "public signatures say which type they take and return, not Any"


def test_a_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for file, of_module in source_nodes().items():
        for node in of_module:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(file)
    several = {name: files for name, files in homes.items() if len(files) > 1}
    assert not several, "one name, one meaning: name one of these classes differently"


REFERENCE = re.compile(r"(?<!`)`(qmd(?:\.\w+)+)`(?!`)")


def test_references_lead_to_what_is_there() -> None:
    """`qmd.parse.links.mask_code` is a name of a module, and no module refers to itself."""
    names = {
        module_name(file): {name for name, _ in bound_names(of_module)} | imported(of_module)
        for file, of_module in source_nodes().items()
    }

    def is_there(reference: str, here: str) -> bool:
        if reference in names:
            return reference != here
        module, _, name = reference.rpartition(".")
        if module in names:
            return name in names[module]
        return bool(module) and is_there(module, here)  # a member of a class

    broken = [
        f"{file}: {reference}"
        for file in source_trees()
        for reference in REFERENCE.findall((ROOT / file).read_text("utf-8"))
        if not is_there(reference, module_name(file))
    ]
    assert not broken


def imported(of_module: Iterable[ast.AST]) -> set[str]:
    return {
        alias.asname or alias.name
        for node in of_module
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }

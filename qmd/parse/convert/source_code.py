"""
Turns source code into Markdown: each definition of a function, a class or a method is a section.

tree-sitter finds the definitions; it reads code that is incomplete, too. What stands between them
is a section named after the file. Each section is an anchor with its line in the file. Nothing is
run or imported.
"""

from __future__ import annotations

import itertools
import re
from functools import cache
from importlib import import_module
from typing import NamedTuple

from tree_sitter import Language, Node, Parser, Tree

from qmd.parse.convert.blocks import Blocks, code_span, fenced
from qmd.parse.converted import Converted
from qmd.parse.decode import decode
from qmd.parse.lines import split_lines

#: Definitions of one file; the rest of it is one section.
MAX_DEFINITIONS = 20_000
#: The most steps that the parser of a file may take; real code takes one for every 150 bytes.
LEAST_STEPS, BYTES_PER_STEP = 100, 5
_SLICE = 256  # bytes that the parser reads at once
#: Definitions inside each other, such as methods in classes.
_MAX_DEPTH = 4
#: Nodes between a definition and one inside it, such as blocks and exports.
_MAX_STEPS = 12

#: Suffix → module of the grammar, its function, and the word after a fence.
LANGUAGES = {
    **dict.fromkeys(("py", "pyi", "pyw"), ("python", "language", "python")),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), ("javascript", "language", "javascript")),
    **dict.fromkeys(("ts", "mts", "cts"), ("typescript", "language_typescript", "typescript")),
    "tsx": ("typescript", "language_tsx", "tsx"),
    "go": ("go", "language", "go"),
    "rs": ("rust", "language", "rust"),
    "java": ("java", "language", "java"),
    **dict.fromkeys(("c", "h"), ("c", "language", "c")),
    **dict.fromkeys(("cc", "cpp", "cxx", "hh", "hpp", "hxx"), ("cpp", "language", "cpp")),
    "cs": ("c_sharp", "language", "csharp"),
    "rb": ("ruby", "language", "ruby"),
    "php": ("php", "language_php", "php"),
    **dict.fromkeys(("sh", "bash"), ("bash", "language", "bash")),
}
_FUNCTIONS = re.compile(
    r"(?:function|method|constructor|destructor|generator_function|singleton_method|function_item)"
    r"(?:_definition|_declaration|_item)?|local_function_statement|macro_definition|record_declaration"
)
_CLASSES = re.compile(
    r"(?:class|struct|interface|trait|enum|union|impl|module|mod|namespace|record|object|protocol|"
    r"abstract_class|internal_module|file_scoped_namespace)(?:_definition|_declaration|_item|_specifier)?"
    r"|type_declaration|singleton_class"
)
#: Of these, one without a body is a definition, too; of others it only announces one.
_WITHOUT_BODY = frozenset(("method", "singleton_method", "method_declaration", "module", "class"))
#: What stands around a definition and belongs to it.
_AROUND = frozenset(("decorated_definition", "export_statement", "template_declaration"))
#: Where definitions may stand; nothing is looked for in expressions.
_INSIDE = re.compile(
    r"(?:program|module|source_file|translation_unit|compilation_unit)|.*(?:body|block|list|namespace)"
    r"|preproc_\w+|linkage_specification|decorated_definition|export_statement|template_declaration"
    r"|lexical_declaration|body_statement|if_statement|expression_statement|ambient_declaration"
)
_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "function", "class"))
#: The end of a definition, which is no code of its own.
_BARE = re.compile(r"[\s{}()\[\];,]*(?:end\s*)*")


class _Definition(NamedTuple):
    first: int  # line, from 0
    last: int  # the line after it
    depth: int
    name: str


class _Section(NamedTuple):
    first: int
    depth: int
    name: str


def convert(path: str, data: bytes) -> Converted:
    """
    A file of source code.

    Raises:
        DecodeError: The bytes are no text.
    """
    decoded = decode(data)
    lines = split_lines(decoded.text)
    file_name = path.rpartition("/")[2]
    suffix = file_name.rpartition(".")[2].lower()
    language, fence = _language(suffix), LANGUAGES.get(suffix, ("", "", ""))[2]
    definitions: list[_Definition] = []
    if language is not None:
        tree = _tree(language, "\n".join(lines).encode())
        definitions = [] if tree is None else _definitions(tree.root_node, lines)
    blocks = Blocks()
    sections = _sections(definitions, lines, file_name)
    for number, section in enumerate(sections):
        end = sections[number + 1].first if number + 1 < len(sections) else len(lines)
        code = "\n".join(lines[section.first : end]).strip("\n").rstrip()
        if not code.strip():
            continue
        blocks.anchor("line", str(section.first + 1))
        if section.name:
            level = min(6, section.depth + 2)
            blocks.markdown(f"{'#' * level} {code_span(section.name)}")
        blocks.markdown(fenced(code, fence))
    return blocks.converted(title=file_name, warnings=decoded.warnings, encoding=decoded.encoding)


@cache
def _language(suffix: str) -> Language | None:
    """The grammar for files of a suffix; None if it is not installed."""
    if suffix not in LANGUAGES:
        return None
    name, function, _ = LANGUAGES[suffix]
    try:
        grammar = import_module(f"tree_sitter_{name}")
        return Language(getattr(grammar, function)())
    except (ImportError, AttributeError, ValueError):
        return None  # the file is read without sections


def _tree(language: Language, code: bytes) -> Tree | None:
    """
    The syntax tree of a file; None for text so unlike the language that it takes too many steps.

    Mending errors may take time that grows with the square of the text.
    """
    steps = itertools.count()
    most = LEAST_STEPS + len(code) // BYTES_PER_STEP

    def read(start: int, _point: object) -> bytes:
        # Looking ahead again and again reads again and again, and ends at the end of the text.
        return code[start : start + _SLICE] if next(steps) <= most else b""

    try:
        tree = Parser(language).parse(read, progress_callback=lambda *_: next(steps) > most)
    except ValueError:  # it was stopped
        return None
    return tree if next(steps) <= most else None


def _definitions(root: Node, lines: list[str]) -> list[_Definition]:
    """The definitions, each after the one around it."""
    definitions: list[_Definition] = []
    row = -1  # at which the last definition begins
    # A node, how many definitions and how many other nodes are around it, and what belongs to it.
    stack = [(each, 0, 0, each) for each in reversed(root.named_children)]
    while stack and len(definitions) < MAX_DEFINITIONS:
        node, depth, steps, outer = stack.pop()
        name = _name(node)
        if name:
            if outer.start_point.row <= row:
                continue  # on the line of another definition
            row = outer.start_point.row
            first = _first_line(row, lines, definitions)
            definitions.append(_Definition(first, outer.end_point.row + 1, depth, name))
            if not _CLASSES.fullmatch(node.type):
                continue
            depth, steps = depth + 1, 0
        if depth < _MAX_DEPTH and steps < _MAX_STEPS and (name or _INSIDE.fullmatch(node.type)):
            is_around = node.type in _AROUND
            for each in reversed(node.named_children):
                stack.append((each, depth, steps + 1, outer if is_around else each))
    return definitions


def _first_line(first: int, lines: list[str], before: list[_Definition]) -> int:
    """The line at which a definition begins, with the comments right above it."""
    end_before = before[-1].first + 1 if before else 0
    while first > end_before and lines[first - 1].lstrip().startswith(("#", "//", "/*", "*", "@")):
        first -= 1
    return first


def _name(node: Node) -> str:
    """What a node defines; empty if it is no definition."""
    kind = node.type
    if kind == "lexical_declaration":
        return _name_of_function_value(node)
    if not _FUNCTIONS.fullmatch(kind) and not _CLASSES.fullmatch(kind):
        return ""
    if kind == "impl_item":
        trait = _text(node.child_by_field_name("trait"))
        subject = _text(node.child_by_field_name("type"))
        return f"{trait} for {subject}" if trait else subject
    if kind == "type_declaration":
        spec = next(iter(node.named_children), None)
        return _text(spec.child_by_field_name("name")) if spec else ""
    name = node.child_by_field_name("name") or _declarator(node)
    has_body = node.child_by_field_name("body") is not None or kind.endswith("_item")
    return _text(name) if has_body or kind in _WITHOUT_BODY else ""


def _name_of_function_value(node: Node) -> str:
    """The name of a constant of JavaScript that holds a function or a class."""
    for declarator in node.named_children:
        value = declarator.child_by_field_name("value")
        if value is not None and value.type in _FUNCTION_VALUES:
            return _text(declarator.child_by_field_name("name"))
    return ""


def _declarator(node: Node) -> Node | None:
    """Where the name of a definition of C stands: inside pointers and parameters."""
    declarator = None
    inner = node.child_by_field_name("declarator")
    for _ in range(8):
        if inner is None:
            break
        declarator, inner = inner, inner.child_by_field_name("declarator")
    return declarator


def _text(node: Node | None) -> str:
    text = (node.text or b"").decode("utf-8", "replace") if node is not None else ""
    return " ".join(text[:200].split())


def _sections(definitions: list[_Definition], lines: list[str], file_name: str) -> list[_Section]:
    """
    Where each section begins: a definition, or code after one that does not belong to it.

    Such code is a section of the definition around it, or of the file.
    """
    sections = [_Section(0, 0, "")]
    around: list[_Definition] = []
    for number, definition in enumerate(definitions):
        while around and around[-1].last <= definition.first:
            around.pop()
        around.append(definition)
        if sections[-1].first == definition.first:
            sections.pop()
        sections.append(_Section(definition.first, definition.depth, definition.name))
        is_last = number + 1 == len(definitions)
        after = len(lines) if is_last else definitions[number + 1].first
        rest = "\n".join(lines[definition.last : after])
        if not _BARE.fullmatch(rest):
            outer = next((each for each in reversed(around) if each.last > definition.last), None)
            name, depth = (outer.name, outer.depth) if outer else (file_name, 0)
            sections.append(_Section(definition.last, depth, name))
    return sections

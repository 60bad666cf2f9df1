"""
Reads the description of a view: YAML of qmd, a query of Dataview, or a base of Obsidian.

All three become a `ViewQuery`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qmd import parse
from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.parse.lines import split_lines
from qmd.search.views import expressions
from qmd.search.views.expressions import Expression, TokenReader, unreadable

MAX_COLUMNS = 30
#: Characters of what describes views.
MAX_TEXT = 50_000

#: Of one note.
MAX_VIEWS = 20

_FILE = Expression("name", "file")
_FILE_LINK = Expression("member", "link", (_FILE,))


class ViewColumn(NamedTuple):
    label: str
    value: Expression


class SortKey(NamedTuple):
    value: Expression
    descending: bool


class ViewQuery(NamedTuple):
    """
    What a view asks for.

    Attributes:
        words: A query of `search`, whose hits are the only notes; "" for none.
        conditions: Which notes; all of them must hold.
        group: None for no groups.
        limit: The most notes; None for no limit of its own.
        formulas: Expressions by name.
    """

    name: str = ""
    words: str = ""
    conditions: tuple[Expression, ...] = ()
    columns: tuple[ViewColumn, ...] = (ViewColumn("File", _FILE_LINK),)
    sort: tuple[SortKey, ...] = ()
    group: Expression | None = None
    limit: int | None = None
    formulas: Mapping[str, Expression] = {}


class ViewBlock(NamedTuple):
    """A block of code that describes views: its language, its text, and its line, from 1."""

    language: str
    text: str
    line: int


_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]{0,9}(qmd|dataview|base)[ \t]*")


def view_blocks(text: str) -> Iterator[ViewBlock]:
    """The first blocks of a note that describe views."""
    block: list[str] = []
    opened: tuple[str, str, int] | None = None
    other_fence = ""
    count = 0
    for number, line in enumerate(split_lines(text), 1):
        bare = line.strip()
        if opened is not None:
            if bare.startswith(opened[0]) and not bare.strip(opened[0][0]):
                yield ViewBlock(opened[1], "\n".join(block), opened[2])
                opened, count = None, count + 1
            else:
                block.append(line.rstrip("\r\n"))
        elif other_fence:
            if bare.startswith(other_fence) and not bare.strip(other_fence[0]):
                other_fence = ""
        elif (match := _OPENING.fullmatch(line.rstrip("\r\n"))) is not None:
            if count == MAX_VIEWS:
                return
            opened, block = (match[1], match[2], number), []
        elif bare.startswith(("```", "~~~")):
            other_fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]


def read_views(language: str, text: str) -> list[ViewQuery]:
    """
    The views that a block describes; a base may have several.

    Args:
        language: ``qmd``, ``dataview`` or ``base``. A block of qmd may be a query of Dataview.

    Raises:
        InputError: It cannot be read, or asks for something that is not known here.
    """
    if len(text) > MAX_TEXT:
        raise InputError(engine_text("A view has at most {most} characters.", most=f"{MAX_TEXT:,}"))
    first = text.split(None, 1)[0].lower() if text.strip() else ""
    if language == "dataview" or first in ("table", "list", "task", "calendar"):
        return [_dataview(text)]
    value = _yaml(text)
    return _base(value) if language == "base" else [_in_yaml(value)]


def _yaml(text: str) -> Mapping[str, Any]:
    yaml = parse.yaml_values
    try:
        value, _ = yaml.YamlReader().read(text)
    except yaml.YamlRefused as refused:
        raise InputError(f"The view cannot be read: {refused}.") from None
    except yaml.YAMLError as error:
        raise InputError(
            f"The view is no valid YAML: {' '.join(str(error).split())[:200]}."
        ) from None
    if not isinstance(value, dict):
        raise InputError(
            "A view is written in YAML, such as 'where: rating > 3'.",
            hint="Or as a query of Dataview: TABLE rating FROM #book",
        )
    return value


# --- qmd -----------------------------------------------------------------------------

_KEYS = ("name", "query", "from", "tags", "where", "columns", "sort", "group", "limit")


def _in_yaml(value: Mapping[str, Any]) -> ViewQuery:
    for key in value:
        if key not in _KEYS:
            raise InputError(
                engine_text("A view has no key {name}.", name=repr(key[:60])),
                hint="Keys: " + ", ".join(_KEYS),
            )
    conditions = [_method("inFolder", each) for each in _texts(value.get("from"))]
    conditions = [_any(conditions)] if conditions else []
    conditions += [_method("hasTag", each.lstrip("#")) for each in _texts(value.get("tags"), ",")]
    conditions += [expressions.parse(each) for each in _texts(value.get("where"))]
    columns = tuple(_yaml_column(each) for each in _texts(value.get("columns"), ","))
    group = _texts(value.get("group"))
    return ViewQuery(
        " ".join(_texts(value.get("name"))),
        " ".join(_texts(value.get("query"))),
        tuple(conditions),
        _bounded(columns) or ViewQuery().columns,
        tuple(_yaml_sort(each) for each in _texts(value.get("sort"), ",")),
        expressions.parse(group[0]) if group else None,
        _limit(value.get("limit")),
    )


def _texts(value: object, sign: str = "") -> list[str]:
    """A text or a list of texts; a text is divided at a sign, if one is given."""
    if isinstance(value, str):
        parts = _split(value) if sign else [value]
        return [each.strip() for each in parts if each.strip()]
    if isinstance(value, list):
        return [text for each in value if (text := str(each).strip())]
    return [] if value is None else [str(value)]


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _yaml_column(text: str) -> ViewColumn:
    reader = TokenReader(expressions.tokens_of(text))
    column = _column(reader)
    reader.require_end()
    if column.label == "title":  # which opens the note
        return ViewColumn(column.label, Expression("call", "link", (_FILE_LINK, column.value)))
    return column


def _yaml_sort(text: str) -> SortKey:
    descending = text.startswith("-")
    reader = TokenReader(expressions.tokens_of(text.removeprefix("-")))
    value = reader.expression()
    descending |= reader.take_word("asc", "desc") == "desc"
    reader.require_end()
    return SortKey(value, descending)


def _limit(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and value > 0:
        return value
    raise InputError("The limit of a view is a number above 0.")


# --- Dataview ------------------------------------------------------------------------

_CLAUSES = ("from", "where", "sort", "group", "limit", "flatten")


def _dataview(text: str) -> ViewQuery:
    reader = TokenReader(expressions.tokens_of(_without_comments(text)))
    kind = reader.take_word("table", "list", "task", "calendar")
    if kind not in ("table", "list"):
        raise InputError(
            "Of Dataview, qmd shows TABLE and LIST.",
            hint="GET /tasks and the tool tasks list the tasks of notes; in the shell 'qmd tasks'"
            " does.",
        )
    has_file = True
    if reader.take_word("without"):
        reader.take_word("id")
        has_file = False
    columns = [ViewColumn("File", _FILE_LINK)] if has_file else []
    while reader.next.kind != "end" and reader.next.text.lower() not in _CLAUSES:
        columns.append(_column(reader))
        if not reader.take_sign(","):
            break
    query = ViewQuery(columns=_bounded(columns) or ViewQuery().columns)
    while (clause := reader.take_word(*_CLAUSES)) is not None:
        query = _with_clause(query, clause, reader)
    reader.require_end()
    return query


def _with_clause(query: ViewQuery, clause: str, reader: TokenReader) -> ViewQuery:
    if clause == "from":
        return query._replace(conditions=(*query.conditions, _source(reader.expression())))
    if clause == "where":
        return query._replace(conditions=(*query.conditions, reader.expression()))
    if clause == "sort":
        keys = [_sort_key(reader)]
        while reader.take_sign(","):
            keys.append(_sort_key(reader))
        return query._replace(sort=tuple(keys))
    if clause == "group":
        reader.take_word("by")
        group = _column(reader)
        return query._replace(group=group.value, formulas={**query.formulas, "key": group.value})
    if clause == "limit":
        value = reader.expression().value
        return query._replace(limit=_limit(int(value) if isinstance(value, float) else value))
    raise InputError(engine_text("A view does not know {name}.", name=clause.upper()))


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("//"))


def _column(reader: TokenReader) -> ViewColumn:
    value = reader.expression()
    if reader.take_word("as"):
        token = reader.take()
        if token.kind not in ("word", "string"):
            raise unreadable(token.text)
        return ViewColumn(token.text.strip("\"'"), value)
    return ViewColumn(_label(value), value)


def _label(node: Expression) -> str:
    """What a column without a label is called."""
    if node.kind == "member" and node.parts[0].kind == "name":
        return (
            f"{node.parts[0].value}.{node.value}"
            if node.parts[0].value == "file"
            else str(node.value)
        )
    return str(node.value) if node.kind == "name" else f"{node.value or node.kind}(…)"


def _sort_key(reader: TokenReader) -> SortKey:
    value = reader.expression()
    word = reader.take_word("asc", "desc", "ascending", "descending")
    return SortKey(value, (word or "").startswith("desc"))


def _source(node: Expression) -> Expression:
    """The condition that ``FROM`` means: a text is a folder, a link those that link there."""
    match node.kind:
        case "literal" if isinstance(node.value, str):
            return _method("inFolder", node.value)
        case "tag":
            return _method("hasTag", str(node.value))
        case "link":
            return Expression("method", "haslink", (_FILE, node))
        case "unary":
            return Expression("unary", "!", (_source(node.parts[0]),))
        case "binary" if node.value in ("&&", "||"):
            return Expression("binary", node.value, tuple(map(_source, node.parts)))
        # "#tag -#other" and "#tag - #other" mean no difference of numbers.
        case "binary" if node.value == "-":
            left, right = map(_source, node.parts)
            return Expression("binary", "&&", (left, Expression("unary", "!", (right,))))
    raise unreadable(str(node.value))


# --- bases ---------------------------------------------------------------------------


def _base(value: Mapping[str, Any]) -> list[ViewQuery]:
    formulas = {
        str(name): expressions.parse(text)
        for name, text in _mapping(value.get("formulas")).items()
        if isinstance(text, str) and len(value) < 100
    }
    labels = {
        str(name): str(settings["displayName"])
        for name, settings in _mapping(value.get("properties")).items()
        if isinstance(settings, dict) and settings.get("displayName")
    }
    common = _filter(value.get("filters"))
    views = value.get("views")
    described = (
        [each for each in views if isinstance(each, dict)] if isinstance(views, list) else []
    )
    return [_base_view(each, common, labels, formulas) for each in (described or [{}])[:MAX_VIEWS]]


def _base_view(
    view: Mapping[str, Any],
    common: Sequence[Expression],
    labels: Mapping[str, str],
    formulas: Mapping[str, Expression],
) -> ViewQuery:
    order = [str(each) for each in view.get("order") or ("file.name",)]
    columns = [ViewColumn(_base_label(each, labels), _base_column(each)) for each in order]
    sort = [each for each in _list(view.get("sort")) if isinstance(each, dict)]
    keys = [
        SortKey(_property(str(each.get("property"))), str(each.get("direction")).upper() == "DESC")
        for each in sort
    ]
    group = view.get("groupBy")
    by = group.get("property") if isinstance(group, dict) else group
    if by:  # Obsidian sorts groups by their value, and notes within them by the others
        direction = group.get("direction") if isinstance(group, dict) else "ASC"
        is_descending = str(direction).upper() == "DESC"
        keys.insert(0, SortKey(_property(str(by)), is_descending))
    limit = view.get("limit")
    return ViewQuery(
        str(view.get("name") or ""),
        conditions=(*common, *_filter(view.get("filters"))),
        columns=_bounded(columns),
        sort=tuple(keys),
        group=_property(str(by)) if by else None,
        limit=_limit(limit) if limit else None,
        formulas=formulas,
    )


def _filter(value: object, depth: int = 0) -> list[Expression]:
    """The conditions of a filter, all of which must hold."""
    if depth > 20:
        raise InputError("The filters of a base nest too deep.")
    if isinstance(value, str):
        return [expressions.parse(value)] if value.strip() else []
    if isinstance(value, list):
        return [node for each in value for node in _filter(each, depth + 1)]
    conditions: list[Expression] = []
    for key, part in _mapping(value).items():
        nodes = [_all(each) for one in _list(part) if (each := _filter(one, depth + 1))]
        if key == "and":
            conditions += nodes
        elif key == "or" and nodes:
            conditions.append(_any(nodes))
        elif key == "not" and nodes:
            conditions.append(Expression("unary", "!", (_any(nodes),)))
    return conditions


def _base_label(name: str, labels: Mapping[str, str]) -> str:
    kind, _, rest = name.partition(".")
    short = rest if kind in ("note", "formula") and rest else name
    return labels.get(name) or labels.get(f"note.{name}") or short


def _base_column(name: str) -> Expression:
    return _FILE_LINK if name in ("file.name", "file.basename") else _property(name)


def _property(name: str) -> Expression:
    """The property that a base names: ``file.name``, ``note.author``, ``formula.x``, ``author``."""
    kind, _, rest = name.partition(".")
    if kind in ("file", "note", "formula") and rest:
        return Expression("member", rest, (Expression("name", kind),))
    return Expression("name", name)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


# --- trees ---------------------------------------------------------------------------


def _method(name: str, text: str) -> Expression:
    return Expression("method", name.lower(), (_FILE, Expression("literal", text)))


def _any(nodes: Sequence[Expression]) -> Expression:
    return _balanced("||", nodes)


def _all(nodes: Sequence[Expression]) -> Expression:
    return _balanced("&&", nodes)


def _balanced(sign: str, nodes: Sequence[Expression]) -> Expression:
    """A tree that is not deep, however many there are."""
    if len(nodes) == 1:
        return nodes[0]
    middle = len(nodes) // 2
    return Expression(
        "binary", sign, (_balanced(sign, nodes[:middle]), _balanced(sign, nodes[middle:]))
    )


def _bounded(columns: Sequence[ViewColumn]) -> tuple[ViewColumn, ...]:
    if len(columns) > MAX_COLUMNS:
        raise InputError(engine_text("A view has at most {most} columns.", most=str(MAX_COLUMNS)))
    return tuple(columns)

"""
Uses the operations of installed plugins, and lists all plugins.

An entry point of the group ``qmd.operations`` names an `Operation`, or several in a tuple. Each
becomes a command, a tool of the toolset ``qmd`` and an endpoint as those of qmd do, guarded: the
check of arguments and the read-only mode of a server hold for it, a client with a token for some
collections is refused unless it is marked with `open_to_scopes`, and its errors are told.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import cache, wraps
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from qmd import libraries, operations
from qmd.engine_text import engine_text
from qmd.errors import PluginError, QmdError, ScopeError, WritesForbiddenError
from qmd.kb import KnowledgeBase, scoped
from qmd.kb.parts import OPEN_TO_SCOPES
from qmd.models import catalogue as models
from qmd.operations.definition import Operation, Row
from qmd.operations.error_meanings import MEANINGS
from qmd.parse import plugins as formats
from qmd.system import plugins
from qmd.system.worker.jobs import described
from qmd.values.facts import without_none
from qmd.values.reports import PluginInfo, PluginList


def listed(turned_on: Iterable[str]) -> PluginList:
    """
    All installed plugins, by kind and name; names that are turned on and not installed are broken.

    Args:
        turned_on: The names that the settings have.
    """
    names = tuple(turned_on)
    rows = [
        *_of_kind("formats", formats.offered(names), _format),
        *_of_kind("models", models.offered(names), _model),
        *_of_kind("operations", offered(names), _operation),
    ]
    installed = {each.name for each in rows}
    missing = (name for name in sorted(set(names)) if name not in installed)
    problem = "It is not installed."
    rows += [PluginInfo(name, "", "", "", "broken", problem=problem) for name in missing]
    return PluginList(tuple(rows))


def _format(value: Any) -> str:
    return f"{value.name} ({', '.join(value.suffixes)})"


def _model(value: Any) -> str:
    return f"{models.PLUGIN_PREFIX}{value.name} ({value.role})"


def _operation(value: Any) -> str:
    return str(value.name)


def _of_kind(
    kind: plugins.Kind,
    offered: Mapping[str, tuple[Any, ...] | str],
    words: Callable[[Any], str],
) -> list[PluginInfo]:
    rows = []
    for name, point in sorted(plugins.installed(kind).items()):
        package = point.dist.name if point.dist is not None else ""
        version = point.dist.version if point.dist is not None else ""
        value = offered.get(name)
        if value is None:
            rows.append(PluginInfo(name, kind, package, version, "off"))
        elif isinstance(value, str):
            rows.append(PluginInfo(name, kind, package, version, "broken", problem=value))
        else:
            rows.append(PluginInfo(name, kind, package, version, "on", tuple(map(words, value))))
    return rows


def offered(names: Iterable[str]) -> dict[str, tuple[Operation, ...] | str]:
    """The operations of these plugins, or a sentence that says why one has none."""
    values = plugins.offers("operations", names, Operation, _problem_of)
    owners: dict[str, str] = {}
    for plugin, value in values.items():
        for each in () if isinstance(value, str) else value:
            owner = owners.setdefault(each.name, plugin)
            if owner != plugin:
                values[plugin] = f"The plugin {owner} has an operation {each.name}, too."
    return values


def turned_on() -> list[Operation]:
    """The operations of the plugins that this process uses, each guarded."""
    values = offered(plugins.turned_on()).items()
    return [
        _guarded(plugin, each)
        for plugin, value in values
        if not isinstance(value, str)
        for each in value
    ]


#: What the declaration of a plugin may say. The rest changes faces in ways that only qmd's may.
_ATTRIBUTES = {
    *("text", "rows", "lines", "heading", "when_empty", "noun", "zh", "title", "usual", "examples"),
    *("lane", "idempotent", "destroys", "errors", "command", "toolset"),
}
#: Commands and paths of qmd that are no operations; a test compares them with those of the faces.
OTHER_NAMES = {
    *("ask", "backup", "bench", "completion", "config", "deep_search", "doctor", "edit", "embed"),
    *("events", "export", "health", "help", "history", "image", "import", "logs", "man", "mcp"),
    *("metrics", "migrate_to", "models", "ocr", "open", "page", "pull", "push", "rescue"),
    *("restore", "restore_db", "service", "setup", "summary", "token", "up", "vector_search"),
    "watch",
}
#: How deep the dataclasses of a reply may lie in each other.
_DEPTH = 8


def _problem_of(operation: Operation) -> str | None:
    """Why an operation cannot be used: what a face would find when it asks for it is read here."""
    try:
        return _problem_of_name(operation) or _problem_of_types(operation)
    except Exception as error:  # noqa: BLE001 - the annotations of others may be anything
        return f"An operation cannot be read: {described(error)}"


def _problem_of_name(operation: Operation) -> str | None:
    name, about = operation.name, vars(operation)["_about"]
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        return f"An operation cannot be named {name}."
    if name in taken():
        return f"qmd has a command, a tool or an endpoint {name}."
    if forbidden := sorted(about.keys() - _ATTRIBUTES):
        return f"The operation {name} has attributes of qmd's own: {', '.join(forbidden)}."
    if about.get("command") or about.get("toolset"):
        return f"command and toolset of the operation {name} can be None, and nothing else."
    return None


def _problem_of_types(operation: Operation) -> str | None:
    name, fields, reply = operation.name, operation.fields, operation.reply
    if len(inspect.signature(operation.run).parameters) != len(fields) + 1:
        return f"The operation {name} takes no knowledge base, or arguments of another kind."
    for field in fields:
        if not field.description or not _is_argument(field.hint):
            return f"The argument {field.name} of {name} has no Describe, or no type it may have."
    if not is_dataclass(reply) or not _is_reply(reply):
        return f"The reply of {name} is no dataclass of texts, numbers, lists and dataclasses."
    if not operation.paragraphs[0] or (operation.text is None and not operation.lists):
        return f"The operation {name} has no docstring, or neither text nor rows with a list."
    if not all(each in MEANINGS for each in operation.errors):
        return f"The errors of {name} are not all in qmd.errors."
    return None


def _is_argument(hint: Any) -> bool:
    """Whether all faces can take it: texts, numbers, flags, choices, and tuples of these."""
    hint = without_none(hint)
    if get_origin(hint) is tuple:
        item, *more = get_args(hint)
        return more == [...] and _is_simple(item)
    return _is_simple(hint)


def _is_simple(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        return all(isinstance(each, str) for each in get_args(hint))
    return hint in (str, int, float, bool)


def _is_reply(hint: Any, depth: int = 0) -> bool:
    """Whether all faces can send it."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    hint = without_none(hint)
    if is_dataclass(hint) and isinstance(hint, type) and depth < _DEPTH:
        hints = get_type_hints(hint, include_extras=True)
        return all(_is_reply(hints[each.name], depth + 1) for each in dataclass_fields(hint))
    if get_origin(hint) is tuple:
        item, *more = get_args(hint)
        return more == [...] and _is_reply(item, depth + 1)
    return _is_simple(hint)


@cache
def taken() -> frozenset[str]:
    """The names that an operation of a plugin cannot have, since something of qmd has them."""
    names = {*OTHER_NAMES, *(each.name for each in operations.every_joined())}
    for each in operations.every_own():
        command = each.command_name or each.name
        names |= {each.name, each.tool_name, each.path.split("/")[1], command.split()[0]}
        names |= set(each.other_names)
    return frozenset(name.replace("-", "_") for name in names)


@cache
def _guarded(plugin: str, operation: Operation) -> Operation:
    """The same operation, whose errors name the plugin, with what a declaration may leave out."""

    def caught(function: Any) -> Any:
        """It, whose exceptions become a `PluginError`; what is no function as it is."""
        if not callable(function):
            return function

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except QmdError:
                raise
            except (Exception, SystemExit) as error:  # the code of others may raise anything
                raise _failed(plugin, error) from error

        return call

    def rows(value: Any) -> list[Row]:
        return list(operation.rows(value))  # a generator fails where it is read

    def lines(value: Any) -> list[str]:
        return list(operation.lines(value)) if operation.lines is not None else []

    @wraps(operation.run)
    def run(kb: KnowledgeBase, **named: Any) -> Any:
        if isinstance(kb, scoped.ScopedKnowledgeBase) and operation.run not in OPEN_TO_SCOPES:
            raise ScopeError
        if operation.writes and kb.confirms_writes:
            raise WritesForbiddenError(
                "Nobody can be asked about what a plugin is about to write.",
                hint="Let a person run it, or use a tool of qmd that writes.",
            )
        value = operation.run(kb, **named)
        if not isinstance(value, operation.reply):
            raise TypeError(f"no {operation.reply.__name__} was returned")
        return value

    about = {
        **vars(operation)["_about"],
        "toolset": "qmd" if operation.toolset == "" else None,
        "group": "plugins",
        "section": "Plugins",
        "zh": operation.zh or operation.paragraphs[0],
        "errors": (*operation.errors, PluginError),
    }
    for name in ("text", "heading", "when_empty"):
        about[name] = caught(getattr(operation, name))
    about["rows"] = caught(rows)
    about["lines"] = None if operation.lines is None else caught(lines)
    return Operation(caught(run), about)


def _failed(plugin: str, error: BaseException) -> PluginError:
    # The text of an error may hold what a client must not see, so only the log has it.
    libraries.logging.getLogger(__name__).error("%s failed", plugin, exc_info=error)
    return PluginError(
        engine_text(
            "The plugin {plugin} failed: {problem}.", plugin=plugin, problem=type(error).__name__
        ),
        hint="Report it to its authors, or take it out of the setting plugins.",
    )

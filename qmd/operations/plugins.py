"""
Uses the operations of installed plugins, and lists all plugins.

An entry point of the group ``qmd.operations`` names an `Operation`, or several in a tuple. Each
becomes a command, a tool of the toolset ``qmd`` and an endpoint as those of qmd do: the scope of a
client, the check of arguments and the read-only mode of a server hold for it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache, wraps
from typing import Any

from qmd import libraries, operations
from qmd.engine_text import engine_text
from qmd.errors import PluginError, QmdError
from qmd.models import plugins as models
from qmd.operations.definition import Operation
from qmd.parse import plugins as formats
from qmd.system import plugins
from qmd.system.worker.jobs import described
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
    return f"{models.PREFIX}{value.name} ({value.role})"


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
    return plugins.offers("operations", names, Operation, _problem_of)


def turned_on() -> list[Operation]:
    """The operations of the plugins that this process uses, each guarded."""
    usable: dict[str, Operation] = {}
    for plugin, value in offered(plugins.turned_on()).items():
        for each in () if isinstance(value, str) else value:
            usable.setdefault(each.name, _guarded(plugin, each))
    return list(usable.values())


def _problem_of(operation: Operation) -> str | None:
    """Why an operation cannot be used: what a face would find when it asks for it is read here."""
    try:
        fields, reply = operation.fields, operation.reply
    except Exception as error:  # noqa: BLE001 - the annotations of others may be anything
        return f"The operation {operation.name} cannot be read: {described(error)}"
    if not is_dataclass(reply) or not operation.paragraphs[0]:
        return f"The operation {operation.name} has no docstring, or its reply is no dataclass."
    if operation.text is None and not operation.lists:
        return f"The operation {operation.name} has neither text, nor rows and a list in its reply."
    if any(not field.description for field in fields):
        return f"An argument of the operation {operation.name} has no Describe."
    if _names_of(operation) & _taken():
        return f"qmd has a command, a tool or an endpoint like that of {operation.name}."
    if operation.view or operation.done_by or operation.tool or operation.in_shell_alone:
        return f"The operation {operation.name} has attributes that only those of qmd can have."
    return None


@cache
def _taken() -> frozenset[str]:
    return frozenset().union(*map(_names_of, operations.every_own()))


def _names_of(operation: Operation) -> frozenset[str]:
    tool = f"tool {operation.tool_name or operation.name}"
    endpoint = f"{operation.method} {operation.path}"
    return frozenset((operation.name, tool, endpoint, f"command {operation.command_name}"))


@cache
def _guarded(plugin: str, operation: Operation) -> Operation:
    """The same operation, whose errors name the plugin, with what a declaration may leave out."""

    @wraps(operation.run)
    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return operation.run(*arguments, **named)
        except QmdError:
            raise
        except Exception as error:  # the code of others may raise anything
            # The text of an error may hold what a client must not see, so only the log has it.
            libraries.logging.getLogger(__name__).error("%s failed", plugin, exc_info=error)
            raise PluginError(
                engine_text(
                    "The plugin {plugin} failed: {problem}.",
                    plugin=plugin,
                    problem=type(error).__name__,
                ),
                hint="Report it to its authors, or take it out of the setting plugins.",
            ) from error

    return Operation(
        run,
        {
            **vars(operation)["_about"],
            "toolset": "qmd" if operation.toolset == "" else operation.toolset,
            "group": operation.group or "plugins",
            "section": operation.section or "Plugins",
            "zh": operation.zh or operation.paragraphs[0],
            "errors": (*operation.errors, PluginError),
        },
    )
